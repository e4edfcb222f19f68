"""The figures of the parity ledger: how far two answers are apart, and how often they choose the same."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

BAR = 1e-5  # of the scale, in float32
TIE = 1e-5  # of the scale: two logits closer than this in the reference are one choice


@dataclass(frozen=True)
class Figures:
    """How far an answer is from another, as a share of the other's scale, and how often it chooses the same.

    There are no positions where nothing is chosen: vectors and forecasts.
    """

    difference: float  # the largest
    typical: float  # the root of the mean square
    agreeing: int = 0
    positions: int = 0

    @property
    def within_the_bar(self) -> bool:
        return self.difference <= BAR and self.agreeing == self.positions


def compare(mine: Tensor, reference: Tensor, *, chosen: bool) -> Figures:
    """Answers of one shape; where one of many is `chosen`, the last dimension is over the many.

    The scale is the reference's largest absolute value, at least 1. What is not finite differs by infinity.
    """
    if mine.shape != reference.shape:
        raise ValueError(f"answers of two shapes: {tuple(mine.shape)} and {tuple(reference.shape)}")
    mine, reference = mine.double(), reference.double()
    scale = max(1.0, float(reference.abs().max()))
    apart = (mine - reference).abs() / scale
    largest, typical = (_or_infinite(float(x)) for x in (apart.max(), apart.square().mean().sqrt()))
    if not chosen:
        return Figures(largest, typical)
    lost = reference.amax(dim=-1) - reference.gather(-1, mine.argmax(dim=-1, keepdim=True)).squeeze(-1)
    return Figures(largest, typical, int((lost < TIE * scale).sum()), lost.numel())


def worst(figures: Sequence[Figures]) -> Figures:
    """Return the largest differences, and the sums of the choices."""
    return Figures(
        max(item.difference for item in figures),
        max(item.typical for item in figures),
        sum(item.agreeing for item in figures),
        sum(item.positions for item in figures),
    )


def _or_infinite(x: float) -> float:
    return x if math.isfinite(x) else math.inf
