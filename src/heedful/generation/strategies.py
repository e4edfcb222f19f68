"""Which tokens may come next: one small class for each way to choose.

Shapes: B sentences, W open prefixes of each, R = B · W rows, V vocabulary, C candidates of each sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


@dataclass(frozen=True, eq=False)
class Candidates:
    """The ways to go on that a step leaves, best first; each is (B, C)."""

    totals: Tensor  # the logprob of the prefix and the token together
    tokens: Tensor
    beams: Tensor  # which of the sentence's prefixes each continues


class Strategy(Protocol):
    """A way to choose. Every sentence is left with equally many candidates."""

    def candidates(self, logprobs: Tensor, totals: Tensor) -> Candidates:
        """From the next token's logprobs (R, V) and those of the prefixes (B, W)."""


class Greedy:
    """The most likely token, and nothing beside it."""

    def candidates(self, logprobs: Tensor, totals: Tensor) -> Candidates:
        best, tokens = logprobs.max(dim=-1, keepdim=True)
        return Candidates(totals + best, tokens, tokens.new_zeros(1, 1).expand_as(tokens))


class Beam:
    """The `width` best of all ways to go on, and as many more in case the best ones end."""

    def __init__(self, width: int) -> None:
        self.width = width

    def candidates(self, logprobs: Tensor, totals: Tensor) -> Candidates:
        # Of the candidates of one row only one can be the end, so no more than these can be needed.
        best, tokens = logprobs.topk(min(self.width + 1, logprobs.shape[-1]))  # (R, k)
        n_sentences, each = totals.shape[0], tokens.shape[-1]
        every = (totals.view(-1, 1) + best).view(n_sentences, -1)  # (B, W · k)
        totals, places = every.topk(min(2 * self.width, every.shape[-1]))
        return Candidates(totals, tokens.view(n_sentences, -1).gather(1, places), places // each)
