"""A decoder alone over a tokeniser of any make: a text is continued."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

from torch import nn

from ...config import Config, FamilyConfig
from ...data.published_tokenizer import NAME, PublishedTokenizer
from ...errors import DataError
from ...families import GenerationDefaults
from ...generation import GenerationConfig, Hypothesis
from ..answers import Answer
from ..bundle import Bundle
from ..texts import within
from ..writer import Writer

LENGTH = 100  # tokens of an answer, unless told otherwise


@dataclass(frozen=True, kw_only=True)
class ContinuerSettings(Config):
    """What a bundle says beside its model."""

    title: ClassVar[str] = "language model"

    tokens: GenerationDefaults = field(default_factory=GenerationDefaults)
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(max_new_tokens=LENGTH))


class Continuer(Writer):
    """What `heedful.load` gives for a language model's bundle; an answer is what follows the text."""

    task: ClassVar[str] = "language_model"
    comes_to_an_end: ClassVar[bool] = False  # it is asked for so much and no more

    def __init__(
        self, config: FamilyConfig, module: nn.Module, tokenizer: PublishedTokenizer, settings: ContinuerSettings
    ) -> None:
        self.config = config
        self.module: Any = module.eval()
        self.tokenizer = tokenizer
        self.settings = settings

    @property
    def generation(self) -> GenerationConfig:
        """The bundle's."""
        return self.settings.generation

    def inputs(self, text: str) -> list[list[int]]:
        """An empty text is the start of any; white space is text."""
        ids = self.tokenizer.encode(text)
        if not ids:
            if self.settings.tokens.start is None:
                raise DataError("this model cannot begin from nothing; give it some text to continue")
            ids = [self.settings.tokens.start]
        return [within(ids, self.module.decoder.positions.limit)]

    def text(self, ids: Sequence[int], tokens: Sequence[int]) -> str:
        """What follows, with the space that separates it."""
        return self.tokenizer.continuation(ids, tokens)

    def answer(self, ids: Sequence[int], found: Hypothesis) -> Answer:
        """With its end, where it came to one."""
        written = (*found.tokens, self.settings.tokens.end[0]) if found.finished else found.tokens
        return Answer.of(found, self.text(ids, found.tokens), self.tokenizer.readable(written))

    def tokens(self) -> dict[str, Any]:
        """As the model was published."""
        own = self.settings.tokens
        return {"start": 0 if own.start is None else own.start, "end": own.end, "banned": own.banned}

    def save(self, folder: str | Path) -> None:
        """Write the bundle."""
        names = self.tokenizer.save(Path(folder) / NAME)
        Bundle(self.task, self.config, self.settings.to_dict()).write(folder, self.module, beside=names)

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        """The one in a folder."""
        settings = bundle.settings_as(ContinuerSettings, folder)
        return cls(bundle.model, bundle.module(folder), PublishedTokenizer.load(folder / NAME), settings)
