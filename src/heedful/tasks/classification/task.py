"""Classification's four answers: labelled texts, a reader with a head for classes, cross-entropy, accuracy and F1."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from ...data.labeled_texts import labeled_files
from ...data.published_tokenizer import NAME, ROLES
from ...data.report import DataReport, TextReport
from ...families import build
from ...lens.report import Confusion, Sample
from ..reader import Text
from ..reading_data import WRITTEN
from ..run import Files, Task
from ..run.folder import DATA
from ..run.sources import VALIDATION
from ..starting import begin_with
from .classifier import Classifier
from .config import ClassificationConfig
from .evaluation import evaluate_files
from .job import ClassificationJob
from .looking import as_shown, look
from .prepare import LABELS, Prepared, prepare

TOKENIZER, BASE = "the tokeniser settings", "the base"
NAMED = 12  # classes that a heading names
LOOKS = 2  # texts whose attention is drawn
DRAWN = 30  # their tokens at most


class ClassificationTask(Task[ClassificationConfig, Prepared]):
    """From scratch, or from a model that has read before."""

    name: ClassVar[str] = Classifier.task
    loads: ClassVar[type[Any]] = Classifier
    counted: ClassVar[str] = "texts"
    config: ClassVar[type[Any]] = ClassificationConfig
    made: ClassVar[tuple[str, ...]] = (NAME, ROLES, *(f"{DATA}/{name}" for name in (LABELS, *WRITTEN)))
    kept: ClassVar[tuple[str, ...]] = (TOKENIZER, BASE)

    def inputs(self, config: ClassificationConfig, files: Files) -> dict[str, Path]:
        """The tables. A base is copied into the run, which then needs it no more."""
        return {
            f"{path}{use}": path
            for use, given in (("", files.train), (VALIDATION, files.valid))
            for path in (labeled_files(given) if given else ())
        }

    def decides(self, config: ClassificationConfig, files: Files) -> dict[str, str]:
        """Columns, lengths, pieces."""
        return {
            "the columns": json.dumps(files.columns),
            "the data settings": json.dumps({**config.data.to_dict(), "max_tokens": config.limit}, sort_keys=True),
            TOKENIZER: json.dumps(config.tokenizer.to_dict(), sort_keys=True),
            BASE: str(config.base),
        }

    def read(
        self, config: ClassificationConfig, files: Files, folder: Path, *, keep: bool
    ) -> tuple[Prepared, DataReport[TextReport]]:
        """Tokenised once."""
        return prepare(config, files, folder, keep=keep)

    def open(self, config: ClassificationConfig, folder: Path) -> Prepared:
        """The stores."""
        return Prepared.open(folder)

    def job(self, config: ClassificationConfig, data: Prepared) -> ClassificationJob:
        """With fresh weights, or below the head with those of the base."""
        module = build(config.model_for(data.tokenizer.largest + 1, len(data.labels)))
        start = data.start()
        if start is not None:
            begin_with(module, start)
        return ClassificationJob(config, data, module)

    def heading(self, predictor: Classifier) -> str:
        """The classes."""
        labels = predictor.settings.labels
        return f"{len(labels)} classes: {', '.join(labels[:NAMED])}{', …' if len(labels) > NAMED else ''}"

    def remarks(self, predictor: Classifier, metrics: Mapping[str, Any]) -> list[str]:
        """What its probabilities are worth, what it confuses, what it does with long texts."""
        validation = metrics["validation"]
        each = [
            f"| {_cell(one['label'])} | {one['n']:,} | {one['precision']:.1f} | {one['recall']:.1f} | {one['f1']:.1f} |"
            for one in validation["classes"]
        ]
        return [
            "| class | texts | precision | recall | F1 |",
            "|---|---|---|---|---|",
            *each,
            "",
            f"Its probabilities lie {validation['calibration']:.1f} % from the truth (expected calibration error).",
            *_read(predictor),
        ]

    def shown(self, predictor: Classifier, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Texts with their classes, which classes are confused, and what a few texts attend to."""
        validation, samples = metrics["validation"], metrics["samples"]
        surest = sorted((one for one in samples if one["exact"]), key=lambda one: -one["score"])
        telling = (text for text in map(_asked, surest) if _can_be_drawn(predictor, text))
        return {
            "samples": [_sample(one) for one in samples],
            "confusion": Confusion(validation["labels"], validation["confusion"]),
            "attention": [look(predictor, text) for text in islice(telling, LOOKS)],
        }

    def evaluate(self, predictor: Classifier, files: Files) -> dict[str, Any]:
        """Every score of all texts."""
        return evaluate_files(predictor, files.train, files.columns)


def _read(predictor: Classifier) -> Iterator[str]:
    """How texts are handed to it, and how long they may be."""
    if predictor.settings.texts == 2:
        yield "It reads two texts at once: `predict([(first, second)])`, or a line with a tab between them."
        yield f"Two with more than {predictor.limit} tokens together are refused."
    else:
        yield f"Of texts with more than {predictor.limit} tokens it reads the beginning, and says so in a warning."


def _asked(sample: Mapping[str, Any]) -> Text:
    return (sample["source"], sample["second"]) if "second" in sample else sample["source"]


def _sample(sample: Mapping[str, Any]) -> Sample:
    return Sample(as_shown(_asked(sample)), **{key: sample[key] for key in ("reference", "output", "score", "exact")})


def _can_be_drawn(predictor: Classifier, text: Text) -> bool:
    """A text given back by the tokeniser may have become too long."""
    return predictor.why_not(text) is None and len(predictor.prepared(text).ids) <= DRAWN


def _cell(label: str) -> str:
    return " ".join(label.replace("|", "\\|").split())
