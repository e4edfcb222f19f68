"""Which tokens come next: one small class for each way to choose, greedy, beam or sample.

Shapes: B sequences, W open prefixes of each, R = B · W rows, V vocabulary, C candidates of each sequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from ..backends.native.library import top
from .config import GenerationConfig
from .sequence import SequenceState


@dataclass(frozen=True, eq=False)
class StepCandidates:
    """The candidates of a step, best first; each tensor is (B, C)."""

    totals: Tensor  # the score of the prefix and the token together
    tokens: Tensor
    beams: Tensor  # which of the sequence's prefixes each continues


class Strategy(Protocol):
    """A way to choose. Every sequence is left with equally many candidates."""

    def choose(self, scores: Tensor, totals: Tensor, sequences: Sequence[SequenceState]) -> StepCandidates:
        """From the next token's logprobs (R, V) and those of the prefixes (B, W)."""


def strategy_of(config: GenerationConfig, n_ends: int = 1) -> Strategy:
    """The way to choose that a config asks for, where so many tokens end an answer."""
    if config.sample:
        return Sample(config)
    return Greedy() if config.beam == 1 else Beam(config.beam, n_ends)


class Greedy:
    """The most likely token, and nothing beside it."""

    def choose(self, scores: Tensor, totals: Tensor, sequences: Sequence[SequenceState]) -> StepCandidates:
        if scores.device.type == "cpu":  # where numpy takes a tenth of torch's time
            tokens = torch.from_numpy(scores.numpy().argmax(axis=-1))[:, None]  # (R, 1)
        else:
            tokens = scores.argmax(dim=-1, keepdim=True)
        return StepCandidates(totals + scores.gather(1, tokens), tokens, tokens.new_zeros(1, 1).expand_as(tokens))


class Beam:
    """The `width` best of all ways to go on, and as many more for each of the tokens that end an answer."""

    def __init__(self, width: int, n_ends: int = 1) -> None:
        self.width = width
        self.n_ends = n_ends

    def choose(self, scores: Tensor, totals: Tensor, sequences: Sequence[SequenceState]) -> StepCandidates:
        # Of the candidates of one row no more than the ends can be ends, so no more than these can be needed.
        best, tokens = top(scores, min(self.width + self.n_ends, scores.shape[-1]))  # (R, k)
        n_sequences, each, wanted = totals.shape[0], tokens.shape[-1], self.width * (1 + self.n_ends)
        every = (totals.view(-1, 1) + best).view(n_sequences, -1)  # (B, W · k)
        totals, places = every.topk(min(wanted, every.shape[-1]))
        tokens, beams = tokens.view(n_sequences, -1).gather(1, places), places // each
        # A small vocabulary fills no beam at first: what is missing is there and impossible.
        missing = wanted - totals.shape[1]
        if missing:
            totals = F.pad(totals, (0, missing), value=-torch.inf)
            tokens, beams = F.pad(tokens, (0, missing)), F.pad(beams, (0, missing))
        return StepCandidates(totals, tokens, beams)


class Sample:
    """A token for each answer, drawn from what the config's rules leave."""

    def __init__(self, config: GenerationConfig) -> None:
        self._config = config

    def choose(self, scores: Tensor, totals: Tensor, sequences: Sequence[SequenceState]) -> StepCandidates:
        n_sequences, width = totals.shape
        uniform = torch.tensor([sequence.random_numbers() for sequence in sequences], dtype=torch.float64)
        n_answers = uniform.shape[1]
        uniform = uniform.to(scores.device, non_blocking=True).view(scores.shape[0], -1)
        config = self._config
        probabilities, order = truncated_probabilities(
            scores, temperature=config.temperature, top_k=config.top_k, top_p=config.top_p, min_p=config.min_p
        )
        tokens = order.gather(1, draw(probabilities, uniform))  # (R, n) where n = 1 after the first step
        totals = totals.view(-1, 1) + scores.gather(1, tokens)
        beams = torch.arange(n_answers, device=tokens.device) if width > 1 else tokens.new_zeros(n_answers)
        shape = n_sequences, n_answers
        return StepCandidates(totals.view(shape), tokens.view(shape), beams.expand(shape))


def truncated_probabilities(
    logprobs: Tensor,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
) -> tuple[Tensor, Tensor]:
    """From logprobs (…, V) the probabilities that are left, most likely first, and their tokens.

    The temperature comes first; then each rule looks at what the one before it has left.
    """
    scaled = logprobs / temperature
    if top_k is not None and top_k < logprobs.shape[-1]:
        best, tokens = scaled.topk(top_k)
    else:
        best, tokens = scaled.sort(dim=-1, descending=True, stable=True)
    left = best.softmax(dim=-1)
    if top_p is not None:  # the token that reaches top_p belongs to them
        left = _renormalized(left, left.cumsum(dim=-1) - left >= top_p)
    if min_p is not None:
        left = _renormalized(left, left < min_p * left[..., :1])
    return left, tokens


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """The place in (…, V) probabilities that each of (…, n) uniform numbers falls on."""
    reached = probabilities.double().cumsum(dim=-1)
    places = torch.searchsorted(reached, uniform.double() * reached[..., -1:], right=True)
    last = (probabilities > 0).sum(dim=-1, keepdim=True) - 1  # rounding must not reach what is impossible
    return torch.minimum(places, last.clamp(min=0))  # where all is impossible, one of them


def _renormalized(probabilities: Tensor, removed: Tensor) -> Tensor:
    """The best one always stays."""
    removed[..., 0] = False
    left = probabilities.masked_fill(removed, 0.0)
    return left / left.sum(dim=-1, keepdim=True)
