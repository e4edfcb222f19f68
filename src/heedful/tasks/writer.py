"""Text in, text out: what every model that writes has in common, whether it translates, rewrites or continues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from ..errors import DataError
from ..generation import GenerationConfig, Hypothesis, Stream, stream
from ..generation.engine import Asked
from .answers import Answer, best_joined, joined
from .predictor import ItemError, OutputKind, Predictor, listed, plain
from .rounds import Call, Found, Rounds, played

SEARCHING = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}  # what only sampling changes


class Writer(Predictor[str, str]):
    """A text may be answered in parts, one after the other; a task says what they are and how ids become text."""

    output_kind: ClassVar[OutputKind] = "text"
    generates_text: ClassVar[bool] = True
    batch_method: ClassVar[str | None] = "found"
    comes_to_an_end: ClassVar[bool] = True  # an answer that does not was cut short

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
        return played(self.asking(texts, generation), self.found)

    def asking(self, texts: Sequence[str], generation: Mapping[str, Any]) -> Rounds[list[list[Answer]]]:
        """`candidates`, for whoever makes the calls."""
        words = self.words(generation)
        owners: list[int] = []  # the text that each part belongs to
        ids: list[list[int]] = []
        for index, text in enumerate(listed(texts, "text")):
            for part in self.parts(text, index):
                owners.append(index)
                ids.append(part)
        parts: list[list[list[Answer]]] = [[] for _ in texts]
        found = (yield from self.rounds(ids, words)) if ids else []
        for owner, part, hypotheses in zip(owners, ids, found, strict=True):
            parts[owner].append([self.answer(part, hypothesis) for hypothesis in hypotheses])
        return [best_joined(answers, words.n_best) for answers in parts]

    def stream(self, text: str, **generation: Any) -> Stream[str, Answer]:
        """The answer bit by bit, each as soon as it is certain, in whole characters."""
        words, parts = self.words(generation), self.parts(text)
        return Stream(self._stream(parts, words))

    def validation_error(self, text: str) -> str | None:
        """Why `predict` would refuse a text, if it would."""
        try:
            self.parts(text)
        except ItemError as error:
            return error.reason
        return None

    def prepared(self, item: Any) -> list[list[int]]:
        """The parts of a text, in ids."""
        return self.parts(item)

    def forced(self) -> list[int]:
        """What every answer begins with."""
        return []

    def words(self, changes: Mapping[str, Any]) -> GenerationConfig:
        """The model's own words of generation, changed. Its beam is wide enough for what is asked, and no matter to
        sampling.
        """
        own = self.generation
        sample = changes.get("sample", own.sample and "beam" not in changes)
        beam = 1 if sample else max(own.beam, changes.get("n_best", 1))
        return own.changed(**{"n_best": 1, "sample": sample, "beam": beam, **({} if sample else SEARCHING), **changes})

    def rounds(self, inputs: Sequence[list[int]], words: GenerationConfig) -> Rounds[Found]:
        """The calls that answer all inputs: one, unless a task needs more."""
        (found,) = yield [Call(inputs, words)]
        return found

    def asked(self, call: Call) -> Asked:
        """One of them, checked, with this model's tokens."""
        forced = self.forced()
        prefixes = [forced] * len(call.inputs) if forced else None
        return Asked.of(self.module, *call, prefixes=prefixes, **self.tokens())

    def found(self, call: Call, **more: Any) -> Found:
        """The answers to one, in ids; `more` is for `generate`, such as its `histories`."""
        return self.asked(call).found(**more)

    def written(self, inputs: Sequence[list[int]], words: GenerationConfig, **more: Any) -> Found:
        """The answers to all inputs, in ids."""
        return played(self.rounds(inputs, words), partial(self.found, **more))

    def writing(self, ids: Sequence[int], words: GenerationConfig) -> Stream[int, Hypothesis]:
        """The answer to one, as it is written."""
        return stream(self.module, ids, words, prefix=self.forced(), **self.tokens())

    def parts(self, text: object, index: int = 0) -> list[list[int]]:
        """`inputs`, where the error of a text that cannot be answered says which of several it is."""
        try:
            return self.inputs(plain(text))
        except DataError as error:
            raise ItemError("text", index, str(error)) from None

    def spelling(self, ids: Sequence[int]) -> Spelling:
        """How an answer to the ids is spelled while it is written."""
        return Spelling(partial(self.text, ids))

    def _stream(self, parts: Sequence[list[int]], words: GenerationConfig) -> Generator[str, None, Answer]:
        done: list[Answer] = []
        for ids in parts:
            if done:
                yield " "
            tokens, spelling = self.writing(ids, words), self.spelling(ids)
            yield from filter(None, map(spelling.add, tokens))
            assert tokens.answer is not None  # it has come to its end
            done.append(self.answer(ids, tokens.answer))
            if rest := spelling.rest(done[-1].text):
                yield rest
        return joined(done)


class Spelling:
    """Tokens to text, as they come, in whole characters.

    Of what was written only the last bit is decoded again, before the new token: it decides about spaces.
    """

    def __init__(self, text: Callable[[Sequence[int]], str]) -> None:
        self._text = text
        self._written: list[int] = []
        self._begin = self._end = 0  # the last bit that was shown
        self._shown = 0  # characters

    def add(self, token: int) -> str:
        """What it adds; nothing while a character is not whole."""
        self._written.append(token)
        before, now = self._text(self._written[self._begin : self._end]), self._text(self._written[self._begin :])
        # A character too rare for a piece comes byte by byte: until it is whole, it looks damaged.
        if len(now) <= len(before) or not now.startswith(before) or now.endswith("\ufffd"):
            return ""
        self._begin = self._end if before or not self._end else self._begin
        self._end = len(self._written)
        self._shown += len(now) - len(before)
        return now[len(before) :]

    def rest(self, whole: str) -> str:
        """What was never shown of the whole."""
        return whole[self._shown :]
