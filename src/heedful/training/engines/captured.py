"""Steps recorded once as CUDA graphs, one for each shape of batch, and replayed: a launch instead of hundreds.

A graph reads and writes the same memory each time. Batches are copied to where it reads; gradients, sums, weights
and the optimiser's state lie outside of it. Dropout stays random: a graph draws from torch's generator, which every
replay moves on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import sdpa_kernel

from ...core.attention import WITHOUT_CUDNN
from ...data.batch import copied, tensors_of, whole_of
from ..errors import EngineError
from ..parallel import MasterWeightModel
from ..quick import quicken
from ..tables import Tables
from .engine import Engine
from .widening import Widening

SHORT = 128  # tokens in a row
MOST = 64  # graphs; what has still other shapes is run as it comes


class Captured(Engine):
    """The first batch of a shape runs as it comes, which also warms up its kernels; the second is recorded."""

    name = "graph"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tables = Tables(self.device)
        if isinstance(self.held, MasterWeightModel):
            self.held.shared = quicken(self.held.module, self.device, self.tables)
        self.graphs: dict[Any, Graph] = {}
        self.seen: set[Any] = set()
        self.widening = Widening(self.tables)
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream(self.device)

    def add(self, batch: Any, *, first: bool) -> None:
        key = (_shapes(batch), first)
        if key not in self.graphs:
            fixed = self._own(batch).fixed()
            with _attention_for(fixed):
                if not self._worth(key):
                    self._add(fixed, first=first)
                    return
                self.graphs[key] = Graph(self, lambda: self._add(fixed, first=first), fixed)
        self.graphs[key].run(batch)

    def take(self) -> None:
        if "take" not in self.graphs:
            if not self._worth("take"):
                self._take()
                return
            self.graphs["take"] = Graph(self, self._take)
        self.graphs["take"].run()

    def grown(self) -> None:
        """The step that was recorded does not know of it; the next one runs as it comes."""
        self.graphs.pop("take", None)
        self.seen.discard("take")
        self.widening = Widening(self.tables)

    def _put(self, have: list[Tensor], given: list[Tensor]) -> None:
        if not self.widening(given, have):
            super()._put(have, given)

    @property
    def shapes(self) -> int:
        """How many shapes of batches were recorded."""
        return len({key[0] for key in self.graphs if key != "take"})

    def _own(self, batch: Any) -> Any:
        """On the device, and not where the job may have it: a graph writes other batches there."""
        is_there = any(tensor.device == self.device for tensor in tensors_of(batch).values())
        return copied(batch.to(self.device)) if is_there else batch.to(self.device)

    def _worth(self, key: Any) -> bool:
        again = key in self.seen
        self.seen.add(key)
        return again and len(self.graphs) < MOST


class Graph:
    """What `work` does with a batch, for any batch of its shapes."""

    def __init__(self, engine: Captured, work: Callable[[], None], batch: Any = None) -> None:
        self.inputs = [] if batch is None else list(tensors_of(batch).values())
        self.whole = whole_of(self.inputs)
        self.graph = torch.cuda.CUDAGraph()
        settings: dict[str, Any] = {"pool": engine.pool, "stream": engine.stream}
        try:  # another thread may pin the next batches meanwhile
            with (
                engine.tables.recorded() as self.room,
                torch.cuda.graph(self.graph, **settings, capture_error_mode="thread_local"),
            ):
                work()
        except (torch.OutOfMemoryError, EngineError):
            raise
        except RuntimeError as error:
            raise EngineError("a step cannot be recorded as a CUDA graph", error) from error

    def run(self, batch: Any = None) -> None:
        """Do it for this batch."""
        if batch is not None:
            self._put(list(tensors_of(batch).values()))
        self.graph.replay()

    def _put(self, given: list[Tensor]) -> None:
        """Where the graph reads; in one copy, if what is given lies in one piece."""
        whole = None if self.whole is None else whole_of(given)
        if self.whole is not None and whole is not None:
            self.whole.copy_(whole, non_blocking=True)
            return
        for mine, other in zip(self.inputs, given, strict=True):
            mine.copy_(other, non_blocking=True)


def _attention_for(batch: Any) -> AbstractContextManager[None]:
    """CuDNN's attention is the fastest over long rows without a mask, but it takes long to plan for each new shape."""
    widths = [tensor.shape[1] for tensor in tensors_of(batch).values() if tensor.dim() == 2]
    return sdpa_kernel(WITHOUT_CUDNN) if widths and max(widths) <= SHORT else nullcontext()


def _shapes(batch: Any) -> tuple[Any, ...]:
    named = tensors_of(batch).items()
    return (type(batch), *((name, tuple(tensor.shape), tensor.dtype) for name, tensor in named))
