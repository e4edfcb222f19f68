"""The state of one search: open prefixes, finished hypotheses, and whether further steps can change the answer."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from bisect import insort
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple

from .config import GenerationConfig

if TYPE_CHECKING:
    from .request import GenerationRequest
    from .runners import ModelInput

# The settings in which the sequences of a batch may differ; the others are equal for the whole batch.
PER_SEQUENCE = {"seed", "max_new_tokens", "min_new_tokens", "length_penalty", "length_penalty_kind", "n_best"}
PER_BATCH = [setting.name for setting in fields(GenerationConfig) if setting.name not in PER_SEQUENCE]
IMPOSSIBLE = -math.inf
Outcome = Literal["open", "ended", "cut", "below the beam", "end below the beam"]


@dataclass(frozen=True)
class Hypothesis:
    """One answer: its tokens without start and end.

    `logprob` is the sum of `token_logprobs`, the model's own log-probabilities, the end token's among them. `score`
    ranks the answers: it includes logit biases and penalties and is normalized by length. `finished` is False if the
    limit cut the answer off before its end.
    """

    tokens: tuple[int, ...]
    logprob: float
    score: float
    finished: bool = True
    token_logprobs: tuple[float, ...] = ()

    @property
    def probability(self) -> float:
        return math.exp(self.logprob)


class Prefix(NamedTuple):
    """A linked list from the last token back, so that beams share their common beginning."""

    parent: Prefix | None
    token: int
    logprob: float


class Candidate(NamedTuple):
    """A continuation: the score of prefix and token, the token, the open prefix (beam), and the token's logprob."""

    total: float
    token: int
    beam: int
    logprob: float


@dataclass(frozen=True)
class CandidateOutcome:
    """What happened to one candidate in a search step, for a search trace.

    It stayed "open", "ended", or was "cut" at the limit; or it was pruned as "below the beam" or as an
    "end below the beam". A candidate's `beam` is an index into the open candidates of the previous step.
    """

    candidate: Candidate
    outcome: Outcome


SearchStep = list[CandidateOutcome]  # all candidates of one step


@dataclass(eq=False)
class SequenceState(ABC):
    """The search for the answers to one input, within one context.

    The batch calls `advance` with the candidates of every step. `min_new_tokens` and `limit` count the tokens of this
    search alone, where an answer continues past a context. Every answer begins with `prefix`; `prompt` precedes it.
    The random numbers depend on the seed and on `seed_key`.
    """

    request: GenerationRequest
    inputs: ModelInput
    input_length: int
    config: GenerationConfig
    limit: int
    min_new_tokens: int = 0
    prefix: Sequence[int] = ()
    prompt: Sequence[int] = ()
    seed_key: str = ""
    trace: list[SearchStep] | None = None

    hypotheses: list[Hypothesis] = field(default_factory=list, init=False)  # the n best that ended, best first
    length: int = field(default=0, init=False)  # tokens generated so far
    finished: bool = field(default=False, init=False)  # no more tokens will be generated
    aborted: bool = field(default=False, init=False)  # it leaves the batch at its next step
    error: Exception | None = field(default=None, init=False)  # why there is no answer

    def __post_init__(self) -> None:
        self.reset()

    @abstractmethod
    def select(self, candidates: Sequence[Candidate]) -> list[int]:
        """Process a step's candidates, which come best first. Return the places of those that continue."""

    def reset(self) -> None:
        """Restart the search from its first token."""
        self.hypotheses, self.length, self.finished, self.error = [], 0, False, None
        self.open: list[Prefix | None] = [None]
        self._random = Random(f"{self.config.seed} {self.seed_key}")
        if self.trace is not None:
            self.trace.clear()

    def advance(self, candidates: Sequence[Candidate]) -> list[int]:
        """Process a step's candidates, best first. Return the places of those that continue; none ends the search."""
        if self.aborted:
            self.finished = True
            return []
        self.length += 1
        if self.trace is not None:
            self.trace.append([])
        selected = self.select(candidates)
        self.finished = not selected
        return selected

    def fail(self, error: Exception) -> None:
        self.error, self.finished = error, True

    @cached_property
    def batch_key(self) -> Hashable:
        """Sequences with equal keys may share a batch: the same settings apply to all their steps."""
        config, request = self.config, self.request
        shared = (getattr(config, name) for name in PER_BATCH)
        bias = tuple(request.logit_bias.items())
        tokens = (request.start, tuple(request.end), tuple(request.suppress_tokens), bias)
        return (*shared, config.width, *tokens, type(self.inputs))

    def open_tokens(self) -> Iterator[tuple[int, ...]]:
        """Iterate over the tokens of every open prefix."""
        return (_tokens(prefix) for prefix in self.open)

    def certain_tokens(self) -> tuple[int, ...]:
        """Return the tokens that the best answer is certain to begin with; all once the search has finished."""
        if self.finished:
            return self.hypotheses[0].tokens
        return common_prefix([*self.open_tokens(), *(best.tokens for best in self.hypotheses[:1])])

    def certain_logprobs(self) -> tuple[float, ...]:
        """Return the log-probability of each certain token."""
        count = len(self.certain_tokens())
        if self.finished:
            return self.hypotheses[0].token_logprobs[:count]
        return tuple(part.logprob for part in _parts(self.open[0])[:count])

    def random_numbers(self) -> list[float]:
        return [self._random.random() for _ in range(self.config.width)]

    def _finish(self, candidate: Candidate) -> None:
        """Add an answer that ended or reached the limit, if it is among the n best."""
        score = candidate.total / self.config.length_normalizer(self.length)
        if len(self.hypotheses) == self.config.n_best and score <= self.hypotheses[-1].score:
            return
        prefix = Prefix(self.open[candidate.beam], candidate.token, candidate.logprob)
        finished = candidate.token in self.request.end
        tokens, logprobs = _tokens(prefix), tuple(part.logprob for part in _parts(prefix))
        best = Hypothesis(tokens[:-1] if finished else tokens, sum(logprobs), score, finished, logprobs)
        insort(self.hypotheses, best, key=lambda hypothesis: -hypothesis.score)
        del self.hypotheses[self.config.n_best :]

    def _record(self, candidate: Candidate, outcome: Outcome) -> None:
        if self.trace is not None and candidate.total > IMPOSSIBLE:
            self.trace[-1].append(CandidateOutcome(candidate, outcome))


class BeamSearchState(SequenceState):
    """Beam search: the open prefixes compete for the beam."""

    def select(self, candidates: Sequence[Candidate]) -> list[int]:
        """Accept an end token only among the first `beam` candidates, so that no poor answer wins by being short."""
        width, at_limit = self.config.beam, self.length == self.limit
        selected: list[int] = []
        for place, candidate in enumerate(candidates):
            ends = candidate.token in self.request.end
            if not ends and not at_limit:
                self._record(candidate, "open" if len(selected) < width else "below the beam")
                selected.append(place)  # impossible ones too: every sequence has the same number of rows
            elif place < width and candidate.total > IMPOSSIBLE:
                self._finish(candidate)
                self._record(candidate, "ended" if ends else "cut")
            else:
                self._record(candidate, "end below the beam" if ends else "below the beam")
        if not selected or self._cannot_improve(candidates[selected[0]].total):
            return []
        del selected[width:]
        self.open = [
            Prefix(self.open[chosen.beam], chosen.token, chosen.logprob)
            for chosen in (candidates[place] for place in selected)
        ]
        return selected

    def _cannot_improve(self, total: float) -> bool:
        """Return True if no continuation of the best open prefix can still be among the n best.

        Its log-probability can only fall, but the length penalty may favor any length up to the limit.
        """
        if len(self.hypotheses) < self.config.n_best:
            return total == IMPOSSIBLE
        normalizer = self.config.length_normalizer
        return self.hypotheses[-1].score >= total / max(normalizer(self.length + 1), normalizer(self.limit))


class SamplingState(SequenceState):
    """Independent answers: samples, or the single answer of greedy search."""

    def reset(self) -> None:
        super().reset()
        self._ended = [False] * self.config.width

    def select(self, candidates: Sequence[Candidate]) -> list[int]:
        """Continue row i with candidate i. Rows that have ended stay until the last one has."""
        at_limit = self.length == self.limit
        for row, candidate in enumerate(candidates):
            if self._ended[row]:
                continue
            ends = candidate.token in self.request.end
            self._record(candidate, "ended" if ends else "cut" if at_limit else "open")
            if (ends or at_limit) and candidate.total > IMPOSSIBLE:
                self._finish(candidate)
                self._ended[row] = True
        pairs = zip(candidates, self._ended, strict=True)
        if all(ended or candidate.total == IMPOSSIBLE for candidate, ended in pairs):
            return []
        self.open = [Prefix(self.open[chosen.beam], chosen.token, chosen.logprob) for chosen in candidates]
        return list(range(len(candidates)))


def state_class(config: GenerationConfig) -> type[BeamSearchState | SamplingState]:
    """Return the class for a config: beams that compete, or independent answers."""
    return BeamSearchState if config.beam > 1 else SamplingState


def common_prefix(sequences: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """Return the longest beginning that all sequences share."""
    shortest = min(sequences, key=len)
    differing = (n for n, token in enumerate(shortest) if any(other[n] != token for other in sequences))
    return shortest[: next(differing, len(shortest))]


def _parts(prefix: Prefix | None) -> list[Prefix]:
    parts = []
    while prefix is not None:
        parts.append(prefix)
        prefix = prefix.parent
    return parts[::-1]


def _tokens(prefix: Prefix | None) -> tuple[int, ...]:
    return tuple(part.token for part in _parts(prefix))
