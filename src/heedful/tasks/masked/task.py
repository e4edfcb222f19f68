"""Masked words' four answers: plain text, a reader with a head for words, cross-entropy at the gaps, perplexity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ...data.corpus import text_files
from ...data.published_tokenizer import NAME, ROLES
from ...data.report import DataReport, TextReport
from ...families import build
from ..reading_data import WRITTEN, ReadingData
from ..run import Files, Task
from ..run.folder import DATA
from ..run.sources import VALIDATION
from ..starting import begin_with
from .config import MaskedConfig
from .evaluation import evaluate_files
from .filler import Filler
from .job import MaskedJob
from .prepare import prepare

TOKENIZER, BASE = "the tokeniser settings", "the base"


class MaskedTask(Task[MaskedConfig, ReadingData]):
    """From scratch, or going on from a model that has read before."""

    name: ClassVar[str] = Filler.task
    loads: ClassVar[type[Any]] = Filler
    counted: ClassVar[str] = "texts"
    config: ClassVar[type[Any]] = MaskedConfig
    made: ClassVar[tuple[str, ...]] = (NAME, ROLES, *(f"{DATA}/{name}" for name in WRITTEN))
    kept: ClassVar[tuple[str, ...]] = (TOKENIZER, BASE)

    def inputs(self, config: MaskedConfig, files: Files) -> dict[str, Path]:
        """The texts. A base is copied into the run, which then needs it no more."""
        return {
            f"{path}{use}": path
            for use, given in (("", files.train), (VALIDATION, files.valid))
            for path in (text_files(given) if given else ())
        }

    def decides(self, config: MaskedConfig, files: Files) -> dict[str, str]:
        """What a text is, lengths, pieces."""
        return {
            "the data settings": json.dumps({**config.data.to_dict(), "max_tokens": config.limit}, sort_keys=True),
            TOKENIZER: json.dumps(config.tokenizer.to_dict(), sort_keys=True),
            BASE: str(config.base),
        }

    def read(
        self, config: MaskedConfig, files: Files, folder: Path, *, keep: bool
    ) -> tuple[ReadingData, DataReport[TextReport]]:
        """Tokenised once; the gaps come with the batches."""
        return prepare(config, files, folder, keep=keep)

    def open(self, config: MaskedConfig, folder: Path) -> ReadingData:
        """The stores."""
        return ReadingData.open(folder)

    def job(self, config: MaskedConfig, data: ReadingData) -> MaskedJob:
        """With fresh weights, or with those of the base."""
        module = build(config.model_for(data.tokenizer.largest + 1))
        start = data.start()
        if start is not None:
            begin_with(module, start)
        return MaskedJob(config, data, module)

    def heading(self, predictor: Filler) -> str:
        """What it does."""
        return "masked words"

    def remarks(self, predictor: Filler, metrics: Mapping[str, Any]) -> list[str]:
        """What was measured, and what it is good for."""
        return [
            f"Of these texts, {metrics['validation']['masked']:,} tokens were to be guessed, the same ones every time.",
            f"A gap is written {predictor.settings.mask}. A classifier begins with these weights: "
            "`heedful train classification --from` and this folder.",
        ]

    def evaluate(self, predictor: Filler, files: Files) -> dict[str, Any]:
        """Loss and accuracy over all lines of the files, with the usual share of gaps."""
        return evaluate_files(predictor, files.train)
