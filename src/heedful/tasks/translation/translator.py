"""A trained translator: raw text in, raw text out."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn

from ...config import Config, FamilyConfig
from ...data.cleaning import tidy
from ...data.tokenizer import Tokenizer
from ...errors import ConfigError, DataError
from ...generation import GenerationConfig, Hypothesis, Stream, generate, stream
from ..bundle import Bundle, BundleError
from .answers import Translation, best_joined, joined
from .confidence import Confidence
from .sentences import parts_within, sentences
from .tokenizers import Tokenizers


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


class TextError(DataError):
    """A text that cannot be translated, and which of those given it is."""

    def __init__(self, index: int, reason: str) -> None:
        super().__init__(f"text {index + 1}: {reason}")
        self.index, self.reason = index, reason


class Translator:
    """What `heedful.load` gives for a translation bundle."""

    task: ClassVar[str] = "translation"

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
        self.settings = settings

    @property
    def tokenizer(self) -> Tokenizer:
        """That of the source."""
        return self.tokenizers.source

    @property
    def target_tokenizer(self) -> Tokenizer:
        """That of the target: the same one where the languages share it."""
        return self.tokenizers.target

    def predict(self, texts: Sequence[str], **generation: Any) -> list[str]:
        """One translation for each text, in order; an empty text gives an empty one.

        Generation's words may be changed here: `predict(texts, beam=5, length_penalty=1.0)`,
        `predict(texts, sample=True, top_p=0.9, seed=3)` and all others of GenerationConfig.
        """
        return [translation.text for translation in self.translate(texts, **generation)]

    def translate(self, texts: Sequence[str], **generation: Any) -> list[Translation]:
        """`predict` with log-probabilities, confidence, and whether each answer came to its end."""
        return [best for best, *_ in self.candidates(texts, **generation)]

    def candidates(self, texts: Sequence[str], **generation: Any) -> list[list[Translation]]:
        """For each text its `n_best` translations, or as many samples, best first."""
        if isinstance(texts, str):
            raise DataError("predict takes a list of texts; put the one text in brackets: predict([text])")
        words = self._words(generation)
        owners: list[int] = []  # the text that each part belongs to
        ids: list[list[int]] = []
        for index, text in enumerate(texts):
            for part in self._parts(text, index):
                owners.append(index)
                ids.append(self._ids(part))
        parts: list[list[list[Translation]]] = [[] for _ in texts]
        for owner, answers in zip(owners, generate(self.module, ids, words, **self._tokens()), strict=True):
            parts[owner].append([self._translation(answer) for answer in answers])
        return [best_joined(found, words.n_best) for found in parts]

    def stream(self, text: str, **generation: Any) -> Stream[str, Translation]:
        """The translation bit by bit, each as soon as it is certain, in whole characters."""
        words, parts = self._words(generation), self._parts(text, 0)
        return Stream(self._stream(parts, words))

    def _stream(self, parts: Sequence[str], words: GenerationConfig) -> Generator[str, None, Translation]:
        done: list[Translation] = []
        for part in parts:
            if done:
                yield " "
            tokens = stream(self.module, self._ids(part), words, **self._tokens())
            written, shown = list[int](), ""
            for token in tokens:
                written.append(token)
                # A character too rare for a piece comes byte by byte: until it is whole, it looks damaged.
                whole = self.target_tokenizer.decode(written).rstrip("\ufffd")
                if whole != shown:
                    yield whole[len(shown) :]
                    shown = whole
            assert tokens.answer is not None  # it has come to its end
            done.append(self._translation(tokens.answer))
            if done[-1].text != shown:
                yield done[-1].text[len(shown) :]
        return joined(done)

    def _words(self, changes: dict[str, Any]) -> GenerationConfig:
        """The bundle's, changed. Its beam is wide enough for what is asked, and no matter to sampling."""
        own = self.settings.generation.changed(n_best=1)
        beam = 1 if changes.get("sample", own.sample) else max(own.beam, changes.get("n_best", 1))
        return own.changed(**{"beam": beam, **changes})

    def _ids(self, part: str) -> list[int]:
        return [*self.tokenizer.encode(part), self.tokenizer.end]

    def _tokens(self) -> dict[str, Any]:
        tokenizer = self.target_tokenizer
        return {"start": tokenizer.start, "end": tokenizer.end, "banned": (tokenizer.pad, tokenizer.start)}

    def _translation(self, answer: Hypothesis) -> Translation:
        return Translation.of(answer, self.target_tokenizer, self.settings.confidence)

    def why_not(self, text: str) -> str | None:
        """Why `predict` would refuse a text, if it would."""
        try:
            self._parts(text, 0)
        except TextError as error:
            return error.reason
        return None

    def _parts(self, text: str, index: int) -> list[str]:
        if not isinstance(text, str):
            raise TextError(index, f"a text is a str, not {type(text).__name__}")
        if not (text := tidy(text)):
            return []
        try:
            return [
                part
                for piece in (sentences(text) if self.settings.one_sentence else [text])
                for part in parts_within(piece, self.settings.max_tokens, self._n_tokens)
            ]
        except DataError as error:
            raise TextError(index, str(error)) from None

    def _n_tokens(self, text: str) -> int:
        return len(self.tokenizer.encode(text)) + 1

    def tokens(self, source: str, target: str) -> tuple[Tensor, Tensor]:
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
        try:
            settings = TranslatorSettings.from_dict(bundle.settings)
        except (ConfigError, TypeError) as error:
            raise BundleError(f"{folder}: the settings of the bundle cannot be used: {error}") from None
        tokenizers = Tokenizers.load(folder, joint=settings.joint)
        return cls(bundle.model, bundle.module(folder), tokenizers, settings)
