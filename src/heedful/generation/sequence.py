"""One search while it runs: open prefixes, finished hypotheses, and whether more steps can change the answer."""

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

# The settings that each sequence of a batch may have for itself; the others are the same for the whole batch.
PER_SEQUENCE = {"seed", "max_new_tokens", "min_new_tokens", "length_penalty", "length_penalty_kind", "n_best"}
PER_BATCH = [setting.name for setting in fields(GenerationConfig) if setting.name not in PER_SEQUENCE]
IMPOSSIBLE = -math.inf
Outcome = Literal["open", "ended", "cut", "below the beam", "end below the beam"]


@dataclass(frozen=True)
class Hypothesis:
    """One answer: its tokens without start and end.

    `logprob` is the plain sum of `token_logprobs`, what the model itself gives each token, the end included;
    `score` is what answers are ranked by: normalized by length, after logit biases and penalties.
    `finished` is False where the limit cut the answer off before its end.
    """

    tokens: tuple[int, ...]
    logprob: float
    score: float
    finished: bool = True
    token_logprobs: tuple[float, ...] = ()

    @property
    def probability(self) -> float:
        """What the model gives the whole answer."""
        return math.exp(self.logprob)


class Prefix(NamedTuple):
    """A linked list from its last token back, so that beams share their past."""

    before: Prefix | None
    token: int
    logprob: float


class Candidate(NamedTuple):
    """A continuation: the score of prefix and token together, the open prefix (beam), and the token's logprob."""

    total: float
    token: int
    beam: int
    logprob: float


@dataclass(frozen=True)
class CandidateOutcome:
    """What became of one candidate, for whoever wants to see the search.

    It is "open", has "ended", or was "cut" at the limit; or it was pruned, being "below the beam" or an
    "end below the beam". The `beam` of a candidate counts the open ones of the step before.
    """

    candidate: Candidate
    outcome: Outcome


SearchStep = list[CandidateOutcome]  # all candidates of one step


@dataclass(eq=False)
class SequenceState(ABC):
    """The search for the answers to one input, within one context.

    Its batch gives it the candidates of every step (`advance`). `min_new_tokens` and `limit` count the tokens of this
    search: of an answer that goes on past the context, a part. `prefix` is what every answer begins with, `prompt`
    what stands before it, `seed_key` what its random numbers depend on beside the seed.
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
    length: int = field(default=0, init=False)  # tokens written so far
    finished: bool = field(default=False, init=False)  # nothing more will be written
    aborted: bool = field(default=False, init=False)  # nobody waits for it: it leaves the batch at its next step
    error: Exception | None = field(default=None, init=False)  # why there is no answer

    def __post_init__(self) -> None:
        self.reset()

    @abstractmethod
    def select(self, candidates: Sequence[Candidate]) -> list[int]:
        """Take a step's candidates, best first; the places of those that go on."""

    def reset(self) -> None:
        """Begin again, as if nothing had been written."""
        self.hypotheses, self.length, self.finished, self.error = [], 0, False, None
        self.open: list[Prefix | None] = [None]
        self._random = Random(f"{self.config.seed} {self.seed_key}")
        if self.trace is not None:
            self.trace.clear()

    def advance(self, candidates: Sequence[Candidate]) -> list[int]:
        """Take a step's candidates, best first; the places of those that go on, none once the search has finished."""
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
        """There will be no answer."""
        self.error, self.finished = error, True

    @cached_property
    def batch_key(self) -> Hashable:
        """Sequences with equal keys may share a batch: the settings of every step are the same."""
        config, request = self.config, self.request
        shared = (getattr(config, name) for name in PER_BATCH)
        bias = tuple(request.logit_bias.items())
        tokens = (request.start, tuple(request.end), tuple(request.suppress_tokens), bias)
        return (*shared, config.width, *tokens, type(self.inputs))

    def written(self) -> Iterator[tuple[int, ...]]:
        """The tokens of every open prefix."""
        return (_tokens(prefix) for prefix in self.open)

    def certain_tokens(self) -> tuple[int, ...]:
        """The tokens that the best answer is sure to begin with; all of them once the search has finished."""
        if self.finished:
            return self.hypotheses[0].tokens
        return common_prefix([*self.written(), *(best.tokens for best in self.hypotheses[:1])])

    def certain_logprobs(self) -> tuple[float, ...]:
        """The log-probability of each certain token."""
        count = len(self.certain_tokens())
        if self.finished:
            return self.hypotheses[0].token_logprobs[:count]
        return tuple(part.logprob for part in _parts(self.open[0])[:count])

    def random_numbers(self) -> list[float]:
        """Uniform random numbers, one for each answer."""
        return [self._random.random() for _ in range(self.config.width)]

    def _finish(self, candidate: Candidate) -> None:
        """Take an answer that has ended, or that the limit cuts, while it is among the best."""
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
        """For the trace, where there is one; an impossible candidate was never considered."""
        if self.trace is not None and candidate.total > IMPOSSIBLE:
            self.trace[-1].append(CandidateOutcome(candidate, outcome))


class BeamSearchState(SequenceState):
    """The beams of a search: they compete."""

    def select(self, candidates: Sequence[Candidate]) -> list[int]:
        """An end counts among the first `beam` candidates only, so that a poor one does not win for being short."""
        width, at_limit = self.config.beam, self.length == self.limit
        selected: list[int] = []
        for place, candidate in enumerate(candidates):
            ends = candidate.token in self.request.end
            if not ends and not at_limit:
                self._record(candidate, "open" if len(selected) < width else "below the beam")
                selected.append(place)  # an impossible one too: every sequence has as many rows
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
        """Whether nothing that continues the best open prefix can still be among the best.

        Its logprob can only fall, but the length penalty may favor any length up to the limit.
        """
        if len(self.hypotheses) < self.config.n_best:
            return total == IMPOSSIBLE
        normalizer = self.config.length_normalizer
        return self.hypotheses[-1].score >= total / max(normalizer(self.length + 1), normalizer(self.limit))


class SamplingState(SequenceState):
    """Answers that are independent of each other: samples, or the one of greedy search."""

    def reset(self) -> None:
        super().reset()
        self._ended = [False] * self.config.width

    def select(self, candidates: Sequence[Candidate]) -> list[int]:
        """Row i goes on as candidate i; one that has ended is carried along until the last has."""
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
    """The state that a config asks for: beams that compete, or answers that are independent of each other."""
    return BeamSearchState if config.beam > 1 else SamplingState


def common_prefix(sequences: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The tokens that all of them begin with."""
    shortest = min(sequences, key=len)
    differing = (n for n, token in enumerate(shortest) if any(other[n] != token for other in sequences))
    return shortest[: next(differing, len(shortest))]


def _parts(prefix: Prefix | None) -> list[Prefix]:
    parts = []
    while prefix is not None:
        parts.append(prefix)
        prefix = prefix.before
    return parts[::-1]


def _tokens(prefix: Prefix | None) -> tuple[int, ...]:
    return tuple(part.token for part in _parts(prefix))
