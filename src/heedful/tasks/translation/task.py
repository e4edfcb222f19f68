"""Translation's four answers: sentence pairs, a translator, cross-entropy, BLEU and chrF."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from ...data.readers import files_of
from ...families import build
from ...lens.report import AttentionMap, Sample
from ..run import Files, Task
from ..run.folder import DATA
from ..run.sources import VALIDATION
from .config import TranslationConfig
from .job import TranslationJob
from .looking import has_attention, look
from .prepare import Prepared, Readings, prepare
from .tokenizers import SOURCE, TARGET, Tokenizers
from .translator import Translator

LOOKS = 2  # sentences whose attention is drawn
TOKENIZER = "the tokeniser settings"


class TranslationTask(Task[TranslationConfig, Prepared]):
    """`accepted` lists every right answer to a validation source, where there are more than the file has."""

    name: ClassVar[str] = Translator.task
    loads: ClassVar[type[Any]] = Translator
    counted: ClassVar[str] = "pairs"
    config: ClassVar[type[Any]] = TranslationConfig
    made: ClassVar[tuple[str, ...]] = (
        *(SOURCE, TARGET),
        *(f"{DATA}/{name}" for name in ("train", "valid", SOURCE, TARGET)),
    )
    kept: ClassVar[tuple[str, ...]] = (TOKENIZER,)

    def __init__(self, accepted: Mapping[str, Sequence[str]] | None = None) -> None:
        self.accepted = accepted or {}

    def inputs(self, config: TranslationConfig, files: Files) -> dict[str, Path]:
        """Both sides of parallel text among them."""
        return {
            f"{path}{use}": path
            for use, given in (("", files.train), (VALIDATION, files.valid))
            for path in (files_of(given, config.source, config.target) if given else ())
        }

    def decides(self, config: TranslationConfig, files: Files) -> dict[str, str]:
        """Languages, columns, cleaning, pieces."""
        return {
            "the languages": f"{config.source} to {config.target}",
            "the columns": json.dumps(files.columns),
            "the data settings": json.dumps(config.data.to_dict(), sort_keys=True),
            TOKENIZER: json.dumps(config.tokenizer.to_dict(), sort_keys=True),
        }

    def read(self, config: TranslationConfig, files: Files, folder: Path, *, keep: bool) -> tuple[Prepared, Readings]:
        """Cleaned and tokenised once."""
        tokenizers = Tokenizers.load(folder, joint=config.tokenizer.joint) if keep else None
        return prepare(config, files, folder, tokenizers=tokenizers)

    def open(self, config: TranslationConfig, folder: Path) -> Prepared:
        """The stores."""
        return Prepared.open(folder, joint=config.tokenizer.joint)

    def job(self, config: TranslationConfig, data: Prepared) -> TranslationJob:
        """With fresh weights."""
        return TranslationJob(config, data, build(config.model_for(*data.tokenizers.sizes)), self.accepted)

    def heading(self, predictor: Translator) -> str:
        """From which language to which."""
        return f"{predictor.settings.source} → {predictor.settings.target}"

    def remarks(self, predictor: Translator, metrics: Mapping[str, Any]) -> list[str]:
        """How it searches, what its confidence is worth, what it does with long texts."""
        settings, learned = predictor.settings, metrics["confidence"]
        sure = (
            f"It gives no confidence with its answers: {learned['why_not']}."
            if "why_not" in learned
            else "It says how likely each answer is right (`heedful predict --scores`), as learned from these pairs."
        )
        return [
            f"It was scored with beam {settings.generation.beam}.",
            sure,
            f"Sources of more than {settings.max_tokens} pieces are cut at sentence ends, or refused if there is none.",
        ]

    def shown(self, predictor: Translator, metrics: Mapping[str, Any], folder: Path) -> dict[str, Any]:
        """Translations, constructions, and what a few sentences attend to."""
        constructions = metrics.get("constructions", {})
        return {
            "constructions": [(name, right, total) for name, (right, total) in constructions.items()],
            "samples": [Sample(**sample) for sample in metrics["samples"]],
            "attention": _attention(predictor, metrics),
        }


def _attention(translator: Translator, metrics: Mapping[str, Any]) -> list[AttentionMap]:
    """Maps of a few sentences by the last layer's heads."""
    if not has_attention(translator):
        return []
    samples = sorted(metrics["samples"], key=lambda sample: (-sample["score"], -len(sample["source"])))
    spoken = [sample for sample in samples if sample["output"].split()]
    return [_map(translator, sample["source"], sample["output"]) for sample in spoken[:LOOKS]]


def _map(translator: Translator, source: str, output: str) -> AttentionMap:
    seen = look(translator, source, output)
    last = max(head.layer for head in seen.weights if head.layer is not None)
    heads = [head for head in seen.weights if head.layer == last and head.head is not None]
    return AttentionMap(source, seen.source, seen.target, [seen.weights[head].tolist() for head in heads])
