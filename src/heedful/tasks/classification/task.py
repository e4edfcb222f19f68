"""Classification's four answers: labelled texts, a reader with a head for classes, cross-entropy, accuracy and F1."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ...data.labelled import labelled_files
from ...data.published_tokenizer import NAME, ROLES
from ...data.text_reading import TextReadings
from ...families import build
from ...lens.report import Confusion, Sample
from ..reading_data import WRITTEN
from ..run import Files, Task
from ..run.folder import DATA
from ..run.sources import VALIDATION
from ..starting import begin_with
from .classifier import Classifier
from .config import ClassificationConfig
from .evaluation import evaluate_files
from .job import ClassificationJob
from .looking import look
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
            for path in (labelled_files(given) if given else ())
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
    ) -> tuple[Prepared, TextReadings]:
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
            f"Of texts with more than {predictor.limit} tokens it reads the beginning, and says so in a warning.",
        ]

    def shown(self, predictor: Classifier, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Texts with their classes, which classes are confused, and what a few texts attend to."""
        validation, samples = metrics["validation"], [Sample(**sample) for sample in metrics["samples"]]
        telling = [one for one in samples if one.exact and len(predictor.tokenizer.encode(one.source)) <= DRAWN]
        return {
            "samples": samples,
            "confusion": Confusion(validation["labels"], validation["confusion"]),
            "attention": [look(predictor, one.source) for one in sorted(telling, key=lambda one: -one.score)[:LOOKS]],
        }

    def evaluate(self, predictor: Classifier, files: Files) -> dict[str, Any]:
        """Every score of all texts."""
        return evaluate_files(predictor, files.train, files.columns)


def _cell(label: str) -> str:
    return " ".join(label.replace("|", "\\|").split())
