"""What the quick parts of a module share in one pass: the seed of its dropout, and a second stream.

Gradients of weights are needed only when the whole backward pass is over, and each of them alone leaves most of a large
GPU idle: they are computed on a stream of their own, beside what everything else waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

MOST = 2**30  # numbers that may be held until the end of a pass for what is computed beside it


class Beside:
    """Begin it before every pass."""

    def __init__(self, device: torch.device) -> None:
        self.stream = torch.cuda.Stream(device)
        self.seed = torch.zeros(1, dtype=torch.int64, device=device)
        self.begin()

    def begin(self) -> None:
        """Draw another seed, by torch's own generator, which alone has a state; nothing was used yet."""
        self.seed.random_()
        self.draws = 0
        self.uses: dict[int, int] = {}
        self.held: list[tuple[Tensor, ...]] = []
        self.numbers = 0  # that are held

    def draw(self) -> tuple[Tensor, int]:
        """The seed, and a number that nobody else has in this pass."""
        self.draws += 1
        return self.seed, self.draws

    def counting(self, *weights: Tensor) -> Beside:
        """Itself, which knows now that these weights are used once more: the gradients of several uses are added up by
        autograd, which knows only its own stream."""
        for weight in weights:
            self.uses[id(weight)] = self.uses.get(id(weight), 0) + 1
        return self

    def run(self, weights: Sequence[Tensor], tensors: tuple[Tensor, ...], work: Callable[[], Any]) -> None:
        """In a backward pass, do some work that makes gradients of weights whose uses were counted: at the end of the
        pass it is done. `tensors` are all that it reads and writes."""
        numbers = self.numbers + sum(tensor.numel() for tensor in tensors)
        if numbers > MOST or any(self.uses[id(weight)] > 1 for weight in weights):
            work()
            return
        if not self.held:
            torch.autograd.Variable._execution_engine.queue_callback(self._join)
        self.numbers = numbers
        self.held.append(tensors)  # so that their memory is not given to others meanwhile
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            work()

    def totals(self, parts: Tensor, *vectors: Tensor) -> Sequence[Tensor]:
        """The gradients of vectors (D,), one each, of which every program has its sums: (M, P, D)."""
        from ..kernels.sums import totals

        out = vectors[0].new_empty(len(vectors), parts.shape[2])
        self.run(vectors, (parts, out), lambda: totals(parts, out))
        return out.unbind()

    def _join(self) -> None:
        torch.cuda.current_stream().wait_stream(self.stream)
        self.held.clear()
