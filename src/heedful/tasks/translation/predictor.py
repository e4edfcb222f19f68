"""A trained translator: raw text in, raw text out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from ...config import Config, FamilyConfig
from ...data.pairs import tidy
from ...data.tokenizer import Tokenizer
from ...generation import GenerationConfig, Hypothesis
from ..bundle import Bundle
from ..predictor import OutputKind
from ..text_generator import Answer, GenerationTokens, TextGenerator
from .confidence import Confidence
from .data import Tokenizers, parts_within, sentences


@dataclass(frozen=True, kw_only=True)
class TranslatorSettings(Config):
    """What a translator's bundle says beside its model.

    Sources longer than `max_tokens` are cut at sentence ends, and so is every source of a model that learned from
    single sentences (`one_sentence`). `confidence` was learned from the validation set, if that could teach it.
    """

    title: ClassVar[str] = "translator"

    source: str
    target: str
    joint: bool = True
    max_tokens: int = 256
    one_sentence: bool = False
    generation: GenerationConfig = field(default_factory=GenerationConfig)
    confidence: Confidence | None = None


class Translator(TextGenerator):
    """What `heedful.load` gives for a translation bundle."""

    task: ClassVar[str] = "translation"
    output_kind: ClassVar[OutputKind] = "translation"

    def __init__(
        self,
        config: FamilyConfig,
        module: nn.Module,
        tokenizers: Tokenizers,
        settings: TranslatorSettings,
    ) -> None:
        self.config = config
        self.module = module.eval()
        self.tokenizers = tokenizers
        self.tokenizer: Tokenizer = tokenizers.source
        self.target_tokenizer: Tokenizer = tokenizers.target  # the same one where the languages share it
        self.settings = settings

    @property
    def lacks_confidence(self) -> bool:
        """Whether it was not taught how surely an answer is right."""
        return bool(self.settings.confidence is None)

    @property
    def generation(self) -> GenerationConfig:
        """The bundle's."""
        return self.settings.generation

    def inputs(self, text: str) -> list[list[int]]:
        """Sentence by sentence where the model learned so; what is too long is cut at sentence ends."""
        if not (text := tidy(text)):
            return []
        return [
            self._ids(part)
            for piece in (sentences(text) if self.settings.one_sentence else [text])
            for part in parts_within(piece, self.settings.max_tokens, self._n_tokens)
        ]

    def text(self, ids: Sequence[int], tokens: Sequence[int]) -> str:
        """In the target language."""
        return self.target_tokenizer.decode(tokens)

    def answer(self, ids: Sequence[int], hypothesis: Hypothesis) -> Answer:
        """With the confidence that the model was taught."""
        tokenizer, model = self.target_tokenizer, self.settings.confidence
        tokens, finished = hypothesis.tokens, hypothesis.finished
        written = (*tokens, tokenizer.end) if finished else tokens
        confidence = None if model is None else model.of(hypothesis.logprob, len(written)) if finished else 0.0
        return Answer.of(hypothesis, self.text(ids, tokens), tokenizer.readable(written), confidence=confidence)

    def special_tokens(self) -> GenerationTokens:
        """The target's."""
        tokenizer = self.target_tokenizer
        suppressed = (tokenizer.pad, tokenizer.start)
        return {"start": tokenizer.start, "end": tokenizer.end, "suppress_tokens": suppressed}

    def _ids(self, part: str) -> list[int]:
        return [*self.tokenizer.encode(part), self.tokenizer.end]

    def _n_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text)) + 1

    def seen(self, source: str, target: str) -> tuple[Tensor, Tensor]:
        """The ids that encoder and decoder see for a pair, (1, S) and (1, T): for looking into the model."""
        device = next(self.module.parameters()).device
        source_ids = self._ids(source)
        target_ids = [self.target_tokenizer.start, *self.target_tokenizer.encode(target)]
        return torch.tensor([source_ids], device=device), torch.tensor([target_ids], device=device)

    def save(self, folder: str | Path) -> None:
        """Write the bundle."""
        folder = Path(folder)
        names = self.tokenizers.save(folder)
        Bundle(self.task, self.config, self.settings.to_dict()).write(folder, self.module, beside=names)

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The translator in a folder."""
        settings = bundle.settings_as(TranslatorSettings, folder)
        tokenizers = Tokenizers.load(folder, joint=settings.joint)
        return cls(bundle.model, bundle.module(folder), tokenizers, settings)
