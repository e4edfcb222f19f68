"""What every predictor that generates text has in common, whether it translates, rewrites or continues."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple, Self, Unpack, overload

from torch import nn

from ..config import FamilyConfig
from ..data.published_tokenizer import NAME, PublishedTokenizer
from ..families import GenerationDefaults
from ..generation import (
    GenerationConfig,
    GenerationEngine,
    GenerationOptions,
    GenerationRequest,
    Hypothesis,
    Stream,
    create_requests,
)
from ..lens.inputs import TeacherForced
from .bundle import Bundle, join_defaults
from .inspection import Inspection
from .inspection.generation import inspect_generator, read_answer
from .predictor import Errors, ItemError, OutputKind, Predictor, plain

SOURCE, TARGET = NAME, "target_tokenizer.json"  # the second only where source and target share none
MAX_PUBLISHED_TOKENS = 512  # of an answer, in a published model without max_length
SEARCH_DEFAULTS = {"temperature": 1.0, "top_k": None, "top_p": None, "min_p": None}  # settings of sampling alone


class ScoredPiece(NamedTuple):
    """A piece of the answer as text, and its log-probability; the last one is the end."""

    text: str
    logprob: float


@dataclass(frozen=True)
class Answer:
    """One answer.

    Attributes:
        finished: False where the answer was cut off before its end token.
        confidence: The probability that the answer is right, 0 if it is not finished; None where the model has not
            learned to estimate it.
        score: What answers are ranked by.
    """

    text: str
    logprob: float
    finished: bool
    confidence: float | None = None
    score: float = 0.0
    n_tokens: int = 0
    pieces: tuple[ScoredPiece, ...] = ()


def unfinished_share(answers: Sequence[Answer]) -> float:
    """Return how many of the answers were cut off before their end, in percent."""
    return 100.0 * sum(not answer.finished for answer in answers) / max(len(answers), 1)


def joined(parts: Sequence[Answer], gaps: Sequence[str]) -> Answer:
    """Join the answers to the parts of one text, with `gaps` around them; the whole is right if all of them are."""
    confidences = [part.confidence for part in parts if part.confidence is not None]
    return Answer(
        gaps[0] + "".join(part.text + gap for part, gap in zip(parts, gaps[1:], strict=True)),
        sum(part.logprob for part in parts),
        all(part.finished for part in parts),
        prod(confidences) if len(confidences) == len(parts) and parts else None,
        sum(part.score for part in parts),
        sum(part.n_tokens for part in parts),
        tuple(piece for part in parts for piece in part.pieces),
    )


def best_joined(parts: Sequence[Sequence[Answer]], gaps: Sequence[str], count: int) -> list[Answer]:
    """Return the `count` best combinations of one answer for each part."""
    best: list[tuple[Answer, ...]] = [()]
    for answers in parts:
        combinations = [(*before, answer) for before, answer in product(best, answers)]
        best = sorted(combinations, key=lambda each: -sum(part.score for part in each))[:count]
    return [joined(each, gaps) for each in best]


class TextParts(NamedTuple):
    """The ids of the parts of a text, and what stands before each of their answers and after the last one."""

    ids: list[list[int]]
    gaps: list[str]

    @classmethod
    def spaced(cls, ids: list[list[int]]) -> Self:
        """Return parts whose answers are joined with spaces."""
        return cls(ids, ["", *[" "] * (len(ids) - 1), ""] if ids else [""])


class TextGenerator(Predictor[str, str]):
    """Answers a text, part by part; a subclass divides a text into parts and turns token ids into text."""

    output_kind: ClassVar[OutputKind] = "text"
    generates_text: ClassVar[bool] = True
    batch_method: ClassVar[str | None] = "generate"
    comes_to_an_end: ClassVar[bool] = True  # an answer that does not was cut short
    tokenizer_class: ClassVar[type[Any]] = PublishedTokenizer

    def __init__(
        self, config: FamilyConfig, module: nn.Module, tokenizer: Any, settings: Any, target_tokenizer: Any = None
    ) -> None:
        super().__init__(config, module, settings)
        self.tokenizer = tokenizer
        self.target_tokenizer = target_tokenizer or tokenizer  # the same object where both sides share it

    @classmethod
    def from_bundle(cls, folder: Path, bundle: Bundle) -> Self:
        settings = bundle.settings_as(cls.settings_class, folder)
        source = cls.tokenizer_class.load(folder / SOURCE)
        target = source if getattr(settings, "joint", True) else cls.tokenizer_class.load(folder / TARGET)
        return cls(bundle.model, bundle.module(folder), source, settings, target)

    @property
    def generation(self) -> GenerationConfig:
        """The bundle's settings of generation, which a call may change."""
        generation: GenerationConfig = self.settings.generation
        return generation

    @property
    def tokens(self) -> GenerationDefaults:
        """The special tokens that begin, end and pad an answer, and those never written."""
        tokens: GenerationDefaults = self.settings.tokens
        return tokens

    @property
    def limit(self) -> int | None:
        """The most tokens that the model reads at once; None without a limit."""
        return None

    @property
    def rolling_context(self) -> int | None:
        """The tokens that the model sees at once, where an answer may be longer; None where it may not."""
        return None

    @abstractmethod
    def inputs(self, text: str) -> list[list[int]]:
        """Return the ids of each part of a text, none for an empty one; DataError where the model cannot read it."""

    def text(self, ids: Sequence[int], tokens: Sequence[int]) -> str:
        """Return the text of an answer's tokens; `ids` are the input that they answer."""
        text: str = self.target_tokenizer.decode(tokens)
        return text

    def answer(self, ids: Sequence[int], hypothesis: Hypothesis) -> Answer:
        """Return a hypothesis as text, its pieces with the end token if there is one."""
        tokens, logprobs = hypothesis.tokens, hypothesis.token_logprobs
        with_end = (*tokens, self.tokens.end[0]) if hypothesis.finished else tokens
        return Answer(
            self.text(ids, tokens),
            hypothesis.logprob,
            hypothesis.finished,
            self.confidence(hypothesis),
            hypothesis.score,
            len(logprobs),
            tuple(
                ScoredPiece(piece.text, sum(logprobs[piece.start : piece.stop]))
                for piece in self.target_tokenizer.readable(with_end)
            ),
        )

    def confidence(self, hypothesis: Hypothesis) -> float | None:
        """Return the probability that an answer is right; None where the model has not learned it."""
        return None

    def forced(self) -> list[int]:
        """Return the tokens that every answer must begin with."""
        return []

    @overload
    def predict(
        self, texts: Iterable[str], /, *, errors: Literal["raise"] = "raise", **options: Unpack[GenerationOptions]
    ) -> list[str]: ...

    @overload
    def predict(
        self, texts: Iterable[str], /, *, errors: Errors, **options: Unpack[GenerationOptions]
    ) -> list[str | ItemError]: ...

    def predict(
        self, texts: Iterable[str], /, *, errors: Errors = "raise", **options: Unpack[GenerationOptions]
    ) -> list[Any]:
        """Return one answer for each text, in order; an empty text has an empty answer.

        The options change settings of GenerationConfig: `predict(texts, beam=5, length_penalty=1.0)`,
        `predict(texts, sample=True, top_p=0.9, seed=3)`. `errors` is described under `Predictor.predict`.
        """
        return self.answer_each(texts, lambda valid: self.predict_valid(valid, **options), errors)

    def predict_valid(self, items: Sequence[str], **options: Unpack[GenerationOptions]) -> list[str]:
        return [best.text for best, *_ in self.candidates(items, **options)]

    @overload
    def answers(
        self, texts: Iterable[str], *, errors: Literal["raise"] = "raise", **options: Unpack[GenerationOptions]
    ) -> list[Answer]: ...

    @overload
    def answers(
        self, texts: Iterable[str], *, errors: Errors, **options: Unpack[GenerationOptions]
    ) -> list[Answer | ItemError]: ...

    def answers(
        self, texts: Iterable[str], *, errors: Errors = "raise", **options: Unpack[GenerationOptions]
    ) -> list[Any]:
        """Return what `predict` does, with log-probabilities, confidence, and whether each answer is finished."""
        return self.answer_each(texts, lambda valid: [best for best, *_ in self.candidates(valid, **options)], errors)

    def candidates(self, texts: Iterable[str], **options: Unpack[GenerationOptions]) -> list[list[Answer]]:
        """Return the `n_best` answers to each text, or as many samples, best first."""
        config, encoded = self.generation_config(options), self.encode(texts)
        inputs = [ids for text in encoded for ids in text.ids]
        self.warn_about(inputs)
        return self.decode(encoded, self.generate(inputs, config), config.n_best)

    def stream(self, text: str, **options: Unpack[GenerationOptions]) -> Stream[str, Answer]:
        """Return the answer in pieces of text as soon as each is certain, in whole characters."""
        config, parts = self.generation_config(options), self._numbered(text, 0)
        self.warn_about(parts.ids)
        return Stream(self._stream(parts, config))

    def prepared(self, item: Any) -> TextParts:
        return self.parts(plain(item))

    def parts(self, text: str) -> TextParts:
        """Return the parts of a text that are answered on their own, and what stands between the answers."""
        return TextParts.spaced(self.inputs(text))

    def warn_about(self, inputs: Sequence[Sequence[int]]) -> None:
        """Warn, once for a call, about inputs in ids whose answers may be worse."""

    def generation_config(self, overrides: Mapping[str, Any]) -> GenerationConfig:
        """Return the bundle's settings with changes. The beam is at least `n_best` wide; sampling uses no beam."""
        base = self.generation
        sample = overrides.get("sample", base.sample and "beam" not in overrides)
        beam = 1 if sample else max(base.beam, overrides.get("n_best", 1))
        defaults = {"n_best": 1, "sample": sample, "beam": beam, **({} if sample else SEARCH_DEFAULTS)}
        return base.changed(**{**defaults, **overrides})

    def encode(self, texts: Iterable[str]) -> list[TextParts]:
        """Return the parts of the texts; ItemError names a text that cannot be answered."""
        return [self._numbered(text, index) for index, text in enumerate(self._listed(texts))]

    def decode(
        self, encoded: Sequence[TextParts], hypotheses: Sequence[Sequence[Hypothesis]], n_best: int
    ) -> list[list[Answer]]:
        """Return the answers to the texts, given the hypotheses for each part."""
        remaining = iter(hypotheses)
        parts = [[[self.answer(ids, each) for each in next(remaining)] for ids in text.ids] for text in encoded]
        return [best_joined(answers, text.gaps, n_best) for answers, text in zip(parts, encoded, strict=True)]

    def requests(self, inputs: Sequence[Sequence[int]], config: GenerationConfig) -> list[GenerationRequest]:
        """Return the engine's requests for inputs in ids, with this model's special tokens."""
        tokens, forced = self.tokens, self.forced()
        return create_requests(
            self.module,
            inputs,
            config,
            start=tokens.start,
            end=tokens.end,
            suppress_tokens=tokens.suppress_tokens,
            prefixes=[forced] * len(inputs) if forced else None,
            context=self.rolling_context,
        )

    def generate(self, inputs: Sequence[Sequence[int]], config: GenerationConfig) -> list[list[Hypothesis]]:
        """Return the hypotheses for each input in ids, best first."""
        return GenerationEngine(self.module, max_wait_steps=None).generate(self.requests(inputs, config))

    def stream_tokens(self, ids: Sequence[int], config: GenerationConfig) -> Stream[int, Hypothesis]:
        """Return the tokens of the answer to one input as soon as each is certain."""
        (request,) = self.requests([ids], config)
        return GenerationEngine(self.module).stream(request)

    def tokenizer_files(self) -> dict[str, Any]:
        """Return the source tokenizer, and the target's where it is another one."""
        other = {} if self.target_tokenizer is self.tokenizer else {TARGET: self.target_tokenizer}
        return {SOURCE: self.tokenizer, **other}

    def generation_defaults(self) -> GenerationDefaults:
        """Return the special tokens and settings as transformers reads them.

        A model without max_new_tokens gets as many as it has room for: transformers would stop after twenty.
        """
        generation = self.generation
        if generation.max_new_tokens is None:
            room = getattr(self.config, "max_length", MAX_PUBLISHED_TOKENS)
            generation = generation.changed(max_new_tokens=max(room, generation.min_new_tokens + 1))
        return join_defaults(self.tokens, generation)

    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document of the answer, or of the option `target`; see `Predictor.inspect`."""
        return inspect_generator(self, item, inspection, options)

    def teacher_forced(self, text: str, answer: str | None = None) -> TeacherForced:
        """Return the module's inputs to read an answer; see `lens.inputs.teacher_forced`."""
        return read_answer(self, text, answer)

    def detokenizer(self, ids: Sequence[int]) -> IncrementalDetokenizer:
        """Return the detokenizer for the answer to an input in ids."""
        return IncrementalDetokenizer(partial(self.text, ids))

    def _stream(self, parts: TextParts, config: GenerationConfig) -> Generator[str, None, Answer]:
        answers: list[Answer] = []
        for gap, ids in zip(parts.gaps, parts.ids, strict=False):
            if gap:
                yield gap
            tokens, detokenizer = self.stream_tokens(ids, config), self.detokenizer(ids)
            yield from filter(None, map(detokenizer.add, tokens))
            assert tokens.answer is not None  # the stream has ended
            answers.append(self.answer(ids, tokens.answer))
            if rest := detokenizer.rest(answers[-1].text):
                yield rest
        if parts.gaps[-1]:
            yield parts.gaps[-1]
        return joined(answers, parts.gaps)


class IncrementalDetokenizer:
    """Turns the tokens of an answer into text as they come, in whole characters.

    Only the last piece of text is decoded again, in front of the new tokens: it decides about spaces.
    """

    def __init__(self, text: Callable[[Sequence[int]], str]) -> None:
        self._text = text
        self._tokens: list[int] = []
        self._begin = self._end = 0  # of the tokens of the last piece that was returned
        self._n_characters = 0  # returned so far

    def add(self, token: int) -> str:
        """Return the text that a token adds; nothing while a character is incomplete."""
        self._tokens.append(token)
        before, now = self._text(self._tokens[self._begin : self._end]), self._text(self._tokens[self._begin :])
        # A rare character comes byte by byte: until it is complete, it decodes as U+FFFD.
        if len(now) <= len(before) or not now.startswith(before) or now.endswith("\ufffd"):
            return ""
        self._begin = self._end if before or not self._end else self._begin
        self._end = len(self._tokens)
        self._n_characters += len(now) - len(before)
        return now[len(before) :]

    def rest(self, whole: str) -> str:
        """Return the part of the whole answer that `add` has not returned."""
        return whole[self._n_characters :]
