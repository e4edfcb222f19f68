"""How a step is run: as it comes, recorded as CUDA graphs, or compiled.

`Engine` is the step: one update of the weights from some batches, gradients added up, then the step, everything on the
device. The others run the same methods in another way. A CUDA graph reads and writes the same memory each time: batches
are copied to where it reads; gradients, sums, weights and the optimiser's state lie outside of it. Dropout stays
random: a graph draws from torch's generator, which every replay moves on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from statistics import median
from typing import Any

import torch
from torch import Tensor
from torch.nn.attention import sdpa_kernel

from ..backends import use_backend
from ..backends.triton import over_tables
from ..backends.triton.deferred import AddressTables, BackwardPass
from ..backends.triton.modules import fused_on_gpu
from ..core.attention import WITHOUT_CUDNN
from ..data.batch import copied, tensors_of, whole_of
from ..errors import ConfigError
from .config import TrainingConfig
from .errors import EngineError
from .loss import Loss
from .objective import Objective
from .parallel import MasterWeightModel, ReplicatedModel, SingleProcess
from .update import Update

SHORT = 128  # tokens in a row
MAX_GRAPHS = 64  # what has still other shapes is run as it comes
PACED = 50  # steps over which a pace is taken
COMPILING = 30.0  # seconds that a shape may take to compile
SAVED = 0.2  # of a step's time, which compiling saves at the least where it pays


class Engine:
    """Runs every operation as it comes: the way that is right everywhere, and the twin of every faster one."""

    name = "eager"

    def __init__(
        self,
        update: Update,
        objective: Objective[Any],
        held: ReplicatedModel,
        config: TrainingConfig,
        world: SingleProcess,
    ) -> None:
        self.update, self.objective, self.held, self.world = update, objective, held, world
        self.autocast = config.precision == "bf16"
        self.weights = list(held.weights.values())
        self.device = self.weights[0].device
        on_cpu = self.device.type == "cpu" and not held.divided
        self.module = use_backend(held.module, "cpu") if on_cpu else held.module
        self.shared: BackwardPass | None = None  # what the fused parts of the module share, where it has some
        for weight in self.weights:  # nothing is left of what was before this run
            weight.grad = torch.zeros_like(weight) if world.size > 1 else None  # where all must have the same
        exact = torch.float32 if self.device.type == "mps" else torch.float64
        self.sums = torch.zeros(3, device=self.device, dtype=exact)  # total, plain, n
        self.values = torch.zeros(5, device=self.device, dtype=exact)  # the same, the norm, whether all was finite

    def step(self, step: int, batches: Sequence[Any]) -> Tensor:
        """The step numbered `step`. Its values (total, plain, n, norm, finite) are overwritten by the next."""
        self.update.prepare(step)
        for index, batch in enumerate(batches):
            self.add(batch, first=index == 0)
        self.world.all_reduce([self.sums, *self.held.apart()])
        self.take()
        return self.values

    def add(self, batch: Any, *, first: bool) -> None:
        """Add a batch's gradients and sums to those of the batches before it, or begin with them."""
        self._add(batch.to(self.device), first=first)

    def take(self) -> None:
        """The step itself."""
        self._take()

    def loss(self, batch: Any) -> Loss:
        """In the precision of the run."""
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            return self.objective.loss(self.module, batch)

    def _add(self, batch: Any, *, first: bool) -> None:
        if self.shared is not None:
            self.shared.begin()
        loss = self.loss(batch)
        fresh = self.held.gradients(loss.total)
        sums = torch.stack([value.detach().to(self.sums.dtype) for value in loss])
        with torch.no_grad():
            have = self._gradients(fresh)
            given = [gradient for gradient in fresh if gradient is not None]
            if first:
                self.sums.copy_(sums)
                self._put(have, given)
                # What an earlier step left with weights that have no part in this one.
                pairs = zip(self.weights, fresh, strict=True)
                if stale := [weight.grad for weight, new in pairs if new is None and weight.grad is not None]:
                    torch._foreach_zero_(stale)
            else:
                self.sums.add_(sums)
                torch._foreach_add_(have, given)

    def _put(self, have: list[Tensor], given: list[Tensor]) -> None:
        """Gradients where the weights keep them."""
        torch._foreach_copy_(have, given)

    def _gradients(self, fresh: Sequence[Tensor | None]) -> list[Tensor]:
        """Where the weights keep the gradients that are given: always the same tensors, so that graphs find them.

        A weight that never has one is left alone by the update; it does not even decay.
        """
        pairs = [(weight, given) for weight, given in zip(self.weights, fresh, strict=True) if given is not None]
        if new := [weight for weight, _ in pairs if weight.grad is None]:
            for weight in new:
                weight.grad = torch.zeros_like(weight)
            self.grown()
        return [weight.grad for weight, _ in pairs if weight.grad is not None]

    def grown(self) -> None:
        """A weight has a gradient for the first time."""

    @torch.no_grad()
    def _take(self) -> None:
        self.values.copy_(self.update(self.sums))


# ---- CUDA graphs ----


class CudaGraphEngine(Engine):
    """The first batch of a shape runs as it comes, which also warms up its kernels; the second is recorded."""

    name = "graph"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tables = AddressTables(self.device)
        if isinstance(self.held, MasterWeightModel):
            self.module, self.shared = fused_on_gpu(self.held.module, self.device, self.tables)
        self.graphs: dict[Any, RecordedStep] = {}
        self.seen: set[Any] = set()
        self.widening = Widening(self.tables)
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream(self.device)

    def add(self, batch: Any, *, first: bool) -> None:
        named = tensors_of(batch).items()
        shapes = (type(batch), *((name, tuple(tensor.shape), tensor.dtype) for name, tensor in named))
        key = (shapes, first)
        if key not in self.graphs:
            # On the device, and not where the task may have it: a graph writes other batches there.
            is_there = any(tensor.device == self.device for tensor in tensors_of(batch).values())
            moved = batch.to(self.device)
            fixed = (copied(moved) if is_there else moved).fixed()
            # CuDNN's attention is the fastest over long rows without a mask, but takes long to plan for each new shape.
            widths = [tensor.shape[1] for _, tensor in named if tensor.dim() == 2]
            with sdpa_kernel(WITHOUT_CUDNN) if widths and max(widths) <= SHORT else nullcontext():
                if not self._worth(key):
                    self._add(fixed, first=first)
                    return
                self.graphs[key] = RecordedStep(self, lambda: self._add(fixed, first=first), fixed)
        self.graphs[key].run(batch)

    def take(self) -> None:
        if "take" not in self.graphs:
            if not self._worth("take"):
                self._take()
                return
            self.graphs["take"] = RecordedStep(self, self._take)
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

    def _worth(self, key: Any) -> bool:
        again = key in self.seen
        self.seen.add(key)
        return again and len(self.graphs) < MAX_GRAPHS


class RecordedStep:
    """What `work` does with a batch, for any batch of its shapes."""

    def __init__(self, engine: CudaGraphEngine, work: Callable[[], None], batch: Any = None) -> None:
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
        """Do it for this batch, copied to where the graph reads: in one copy, if it lies in one piece."""
        tensors = [] if batch is None else list(tensors_of(batch).values())
        whole = None if self.whole is None else whole_of(tensors)
        if self.whole is not None and whole is not None:
            self.whole.copy_(whole, non_blocking=True)
        else:
            for mine, other in zip(self.inputs, tensors, strict=True):
                mine.copy_(other, non_blocking=True)
        self.graph.replay()


class Widening:
    """Gradients in bf16, brought to where the weights keep them in float32: in one launch, where a step is recorded."""

    def __init__(self, tables: AddressTables) -> None:
        self.tables = tables
        self._aligned: bool | None = None  # the table for which the kernel was loaded

    def __call__(self, given: Sequence[Tensor], have: Sequence[Tensor]) -> bool:
        """Copy what is given, if that can be done in this way: once as it comes, since no kernel can be loaded while a
        step is recorded; from then on only there, since it takes long to make a table."""
        recording = torch.cuda.is_current_stream_capturing()
        if not given or recording != (self._aligned is not None):
            return False
        if not all(gradient.dtype == torch.bfloat16 and gradient.is_contiguous() for gradient in given):
            return False
        if not all(map(over_tables, have)):
            return False
        from ..backends.triton.foreach import PointerTable, widen_to_float32

        table = PointerTable.put(self.tables, given, have)
        if table is None or (recording and table.aligned != self._aligned):
            return False
        self._aligned = table.aligned
        widen_to_float32(table)
        return True


# ---- compiled steps ----


class _Compiling(Engine):
    """Forward and backward in few large kernels; shapes are fixed, since each has its own."""

    name = "compile"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._compiled = torch.compile(super().loss, dynamic=False)

    def loss(self, batch: Any) -> Loss:
        from torch._inductor.exc import InductorError  # here: it takes a second to import

        try:
            # Beyond the limit, nothing would be compiled, silently.
            with torch._dynamo.config.patch(recompile_limit=MAX_GRAPHS):
                found: Loss = self._compiled(batch.fixed())
        except (torch._dynamo.exc.TorchDynamoException, InductorError) as error:
            raise EngineError("a step cannot be compiled", error) from error
        return found


class CpuCompiledEngine(_Compiling):
    """As the compiler made it."""


class CompiledEngine(_Compiling, CudaGraphEngine):
    """And then recorded: what is left of launches is one."""


# ---- the choice ----


class EngineWarning(UserWarning):
    """Steps are run in another way than was meant."""


def engine_for(config: TrainingConfig, device: torch.device, update: Update, *parts: Any) -> Engine | AutoEngine:
    """The engine of a run, on a device; the rest is what every engine is made of."""
    on_gpu = device.type == "cuda"
    if config.engine == "graph" and not on_gpu:
        raise ConfigError(
            f"training.engine: graph records CUDA graphs, and this run is on the {device.type}; "
            "take auto, eager or compile"
        )
    if config.engine == "graph" and config.recompute:
        raise ConfigError(
            "training.engine: graph cannot record layers that draw their dropout a second time (training.recompute); "
            "take auto, eager or compile"
        )
    if config.engine == "auto" and on_gpu and not config.recompute and not update.held.divided:
        return AutoEngine(update, *parts)
    kinds = {"graph": CudaGraphEngine, "compile": CompiledEngine if on_gpu else CpuCompiledEngine}
    return kinds.get(config.engine, Engine)(update, *parts)


class AutoEngine:
    """Graphs at first: recording costs next to nothing. Compiling costs up to half a minute a shape, so it is tried
    only where it would save more of what is left of the run, and given up where its steps are not faster."""

    def __init__(self, update: Update, *parts: Any) -> None:
        self.parts = (update, *parts)
        self.total_steps = update.total_steps
        self.engine: Engine = CudaGraphEngine(*self.parts)
        self.to_beat: float | None = None  # the pace of graphs, while compiling is tried
        self.settled = False
        self.begun: list[float] = []  # when steps began

    @property
    def name(self) -> str:
        return self.engine.name

    def step(self, step: int, batches: Sequence[Any]) -> Tensor:
        if not self.settled:
            self._look(self.total_steps - step)
        try:
            return self.engine.step(step, batches)
        except EngineError as error:
            simpler = CudaGraphEngine if isinstance(self.engine, CompiledEngine) else Engine
            warnings.warn(f"{error}. The run goes on with {simpler.name}", EngineWarning, stacklevel=2)
            self._settle(simpler)
            return self.engine.step(step, batches)

    def _look(self, left: int) -> None:
        """At the pace; the host runs a few steps ahead of the device at most, so its steps take as long."""
        self.begun.append(time.monotonic())
        if len(self.begun) <= 2 * PACED:  # the first half records, and makes what all steps use
            return
        gaps = [after - before for before, after in zip(self.begun[PACED:], self.begun[PACED + 1 :], strict=False)]
        pace, self.begun = median(gaps), []
        shapes = self.engine.shapes if isinstance(self.engine, CudaGraphEngine) else 1
        if self.to_beat is None and pace * left * SAVED > COMPILING * shapes:
            self.to_beat, self.engine = pace, CompiledEngine(*self.parts)  # the graphs are let go, and their memory
        elif self.to_beat is not None and pace >= self.to_beat:
            self._settle(CudaGraphEngine)
        else:
            self.settled = True

    def _settle(self, kind: type[Engine]) -> None:
        self.engine, self.settled = kind(*self.parts), True
