"""A trained translator: raw text in, raw text out."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

import torch
from torch import Tensor, nn

from ...config import Config, FamilyConfig
from ...data.pairs import tidy
from ...data.tokenizer import Tokenizer
from ...families import GenerationDefaults
from ...generation import GenerationConfig, Hypothesis
from ..bundle import Bundle
from ..predictor import OutputKind
from ..text_generator import TextGenerator
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
        super().__init__(config, module, settings)
        self.tokenizer: Tokenizer = tokenizers.source
        self.target_tokenizer: Tokenizer = tokenizers.target  # the same one where the languages share it

    @property
    def lacks_confidence(self) -> bool:
        """Whether it was not taught how surely an answer is right."""
        return bool(self.settings.confidence is None)

    @property
    def tokens(self) -> GenerationDefaults:
        """The target's."""
        tokenizer = self.target_tokenizer
        suppressed = (tokenizer.pad, tokenizer.start)
        return GenerationDefaults(
            start=tokenizer.start, end=(tokenizer.end,), pad=tokenizer.pad, suppress_tokens=suppressed
        )

    def inputs(self, text: str) -> list[list[int]]:
        """Sentence by sentence where the model learned so; what is too long is cut at sentence ends."""
        if not (text := tidy(text)):
            return []
        return [
            self._ids(part)
            for piece in (sentences(text) if self.settings.one_sentence else [text])
            for part in parts_within(piece, self.settings.max_tokens, self._n_tokens)
        ]

    def confidence(self, hypothesis: Hypothesis) -> float | None:
        """As the model was taught; an answer that has not come to its end is not right."""
        confidence: Confidence | None = self.settings.confidence
        if confidence is None:
            return None
        return confidence.of(hypothesis.logprob, len(hypothesis.tokens) + 1) if hypothesis.finished else 0.0

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

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The translator in a folder."""
        settings = bundle.settings_as(TranslatorSettings, folder)
        tokenizers = Tokenizers.load(folder, joint=settings.joint)
        return cls(bundle.model, bundle.module(folder), tokenizers, settings)
