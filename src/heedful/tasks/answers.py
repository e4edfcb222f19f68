"""What a model that writes answers: a text and what it is worth, put together from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import NamedTuple

from ..data.tokenizer import Piece
from ..generation import Hypothesis


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
    def of(cls, found: Hypothesis, text: str, pieces: Sequence[Piece], *, confidence: float | None = None) -> Answer:
        """An answer in ids, as text; the pieces are those of all that was written, its end included."""
        own = found.token_logprobs
        return cls(
            text,
            found.logprob,
            found.finished,
            confidence,
            found.score,
            len(own),
            tuple(ScoredPiece(piece.text, sum(own[piece.start : piece.stop])) for piece in pieces),
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
    found: list[tuple[Answer, ...]] = [()]
    for answers in parts:
        ways = [(*before, answer) for before, answer in product(found, answers)]
        found = sorted(ways, key=lambda way: -sum(part.score for part in way))[:count]
    return [joined(way) for way in found]
