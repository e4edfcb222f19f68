"""One input's answers while they are written: open prefixes, what has ended, and whether more is worth it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, Protocol, Self

from .config import GenerationConfig
from .hypothesis import PENALTIES, Hypothesis


class Prefix(NamedTuple):
    """A linked list from its last token back, so that beams share their past."""

    before: Prefix | None
    token: int
    logprob: float


class Candidate(NamedTuple):
    """A way to go on: what the prefix and the token are worth together, which open prefix, and the token's own."""

    total: float
    token: int
    beam: int
    logprob: float


@dataclass(frozen=True)
class Fate:
    """What became of one candidate, for whoever wants to see the search.

    It is "open", has "ended", or was "cut" at the limit; or it was pruned, being "below the beam" or an
    "end below the beam". The `beam` of a candidate counts the open ones of the step before.
    """

    candidate: Candidate
    became: str


@dataclass
class Request:
    """What was asked for one input, and where its answers go."""

    index: int  # its place among the inputs
    ids: Sequence[int]
    limit: int  # most tokens to write, the end among them
    forced: Sequence[int] = ()  # what every answer begins with
    past: Sequence[int] = ()  # what was written before the answer: a prompt
    key: str = ""  # what its random draws are made from, beside the seed
    history: list[list[Fate]] | None = None  # filled step by step where it is wanted
    told: Callable[[Sentence], None] | None = None  # called after each step, where others share the batch
    unwanted: bool = False  # nobody waits for it any more: it leaves at its next step


class Sentence(Protocol):
    """What the loop needs to know."""

    request: Request
    best: list[Hypothesis]  # the n best that reached an end, best first
    length: int  # tokens written so far
    settled: bool  # nothing more will be written
    error: Exception | None  # why there is no answer

    def advance(self, candidates: Sequence[Candidate]) -> list[int]:
        """Take a step's candidates, best first; the places of those that go on, none once all is settled."""

    def fail(self, error: Exception) -> None:
        """There will be no answer. Where nobody is told, the error is raised, and ends the others of its batch too."""

    def afresh(self) -> Sentence:
        """The same, before its first step."""

    def certain(self) -> tuple[int, ...]:
        """The tokens that the best answer is sure to begin with; all of them once it is settled."""

    def logprobs(self, count: int) -> tuple[float, ...]:
        """What the model gives the first of these."""

    def written(self) -> Iterator[tuple[int, ...]]:
        """The tokens of every open prefix."""

    def draws(self) -> list[float]:
        """Uniform random numbers, one for each answer."""


@dataclass
class _Books:
    """What both kinds of sentence keep."""

    config: GenerationConfig
    ends: Sequence[int]
    request: Request
    best: list[Hypothesis] = field(default_factory=list)
    length: int = 0
    settled: bool = False
    error: Exception | None = None
    open: list[Prefix | None] = field(default_factory=lambda: [None])

    def __post_init__(self) -> None:
        self._random = Random(f"{self.config.seed} {self.request.key}")

    def advance(self, candidates: Sequence[Candidate]) -> list[int]:
        if self.request.unwanted:
            self.settled = True
            return []
        self.length += 1
        if self.request.history is not None:
            self.request.history.append([])
        going = self.going(candidates)
        self.settled = not going
        return going

    def going(self, candidates: Sequence[Candidate]) -> list[int]:
        """The places of the candidates that go on."""
        raise NotImplementedError

    def fail(self, error: Exception) -> None:
        if self.request.told is None:
            raise error
        self.error, self.settled = error, True

    def draws(self) -> list[float]:
        return [self._random.random() for _ in range(self.config.width)]

    def written(self) -> Iterator[tuple[int, ...]]:
        return (_tokens(prefix) for prefix in self.open)

    def afresh(self) -> Self:
        return type(self)(self.config, self.ends, self.request)

    def certain(self) -> tuple[int, ...]:
        if self.settled:
            return self.best[0].tokens
        possible = [*self.written(), *(answer.tokens for answer in self.best[:1])]
        shortest = min(possible, key=len)
        common = (n for n, token in enumerate(shortest) if any(other[n] != token for other in possible))
        return shortest[: next(common, len(shortest))]

    def logprobs(self, count: int) -> tuple[float, ...]:
        if self.settled:
            return self.best[0].token_logprobs[:count]
        return tuple(part.logprob for part in _parts(self.open[0])[:count])

    def finish(self, candidate: Candidate) -> None:
        """An answer that has ended, or that the limit cuts; it is kept while it is among the best."""
        score = candidate.total / self.penalty(self.length)
        if len(self.best) == self.config.n_best and score <= self.best[-1].score:
            return
        prefix = Prefix(self.open[candidate.beam], candidate.token, candidate.logprob)
        finished = candidate.token in self.ends
        tokens = _tokens(prefix)
        answer = Hypothesis(
            tokens=tokens[:-1] if finished else tokens,
            logprob=_total(prefix),
            score=score,
            finished=finished,
            token_logprobs=tuple(part.logprob for part in _parts(prefix)),
        )
        insort(self.best, answer, key=lambda answer: -answer.score)
        del self.best[self.config.n_best :]

    def note(self, candidate: Candidate, became: str) -> None:
        """For the history, where it is wanted; what is impossible was never considered."""
        if self.request.history is not None and candidate.total > -float("inf"):
            self.request.history[-1].append(Fate(candidate, became))

    def penalty(self, length: int) -> float:
        return PENALTIES[self.config.penalty](length, self.config.length_penalty)


class Searched(_Books):
    """The beams of a search: they compete."""

    def going(self, candidates: Sequence[Candidate]) -> list[int]:
        """An end counts among the first `beam` candidates only, so that a poor one does not win for being short."""
        width, cut = self.config.beam, self.length == self.request.limit
        going: list[int] = []
        for place, candidate in enumerate(candidates):
            ends = candidate.token in self.ends
            if not ends and not cut:
                self.note(candidate, "open" if len(going) < width else "below the beam")
                going.append(place)  # an impossible one too: every sentence has as many rows
            elif place < width and candidate.total > -float("inf"):
                self.finish(candidate)
                self.note(candidate, "ended" if ends else "cut")
            else:
                self.note(candidate, "end below the beam" if ends else "below the beam")
        if not going or self._settled(candidates[going[0]].total):
            return []
        del going[width:]
        self.open = [
            Prefix(self.open[chosen.beam], chosen.token, chosen.logprob)
            for chosen in (candidates[place] for place in going)
        ]
        return going

    def _settled(self, total: float) -> bool:
        """Whether nothing that goes on from the best open prefix can still be among the best.

        Its logprob can only fall, but the penalty may favour any length up to the limit.
        """
        if len(self.best) < self.config.n_best:
            return total == -float("inf")
        return self.best[-1].score >= total / max(self.penalty(self.length + 1), self.penalty(self.request.limit))


class Drawn(_Books):
    """Answers that know nothing of each other: samples, or the one of greedy search."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._ended = [False] * self.config.width

    def going(self, candidates: Sequence[Candidate]) -> list[int]:
        """Row i goes on as candidate i; one that has ended is carried along until the last has."""
        cut = self.length == self.request.limit
        for row, candidate in enumerate(candidates):
            if self._ended[row]:
                continue
            ends = candidate.token in self.ends
            self.note(candidate, "ended" if ends else "cut" if cut else "open")
            if (ends or cut) and candidate.total > -float("inf"):
                self.finish(candidate)
                self._ended[row] = True
        open_ones = zip(candidates, self._ended, strict=True)
        if all(ended or candidate.total == -float("inf") for candidate, ended in open_ones):
            return []
        self.open = [Prefix(self.open[chosen.beam], chosen.token, chosen.logprob) for chosen in candidates]
        return list(range(len(candidates)))


def _parts(prefix: Prefix | None) -> list[Prefix]:
    parts = []
    while prefix is not None:
        parts.append(prefix)
        prefix = prefix.before
    return parts[::-1]


def _tokens(prefix: Prefix | None) -> tuple[int, ...]:
    return tuple(part.token for part in _parts(prefix))


def _total(prefix: Prefix | None) -> float:
    return sum(part.logprob for part in _parts(prefix))
