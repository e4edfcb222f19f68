"""Steps recorded once as CUDA graphs, one for each shape of batch, and replayed: a launch instead of hundreds.

A graph reads and writes the same memory each time. Batches are copied to where it reads; gradients, sums, weights
and the optimiser's state lie outside of it. Dropout stays random: a graph draws from torch's generator, which every
replay moves on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from ..parallel import Rounded
from ..quick import quicken
from .engine import Engine

SHORT = 128  # tokens in a row
PLANLESS = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
MOST = 64  # graphs; what has still other shapes is run as it comes


class Captured(Engine):
    """The first batch of a shape runs as it comes, which also warms up its kernels; the second is recorded."""

    name = "graph"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if isinstance(self.held, Rounded):
            quicken(self.held.module)
        self.graphs: dict[Any, Graph] = {}
        self.seen: set[Any] = set()
        self.pool = torch.cuda.graph_pool_handle()

    def add(self, batch: Any, *, first: bool) -> None:
        key = (_shapes(batch), first)
        if key not in self.graphs:
            fixed = batch.to(self.device).fixed()
            with _attention_for(fixed):
                if not self._worth(key):
                    self._add(fixed, first=first)
                    return
                self.graphs[key] = Graph(self.pool, lambda: self._add(fixed, first=first), fixed)
        self.graphs[key].run(batch)

    def take(self) -> None:
        if "take" not in self.graphs:
            if not self._worth("take"):
                self._take()
                return
            self.graphs["take"] = Graph(self.pool, self._take)
        self.graphs["take"].run()

    def _worth(self, key: Any) -> bool:
        again = key in self.seen
        self.seen.add(key)
        return again and len(self.graphs) < MOST


class Graph:
    """What `work` does with a batch, for any batch of its shapes."""

    def __init__(self, pool: Any, work: Callable[[], None], batch: Any = None) -> None:
        self.inputs = [] if batch is None else _tensors(batch)
        self.graph = torch.cuda.CUDAGraph()
        # Another thread may pin the next batches meanwhile.
        with torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"):
            work()

    def run(self, batch: Any = None) -> None:
        """Do it for this batch."""
        if batch is not None:
            for place, value in zip(self.inputs, _tensors(batch), strict=True):
                place.copy_(value, non_blocking=True)
        self.graph.replay()


def _attention_for(batch: Any) -> AbstractContextManager[None]:
    """CuDNN's attention is the fastest over long rows, but it takes long to plan for each new shape."""
    widths = [tensor.shape[1] for tensor in _tensors(batch) if tensor.dim() == 2]
    return sdpa_kernel(PLANLESS) if widths and max(widths) <= SHORT else nullcontext()


def _tensors(batch: Any) -> list[Tensor]:
    values = (getattr(batch, field.name) for field in fields(batch))
    return [value for value in values if isinstance(value, Tensor)]


def _shapes(batch: Any) -> tuple[Any, ...]:
    return (type(batch), *((tuple(tensor.shape), tensor.dtype) for tensor in _tensors(batch)))
