"""One input's search: its open prefixes, the best answers that reached an end, and whether more is worth it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from .config import GenerationConfig
from .hypothesis import PENALTIES, Hypothesis

Prefix = tuple["Prefix", int] | None  # a linked list from its last token back, so that beams share their past


class Sentence:
    """Told the candidates of every step, it says which of them go on."""

    def __init__(self, config: GenerationConfig, limit: int, end: int) -> None:
        self.best: list[Hypothesis] = []  # the n best that reached an end, best first
        self._config = config
        self._limit = limit
        self._end = end
        self._length = 0  # tokens written so far
        self._open: list[Prefix] = [None]

    def advance(self, totals: Sequence[float], tokens: Sequence[int], beams: Sequence[int]) -> list[int]:
        """Take candidates, best first: the logprob, the last token, and the open prefix it continues.

        Returns the places of those that go on, none once the answer is settled. An end counts among the first
        `beam` candidates only, so that a poor one does not win for being short.
        """
        self._length += 1
        cut = self._length == self._limit
        going: list[int] = []
        for place, (total, token, beam) in enumerate(zip(totals, tokens, beams, strict=True)):
            if token != self._end and not cut:
                going.append(place)
            elif place < self._config.beam and total > -float("inf"):
                self._finish(total, self._open[beam], token)
        if not going or self._settled(totals[going[0]]):
            return []
        del going[self._config.beam :]
        self._open = [(self._open[beams[place]], tokens[place]) for place in going]
        return going

    def _finish(self, total: float, prefix: Prefix, token: int) -> None:
        finished = token == self._end
        written = _tokens(prefix if finished else (prefix, token))
        insort(self.best, Hypothesis(written, total, total / self._penalty(self._length), finished), key=_rank)
        del self.best[self._config.n_best :]

    def _settled(self, total: float) -> bool:
        """Whether nothing that goes on from the best open prefix can still be among the best.

        Its logprob can only fall, but the penalty may favour any length up to the limit.
        """
        if len(self.best) < self._config.n_best:
            return total == -float("inf")
        return self.best[-1].score >= total / max(self._penalty(self._length + 1), self._penalty(self._limit))

    def _penalty(self, length: int) -> float:
        return PENALTIES[self._config.penalty](length, self._config.length_penalty)


def _rank(hypothesis: Hypothesis) -> float:
    return -hypothesis.score


def _tokens(prefix: Prefix) -> tuple[int, ...]:
    tokens = []
    while prefix is not None:
        prefix, token = prefix
        tokens.append(token)
    return tuple(reversed(tokens))
