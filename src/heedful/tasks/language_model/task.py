"""A language model's four answers: running text, a decoder alone, cross-entropy, perplexity and bits per character."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from ...data.corpus import text_files
from ...data.published_tokenizer import NAME, ROLES, PublishedTokenizer
from ...lens.report import Continuation
from ..run import Files, Task
from ..run.folder import DATA
from ..run.sources import VALIDATION
from .config import LanguageModelConfig
from .continuer import CausalLanguageModel
from .evaluation import evaluate
from .job import LanguageModelJob
from .looking import look
from .prepare import SIZES, TRAIN, VALID, Prepared, Readings, prepare
from .scoring import usual_stride

TOKENIZER = "the tokeniser settings"


class LanguageModelTask(Task[LanguageModelConfig, Prepared]):
    """Text that goes on."""

    name: ClassVar[str] = CausalLanguageModel.task
    loads: ClassVar[type[Any]] = CausalLanguageModel
    counted: ClassVar[str] = "tokens"
    config: ClassVar[type[Any]] = LanguageModelConfig
    made: ClassVar[tuple[str, ...]] = (NAME, ROLES, *(f"{DATA}/{name}" for name in (TRAIN, VALID, SIZES, NAME)))
    kept: ClassVar[tuple[str, ...]] = (TOKENIZER,)

    def inputs(self, config: LanguageModelConfig, files: Files) -> dict[str, Path]:
        """Those of folders among them."""
        return {
            f"{path}{use}": path
            for use, given in (("", files.train), (VALIDATION, files.valid))
            for path in (text_files(given) if given else ())
        }

    def decides(self, config: LanguageModelConfig, files: Files) -> dict[str, str]:
        """What is held out, and what a token is."""
        return {
            "the data settings": json.dumps(config.data.to_dict(), sort_keys=True),
            TOKENIZER: json.dumps(config.tokenizer.to_dict(), sort_keys=True),
        }

    def read(self, config: LanguageModelConfig, files: Files, folder: Path, *, keep: bool) -> tuple[Prepared, Readings]:
        """Tokenised once."""
        tokenizer = PublishedTokenizer.load(folder / NAME) if keep else None
        return prepare(config, files, folder, tokenizer=tokenizer)

    def open(self, config: LanguageModelConfig, folder: Path) -> Prepared:
        """The ids."""
        return Prepared.open(folder)

    def job(self, config: LanguageModelConfig, data: Prepared) -> LanguageModelJob:
        """With fresh weights."""
        return LanguageModelJob(config, data)

    def heading(self, predictor: CausalLanguageModel) -> str:
        """What it does."""
        return "text that goes on"

    def evaluate(self, predictor: CausalLanguageModel, files: Files) -> dict[str, Any]:
        """Every document whole, each from its own beginning."""
        found = evaluate(predictor, files.train)
        signature = f"context {predictor.context}, stride {usual_stride(predictor.context)}"
        return {"n": found.tokens, "scores": {name: vars(score) for name, score in found.scores(signature).items()}}

    def shown(self, predictor: CausalLanguageModel, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Texts of the validation set as the model continues them, and where it looks in the first."""
        texts = [(sample["source"], sample["output"]) for sample in metrics["samples"]]
        return {
            "continuations": [Continuation(before, after) for before, after in texts],
            "attention": [look(predictor, before + after) for before, after in texts[:1] if before + after],
        }

    def remarks(self, predictor: CausalLanguageModel, metrics: Mapping[str, Any]) -> list[str]:
        """How the scores are to be read."""
        validation = metrics["validation"]
        return [
            f"The validation text has {validation['characters']:,} characters; every token of it counts once.",
            "Windows that overlap (stride below the context) give each token more to be predicted from; the loss of "
            "windows side by side is the one to compare with others that are measured so, such as nanoGPT's.",
            f"It sees {predictor.context:,} tokens at once.",
        ]
