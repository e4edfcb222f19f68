"""Text in, text out: what every predictor that generates text has in common, whether it translates, rewrites or
continues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from typing import Any, ClassVar, NamedTuple, TypedDict, Unpack

from ..data.published_tokenizer import NAME
from ..data.tokenizer import Piece
from ..families import GenerationDefaults
from ..generation import (
    GenerationConfig,
    GenerationEngine,
    GenerationOptions,
    GenerationRequest,
    Hypothesis,
    SearchStep,
    Stream,
    create_requests,
)
from .bundle import join_defaults
from .inspection import Inspection
from .inspection.generation import inspect_seq2seq
from .predictor import OutputKind, Predictor, plain

SOURCE, TARGET = NAME, "target_tokenizer.json"  # the second only where the sides share none
LONGEST = 512  # tokens of an answer that a published model allows, where its positions have no end
SEARCHING = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}  # what only sampling changes


class ScoredPiece(NamedTuple):
    """A piece of the answer as text, and its log-probability; the last one is the end."""

    text: str
    logprob: float


@dataclass(frozen=True)
class Answer:
    """One answer. `finished` is False where the model was still writing when its room ended.

    `confidence` is the probability that the answer is right, where the model was taught to tell; of one that has not
    come to its end it is 0. `score` is what answers are ranked by.
    """

    text: str
    logprob: float
    finished: bool
    confidence: float | None = None
    score: float = 0.0
    n_tokens: int = 0
    pieces: tuple[ScoredPiece, ...] = ()

    @classmethod
    def of(
        cls, hypothesis: Hypothesis, text: str, pieces: Sequence[Piece], *, confidence: float | None = None
    ) -> Answer:
        """A hypothesis as text; the pieces are those of all that was written, its end included."""
        logprobs = hypothesis.token_logprobs
        return cls(
            text,
            hypothesis.logprob,
            hypothesis.finished,
            confidence,
            hypothesis.score,
            len(logprobs),
            tuple(ScoredPiece(piece.text, sum(logprobs[piece.start : piece.stop])) for piece in pieces),
        )


def joined(parts: Sequence[Answer]) -> Answer:
    """The parts of one text as one answer, which is right if all of them are; of nothing, the empty one."""
    sure = [part.confidence for part in parts if part.confidence is not None]
    return Answer(
        " ".join(part.text for part in parts),
        sum(part.logprob for part in parts),
        all(part.finished for part in parts),
        prod(sure) if len(sure) == len(parts) and parts else None,
        sum(part.score for part in parts),
        sum(part.n_tokens for part in parts),
        tuple(piece for part in parts for piece in part.pieces),
    )


def best_joined(parts: Sequence[Sequence[Answer]], count: int) -> list[Answer]:
    """Of all ways to take one answer for each part, the `count` best."""
    best: list[tuple[Answer, ...]] = [()]
    for answers in parts:
        combinations = [(*before, answer) for before, answer in product(best, answers)]
        best = sorted(combinations, key=lambda each: -sum(part.score for part in each))[:count]
    return [joined(each) for each in best]


class GenerationTokens(TypedDict):
    """The tokens that `generate` must know."""

    start: int | None
    end: int | tuple[int, ...]
    suppress_tokens: tuple[int, ...]


class EncodedTexts(NamedTuple):
    """The parts of several texts in ids, and which text each part belongs to."""

    n_texts: int
    ids: list[list[int]]
    owners: list[int]


class TextGenerator(Predictor[str, str]):
    """A text may be answered in parts, one after the other; a task says what they are and how ids become text."""

    output_kind: ClassVar[OutputKind] = "text"
    generates_text: ClassVar[bool] = True
    batch_method: ClassVar[str | None] = "generate"
    comes_to_an_end: ClassVar[bool] = True  # an answer that does not was cut short
    target_tokenizer: Any  # of answers; the same object where both sides share it

    @property
    def generation(self) -> GenerationConfig:
        """How it generates unless a call says otherwise: as the bundle says."""
        generation: GenerationConfig = self.settings.generation
        return generation

    @property
    def tokens(self) -> GenerationDefaults:
        """The special tokens, as the model was published."""
        tokens: GenerationDefaults = self.settings.tokens
        return tokens

    @property
    def rolling_context(self) -> int | None:
        """How many tokens the model sees at once, where an answer may be longer than that."""
        return None

    @abstractmethod
    def inputs(self, text: str) -> list[list[int]]:
        """The parts of a text in ids, as the model reads them; none of an empty one. DataError for what it cannot."""

    def text(self, ids: Sequence[int], tokens: Sequence[int]) -> str:
        """What the tokens say that were written as an answer to the ids."""
        text: str = self.target_tokenizer.decode(tokens)
        return text

    def answer(self, ids: Sequence[int], hypothesis: Hypothesis) -> Answer:
        """The same of a whole answer, its end included where it came to one, with what it is worth."""
        tokens = hypothesis.tokens
        written = (*tokens, self.tokens.end[0]) if hypothesis.finished else tokens
        confidence = self.confidence(hypothesis)
        text, pieces = self.text(ids, tokens), self.target_tokenizer.readable(written)
        return Answer.of(hypothesis, text, pieces, confidence=confidence)

    def confidence(self, hypothesis: Hypothesis) -> float | None:
        """The probability that an answer is right; None where the model was not taught to tell."""
        return None

    def special_tokens(self) -> GenerationTokens:
        """The start and end of an answer, and what never stands in one."""
        tokens = self.tokens
        return {"start": tokens.start, "end": tokens.end, "suppress_tokens": tokens.suppress_tokens}

    def forced(self) -> list[int]:
        """What every answer begins with."""
        return []

    def predict(self, texts: Sequence[str], **options: Unpack[GenerationOptions]) -> list[str]:
        """One answer for each text, in order; an empty text gives an empty one.

        The settings of GenerationConfig may be changed here: `predict(texts, beam=5, length_penalty=1.0)`,
        `predict(texts, sample=True, top_p=0.9, seed=3)`.
        """
        return [answer.text for answer in self.answers(texts, **options)]

    def answers(self, texts: Sequence[str], **options: Unpack[GenerationOptions]) -> list[Answer]:
        """`predict` with log-probabilities, confidence, and whether each answer came to its end."""
        return [best for best, *_ in self.candidates(texts, **options)]

    def candidates(self, texts: Sequence[str], **options: Unpack[GenerationOptions]) -> list[list[Answer]]:
        """For each text its `n_best` answers, or as many samples, best first."""
        config = self.generation_config(options)
        encoded = self.encode(texts)
        return self.decode(encoded, self.generate(encoded.ids, config), config.n_best)

    def stream(self, text: str, **options: Unpack[GenerationOptions]) -> Stream[str, Answer]:
        """The answer bit by bit, each as soon as it is certain, in whole characters."""
        config, parts = self.generation_config(options), self._numbered(text, 0)
        return Stream(self._stream(parts, config))

    def prepared(self, item: Any) -> list[list[int]]:
        """The parts of a text, in ids."""
        return self.inputs(plain(item))

    def generation_config(self, overrides: Mapping[str, Any]) -> GenerationConfig:
        """The model's settings of generation, changed. Its beam is wide enough for `n_best`; sampling has none."""
        base = self.generation
        sample = overrides.get("sample", base.sample and "beam" not in overrides)
        beam = 1 if sample else max(base.beam, overrides.get("n_best", 1))
        defaults = {"n_best": 1, "sample": sample, "beam": beam, **({} if sample else SEARCHING)}
        return base.changed(**{**defaults, **overrides})

    def encode(self, texts: Sequence[str]) -> EncodedTexts:
        """The texts in ids, part by part. ItemError names the text that cannot be answered."""
        parts = [(n, ids) for n, text in enumerate(self._listed(texts)) for ids in self._numbered(text, n)]
        return EncodedTexts(len(texts), [ids for _, ids in parts], [owner for owner, _ in parts])

    def decode(
        self, encoded: EncodedTexts, hypotheses: Sequence[Sequence[Hypothesis]], n_best: int
    ) -> list[list[Answer]]:
        """The answers to the texts, from the hypotheses for each part."""
        parts: list[list[list[Answer]]] = [[] for _ in range(encoded.n_texts)]
        for owner, ids, several in zip(encoded.owners, encoded.ids, hypotheses, strict=True):
            parts[owner].append([self.answer(ids, hypothesis) for hypothesis in several])
        return [best_joined(answers, n_best) for answers in parts]

    def requests(self, inputs: Sequence[Sequence[int]], config: GenerationConfig) -> list[GenerationRequest]:
        """What an engine must be asked for to answer these ids, with this model's tokens."""
        forced = self.forced()
        prefixes = [forced] * len(inputs) if forced else None
        tokens = self.special_tokens()
        return create_requests(self.module, inputs, config, prefixes=prefixes, context=self.rolling_context, **tokens)

    def generate(
        self,
        inputs: Sequence[Sequence[int]],
        config: GenerationConfig,
        search_trace: list[list[SearchStep]] | None = None,
    ) -> list[list[Hypothesis]]:
        """The answers to inputs in ids; `search_trace` is as in `heedful.generation.generate`."""
        requests = self.requests(inputs, config)
        if search_trace is not None:
            search_trace[:] = [[] for _ in requests]
            for request, trace in zip(requests, search_trace, strict=True):
                request.search_trace = trace
        return GenerationEngine(self.module, max_wait_steps=None).generate(requests)

    def stream_tokens(self, ids: Sequence[int], config: GenerationConfig) -> Stream[int, Hypothesis]:
        """The tokens of the answer to one input, as they become certain."""
        (request,) = self.requests([ids], config)
        return GenerationEngine(self.module).stream(request)

    def tokenizer_files(self) -> dict[str, Any]:
        """That of the target too, where it is another one."""
        other = {} if self.target_tokenizer is self.tokenizer else {TARGET: self.target_tokenizer}
        return {SOURCE: self.tokenizer, **other}

    def generation_defaults(self) -> GenerationDefaults:
        """Where a model says no length, as much as it has room for: transformers would stop after twenty tokens."""
        generation = self.generation
        if generation.max_new_tokens is None:
            room = getattr(self.config, "max_length", LONGEST)  # of transformers' tables, even where ours have no end
            generation = generation.changed(max_new_tokens=max(room, generation.min_new_tokens + 1))
        return join_defaults(self.tokens, generation)

    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """How the answer was found, or a given `target` would be written, and where each word of it came from."""
        return inspect_seq2seq(self, item, inspection, options)

    def detokenizer(self, ids: Sequence[int]) -> IncrementalDetokenizer:
        """How an answer to the ids is spelled while it is written."""
        return IncrementalDetokenizer(partial(self.text, ids))

    def _stream(self, parts: Sequence[list[int]], config: GenerationConfig) -> Generator[str, None, Answer]:
        done: list[Answer] = []
        for ids in parts:
            if done:
                yield " "
            tokens, detokenizer = self.stream_tokens(ids, config), self.detokenizer(ids)
            yield from filter(None, map(detokenizer.add, tokens))
            assert tokens.answer is not None  # it has come to its end
            done.append(self.answer(ids, tokens.answer))
            if rest := detokenizer.rest(done[-1].text):
                yield rest
        return joined(done)


class IncrementalDetokenizer:
    """Tokens to text, as they come, in whole characters.

    Of what was written only the last bit is decoded again, before the new token: it decides about spaces.
    """

    def __init__(self, text: Callable[[Sequence[int]], str]) -> None:
        self._text = text
        self._written: list[int] = []
        self._begin = self._end = 0  # the last bit that was given out
        self._n_characters = 0  # given out

    def add(self, token: int) -> str:
        """What it adds; nothing while a character is not whole."""
        self._written.append(token)
        before, now = self._text(self._written[self._begin : self._end]), self._text(self._written[self._begin :])
        # A character too rare for a piece comes byte by byte: until it is whole, it looks damaged.
        if len(now) <= len(before) or not now.startswith(before) or now.endswith("\ufffd"):
            return ""
        self._begin = self._end if before or not self._end else self._begin
        self._end = len(self._written)
        self._n_characters += len(now) - len(before)
        return now[len(before) :]

    def rest(self, whole: str) -> str:
        """What was never given out of the whole."""
        return whole[self._n_characters :]
