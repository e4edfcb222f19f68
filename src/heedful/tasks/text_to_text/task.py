"""Text-to-text's four answers: texts and what they become, an encoder and a decoder, cross-entropy, ROUGE."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ...data.labelled import labelled_files
from ...data.published_tokenizer import NAME, ROLES
from ...families import build
from ...families.weights import put_weights
from ...lens.report import Sample
from ..reading_data import WRITTEN
from ..run import Files, Task
from ..run.folder import DATA
from ..run.sources import VALIDATION
from .config import TextToTextConfig
from .evaluation import evaluate_files
from .job import TextToTextJob
from .prepare import TEXTS, TOKENS, Prepared, prepare
from .rewriter import TextToTextGenerator
from .splitting import ExampleReadings

TOKENIZER, BASE = "the tokeniser settings", "the base"


class TextToTextTask(Task[TextToTextConfig, Prepared]):
    """From scratch, or from a model that has learned before."""

    name: ClassVar[str] = TextToTextGenerator.task
    loads: ClassVar[type[Any]] = TextToTextGenerator
    counted: ClassVar[str] = "pairs"
    config: ClassVar[type[Any]] = TextToTextConfig
    made: ClassVar[tuple[str, ...]] = (NAME, ROLES, *(f"{DATA}/{name}" for name in (TOKENS, TEXTS, *WRITTEN)))
    kept: ClassVar[tuple[str, ...]] = (TOKENIZER, BASE)

    def inputs(self, config: TextToTextConfig, files: Files) -> dict[str, Path]:
        """The tables. A base is copied into the run, which then needs it no more."""
        return {
            f"{path}{use}": path
            for use, given in (("", files.train), (VALIDATION, files.valid))
            for path in (labelled_files(given) if given else ())
        }

    def decides(self, config: TextToTextConfig, files: Files) -> dict[str, str]:
        """Columns, prefix, lengths, pieces."""
        limits = {"max_source_tokens": config.source_limit, "max_target_tokens": config.target_limit}
        return {
            "the columns": json.dumps(files.columns),
            "the prefix": config.prefix,
            "the data settings": json.dumps({**config.data.to_dict(), **limits}, sort_keys=True),
            TOKENIZER: json.dumps(config.tokenizer.to_dict(), sort_keys=True),
            BASE: str(config.base),
        }

    def read(
        self, config: TextToTextConfig, files: Files, folder: Path, *, keep: bool
    ) -> tuple[Prepared, ExampleReadings]:
        """Tokenised once."""
        return prepare(config, files, folder, keep=keep)

    def open(self, config: TextToTextConfig, folder: Path) -> Prepared:
        """The stores."""
        return Prepared.open(folder)

    def job(self, config: TextToTextConfig, data: Prepared) -> TextToTextJob:
        """With fresh weights, or with those of the base."""
        module = build(config.model_for(data.tokenizer.largest + 1))
        start = data.start()
        if start is not None:
            put_weights(module, start)
        return TextToTextJob(config, data, module)

    def evaluate(self, predictor: TextToTextGenerator, files: Files) -> dict[str, Any]:
        """With its own search."""
        return evaluate_files(predictor, files.train, files.columns)

    def heading(self, predictor: TextToTextGenerator) -> str:
        """What it is told to do, where it always is."""
        prefix = predictor.settings.prefix.strip()
        return f"text → text, {prefix!r}" if prefix else "text → text"

    def remarks(self, predictor: TextToTextGenerator, metrics: Mapping[str, Any]) -> list[str]:
        """How it searches, what stands before a text, what it does with long ones, how each task fares."""
        settings, validation = predictor.settings, metrics["validation"]
        tasks = validation["tasks"]
        each = [
            f"| {_cell(one['prefix'])} | {one['n']:,} | {one['exact']:.1f} | {one['rougeL']:.1f} |" for one in tasks
        ]
        before = (
            f"`{settings.prefix}` is put before every text by itself."
            if settings.prefix
            else "What a text's task is stands before it, as in the table above: `predict` takes the text with it."
            if tasks
            else ""
        )
        long = "only the beginning is read, and a warning says so" if settings.cut else "nothing is read: it is refused"
        return [
            *(["| prefix | pairs | exact % | ROUGE-L |", "|---|---|---|---|", *each, ""] if tasks else []),
            f"It was scored on {validation['n']:,} of {validation['of']:,} pairs with beam {settings.generation.beam}.",
            f"{validation['scores']['lead']['metric']}: what the beginning of the source would reach as an answer.",
            *([before] if before else []),
            f"Of a text with more than {predictor.limit} tokens {long}.",
        ]

    def shown(self, predictor: TextToTextGenerator, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Answers."""
        return {"samples": [Sample(**sample) for sample in metrics["samples"]]}


def _cell(prefix: str) -> str:
    return "`{}`".format(" ".join(prefix.replace("|", "\\|").split())) if prefix.strip() else ""
