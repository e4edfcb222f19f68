"""Text in, text out: what every model that writes has in common, whether it translates, rewrites or continues."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, ClassVar

from torch import nn

from ..errors import DataError
from ..generation import GenerationConfig, Hypothesis, Stream, generate, stream
from .answers import Answer, best_joined, joined
from .predictor import ItemError, listed
from .texts import plain

SEARCHING = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}  # what only sampling changes


class Writer(ABC):
    """A text may be answered in parts, one after the other; a task says what they are and how ids become text."""

    task: ClassVar[str]
    comes_to_an_end: ClassVar[bool] = True  # an answer that does not was cut short
    module: nn.Module

    @property
    @abstractmethod
    def generation(self) -> GenerationConfig:
        """How it writes unless told otherwise."""

    @abstractmethod
    def inputs(self, text: str) -> list[list[int]]:
        """The parts of a text in ids, as the model reads them; none of an empty one. DataError for what it cannot."""

    @abstractmethod
    def text(self, ids: Sequence[int], tokens: Sequence[int]) -> str:
        """What the tokens say that were written as an answer to the ids."""

    @abstractmethod
    def answer(self, ids: Sequence[int], found: Hypothesis) -> Answer:
        """The same of a whole answer, with what it is worth."""

    @abstractmethod
    def tokens(self) -> dict[str, Any]:
        """The tokens that `generate` must know: start, end, those banned."""

    def predict(self, texts: Sequence[str], **generation: Any) -> list[str]:
        """One answer for each text, in order; an empty text gives an empty one.

        Generation's words may be changed here: `predict(texts, beam=5, length_penalty=1.0)`,
        `predict(texts, sample=True, top_p=0.9, seed=3)` and all others of GenerationConfig.
        """
        return [answer.text for answer in self.answers(texts, **generation)]

    def answers(self, texts: Sequence[str], **generation: Any) -> list[Answer]:
        """`predict` with log-probabilities, confidence, and whether each answer came to its end."""
        return [best for best, *_ in self.candidates(texts, **generation)]

    def candidates(self, texts: Sequence[str], **generation: Any) -> list[list[Answer]]:
        """For each text its `n_best` answers, or as many samples, best first."""
        words = self._words(generation)
        owners: list[int] = []  # the text that each part belongs to
        ids: list[list[int]] = []
        for index, text in enumerate(listed(texts, "text")):
            for part in self._parts(text, index):
                owners.append(index)
                ids.append(part)
        parts: list[list[list[Answer]]] = [[] for _ in texts]
        found = self.written(ids, words) if ids else []
        for owner, part, hypotheses in zip(owners, ids, found, strict=True):
            parts[owner].append([self.answer(part, hypothesis) for hypothesis in hypotheses])
        return [best_joined(answers, words.n_best) for answers in parts]

    def stream(self, text: str, **generation: Any) -> Stream[str, Answer]:
        """The answer bit by bit, each as soon as it is certain, in whole characters."""
        words, parts = self._words(generation), self._parts(text, 0)
        return Stream(self._stream(parts, words))

    def why_not(self, text: str) -> str | None:
        """Why `predict` would refuse a text, if it would."""
        try:
            self._parts(text, 0)
        except ItemError as error:
            return error.reason
        return None

    def forced(self) -> list[int]:
        """What every answer begins with."""
        return []

    def written(self, inputs: Sequence[list[int]], words: GenerationConfig) -> list[list[Hypothesis]]:
        """The answers to all inputs, in ids."""
        forced = self.forced()
        prefixes = [forced] * len(inputs) if forced else None
        return generate(self.module, inputs, words, prefixes=prefixes, **self.tokens())

    def writing(self, ids: Sequence[int], words: GenerationConfig) -> Stream[int, Hypothesis]:
        """The answer to one, as it is written."""
        return stream(self.module, ids, words, prefix=self.forced(), **self.tokens())

    def _parts(self, text: object, index: int) -> list[list[int]]:
        try:
            return self.inputs(plain(text))
        except DataError as error:
            raise ItemError("text", index, str(error)) from None

    def _stream(self, parts: Sequence[list[int]], words: GenerationConfig) -> Generator[str, None, Answer]:
        done: list[Answer] = []
        for ids in parts:
            if done:
                yield " "
            tokens = self.writing(ids, words)
            shown = 0
            for bit in self._bits(ids, tokens):
                yield bit
                shown += len(bit)
            assert tokens.answer is not None  # it has come to its end
            done.append(self.answer(ids, tokens.answer))
            if len(done[-1].text) > shown:
                yield done[-1].text[shown:]
        return joined(done)

    def _bits(self, ids: Sequence[int], tokens: Iterable[int]) -> Iterator[str]:
        """The text of tokens as they come, in whole characters.

        Of what was written only the last bit is decoded again, before the new token: it decides about spaces.
        """
        written: list[int] = []
        begin = end = 0  # the last bit that was shown
        for token in tokens:
            written.append(token)
            before, now = self.text(ids, written[begin:end]), self.text(ids, written[begin:])
            # A character too rare for a piece comes byte by byte: until it is whole, it looks damaged.
            if len(now) > len(before) and now.startswith(before) and not now.endswith("\ufffd"):
                yield now[len(before) :]
                begin, end = end if before or not end else begin, len(written)

    def _words(self, changes: dict[str, Any]) -> GenerationConfig:
        """The model's own, changed. Its beam is wide enough for what is asked, and no matter to sampling."""
        own = self.generation.changed(n_best=1)
        sample = changes.get("sample", own.sample and "beam" not in changes)
        beam = 1 if sample else max(own.beam, changes.get("n_best", 1))
        return own.changed(**{"sample": sample, "beam": beam, **({} if sample else SEARCHING), **changes})
