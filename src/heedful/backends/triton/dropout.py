"""Dropout on a GPU without a mask in memory: a hash of a number's place decides whether it stays, in both directions.
The seed is on the device, so that a recorded step drops other numbers each time it is replayed."""

from __future__ import annotations

from typing import NamedTuple

import triton
import triton.language as tl
from torch import Tensor

LEVELS = 2**24  # that a share can have


class Dropping(NamedTuple):
    """The share to drop, the seed on the device, and the number of this use of the seed."""

    share: float
    seed: Tensor
    number: int

    @property
    def kernel_args(self) -> tuple[Tensor, int, int, float]:
        """Seed, number, the level below which a hash means dropped, and the factor for the remaining numbers."""
        return self.seed, self.number, round(self.share * LEVELS), 1 / (1 - self.share)


@triton.jit
def _hashed(x):
    """Of 32 bits, every one of which then depends on all."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def stays(places, seed, number, level):
    """Whether numbers at these places stay, in the use of the seed (a pointer) that has this number."""
    drawn = tl.load(seed)
    low, high = drawn.to(tl.uint32), (drawn >> 32).to(tl.uint32) ^ _hashed(number.to(tl.uint32))
    return (_hashed(_hashed(places.to(tl.uint32) ^ low) ^ high) >> 8).to(tl.int32) >= level
