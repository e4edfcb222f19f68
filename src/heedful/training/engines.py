"""How a training step runs: eagerly, as CUDA graphs, or compiled.

`Engine` is the step: it accumulates the gradients of some batches and applies them to the weights, all on the device.
The others run the same methods in another way. A CUDA graph reads and writes the same memory each time: batches are
copied to where it reads; gradients, sums, weights and the optimizer's state lie outside of it. Dropout stays random: a
graph draws from torch's generator, which every replay advances.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import pairwise
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
from .errors import EngineError, EngineWarning
from .loss import Loss
from .objective import Objective
from .optimizers import Update
from .parallel import MasterWeightModel, ReplicatedModel, SingleProcess

SHORT = 128  # tokens in a row, up to which cuDNN's attention is not used
MAX_GRAPHS = 64  # batches of further shapes run eagerly
PACE_STEPS = 50  # steps over which the speed is measured
COMPILE_SECONDS = 30.0  # that a shape may take to compile
COMPILE_GAIN = 0.2  # the share of a step's time that compiling is expected to save


class Engine:
    """Runs every operation eagerly. It works everywhere and is the reference for the faster engines."""

    name = "eager"

    def __init__(
        self,
        update: Update,
        objective: Objective[Any],
        model: ReplicatedModel,
        config: TrainingConfig,
        world: SingleProcess,
    ) -> None:
        self.update, self.objective, self.model, self.world = update, objective, model, world
        self.autocast = config.precision == "bf16"
        self.weights = list(model.weights.values())
        self.device = self.weights[0].device
        on_cpu = self.device.type == "cpu" and not model.divided
        self.module = use_backend(model.module, "cpu") if on_cpu else model.module
        self.shared: BackwardPass | None = None  # the state that the fused parts of the module share, if it has some
        for weight in self.weights:  # drop gradients from before this run
            weight.grad = torch.zeros_like(weight) if world.size > 1 else None  # all processes need the same tensors
        exact = torch.float32 if self.device.type == "mps" else torch.float64
        self.sums = torch.zeros(3, device=self.device, dtype=exact)  # total, plain, n
        self.values = torch.zeros(5, device=self.device, dtype=exact)  # total, plain, n, norm, finite

    def step(self, step: int, batches: Sequence[Any]) -> Tensor:
        """Run the step numbered `step`.

        Returns:
            Its values (total, plain, n, norm, finite), in a tensor that the next step overwrites.
        """
        self.update.prepare(step)
        for index, batch in enumerate(batches):
            self.accumulate(batch, first=index == 0)
        self.world.all_reduce([self.sums, *self.model.unreduced_gradients()])
        self.apply()
        return self.values

    def accumulate(self, batch: Any, *, first: bool) -> None:
        """Add a batch's gradients and sums to those of the previous batches, or start with them."""
        self._accumulate(batch.to(self.device), first=first)

    @torch.no_grad()
    def apply(self) -> None:
        """Update the weights by the accumulated gradients."""
        self.values.copy_(self.update(self.sums))

    def loss(self, batch: Any) -> Loss:
        """Compute the objective's loss in the precision of the run."""
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.autocast):
            return self.objective.loss(self.module, batch)

    def _accumulate(self, batch: Any, *, first: bool) -> None:
        if self.shared is not None:
            self.shared.begin()
        loss = self.loss(batch)
        gradients = self.model.gradients(loss.total)
        sums = torch.stack([value.detach().to(self.sums.dtype) for value in loss])
        with torch.no_grad():
            targets = self._gradient_buffers(gradients)
            new = [gradient for gradient in gradients if gradient is not None]
            if first:
                self.sums.copy_(sums)
                self._copy_gradients(targets, new)
                # Gradients of an earlier step, of weights that have none in this step.
                pairs = zip(self.weights, gradients, strict=True)
                if stale := [weight.grad for weight, grad in pairs if grad is None and weight.grad is not None]:
                    torch._foreach_zero_(stale)
            else:
                self.sums.add_(sums)
                torch._foreach_add_(targets, new)

    def _copy_gradients(self, targets: list[Tensor], gradients: list[Tensor]) -> None:
        torch._foreach_copy_(targets, gradients)

    def _gradient_buffers(self, gradients: Sequence[Tensor | None]) -> list[Tensor]:
        """Return the `grad` tensors of the weights that have a gradient: always the same ones, as graphs need.

        The update ignores a weight that never has a gradient; it does not even decay.
        """
        weights = [weight for weight, grad in zip(self.weights, gradients, strict=True) if grad is not None]
        if new := [weight for weight in weights if weight.grad is None]:
            for weight in new:
                weight.grad = torch.zeros_like(weight)
            self.on_new_gradients()
        return [weight.grad for weight in weights if weight.grad is not None]

    def on_new_gradients(self) -> None:
        """Called when a weight has a gradient for the first time."""


# ---- CUDA graphs ----


class CudaGraphEngine(Engine):
    """Records steps as CUDA graphs: the first batch of a shape runs eagerly, to warm up; the second is recorded."""

    name = "graph"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.tables = AddressTables(self.device)
        if isinstance(self.model, MasterWeightModel):
            self.module, self.shared = fused_on_gpu(self.model.module, self.device, self.tables)
        self.graphs: dict[Any, RecordedStep] = {}
        self.seen: set[Any] = set()
        self.widening = Widening(self.tables)
        self.pool = torch.cuda.graph_pool_handle()
        self.stream = torch.cuda.Stream(self.device)

    def accumulate(self, batch: Any, *, first: bool) -> None:
        named = tensors_of(batch).items()
        shapes = (type(batch), *((name, tuple(tensor.shape), tensor.dtype) for name, tensor in named))
        key = (shapes, first)
        if key not in self.graphs:
            # A copy if the task's own tensors are on the device: a graph overwrites them with other batches.
            on_device = any(tensor.device == self.device for tensor in tensors_of(batch).values())
            moved = batch.to(self.device)
            fixed = (copied(moved) if on_device else moved).fixed()
            # cuDNN's attention is the fastest for long rows without a mask, but takes long to plan for each new shape.
            widths = [tensor.shape[1] for _, tensor in named if tensor.dim() == 2]
            with sdpa_kernel(WITHOUT_CUDNN) if widths and max(widths) <= SHORT else nullcontext():
                if not self._should_record(key):
                    self._accumulate(fixed, first=first)
                    return
                self.graphs[key] = RecordedStep(self, lambda: self._accumulate(fixed, first=first), fixed)
        self.graphs[key].run(batch)

    def apply(self) -> None:
        if "apply" not in self.graphs:
            if not self._should_record("apply"):
                super().apply()
                return
            self.graphs["apply"] = RecordedStep(self, super().apply)
        self.graphs["apply"].run()

    def on_new_gradients(self) -> None:
        """Discard the recorded update, which does not include them; the next update runs eagerly."""
        self.graphs.pop("apply", None)
        self.seen.discard("apply")
        self.widening = Widening(self.tables)

    def _copy_gradients(self, targets: list[Tensor], gradients: list[Tensor]) -> None:
        if not self.widening(gradients, targets):
            super()._copy_gradients(targets, gradients)

    @property
    def n_shapes(self) -> int:
        """The number of batch shapes that were recorded."""
        return len({key[0] for key in self.graphs if key != "apply"})

    def _should_record(self, key: Any) -> bool:
        again = key in self.seen
        self.seen.add(key)
        return again and len(self.graphs) < MAX_GRAPHS


class RecordedStep:
    """A CUDA graph of what `work` does with a batch, for any batch of the same shapes."""

    def __init__(self, engine: CudaGraphEngine, work: Callable[[], None], batch: Any = None) -> None:
        self.inputs = [] if batch is None else list(tensors_of(batch).values())
        self.whole = whole_of(self.inputs)
        self.graph = torch.cuda.CUDAGraph()
        settings: dict[str, Any] = {"pool": engine.pool, "stream": engine.stream}
        try:  # another thread may pin the next batches meanwhile
            with (
                engine.tables.recording() as self.table_memory,
                torch.cuda.graph(self.graph, **settings, capture_error_mode="thread_local"),
            ):
                work()
        except (torch.OutOfMemoryError, EngineError):
            raise
        except RuntimeError as error:
            raise EngineError("a step cannot be recorded as a CUDA graph", error) from error

    def run(self, batch: Any = None) -> None:
        """Replay the graph for a batch, which is copied to where the graph reads: in one copy if it is contiguous."""
        tensors = [] if batch is None else list(tensors_of(batch).values())
        whole = None if self.whole is None else whole_of(tensors)
        if self.whole is not None and whole is not None:
            self.whole.copy_(whole, non_blocking=True)
        else:
            for target, tensor in zip(self.inputs, tensors, strict=True):
                target.copy_(tensor, non_blocking=True)
        self.graph.replay()


class Widening:
    """Copies bf16 gradients to the float32 ones of the weights, in one launch, while a step is recorded."""

    def __init__(self, tables: AddressTables) -> None:
        self.tables = tables
        self._aligned: bool | None = None  # of the table for which the kernel was loaded

    def __call__(self, gradients: Sequence[Tensor], targets: Sequence[Tensor]) -> bool:
        """Copy the gradients if possible, and return whether that was done.

        It is possible once in an eager step, since no kernel can be loaded while a step is recorded, and from then on
        only while recording, since a table takes long to make.
        """
        recording = torch.cuda.is_current_stream_capturing()
        if not gradients or recording != (self._aligned is not None):
            return False
        if not all(gradient.dtype == torch.bfloat16 and gradient.is_contiguous() for gradient in gradients):
            return False
        if not all(map(over_tables, targets)):
            return False
        from ..backends.triton.foreach import PointerTable, widen_to_float32

        table = PointerTable.put(self.tables, gradients, targets)
        if table is None or (recording and table.aligned != self._aligned):
            return False
        self._aligned = table.aligned
        widen_to_float32(table)
        return True


# ---- compiled steps ----


class CompiledEngine(Engine):
    """Compiles forward and backward with torch.compile, once for each shape of batch."""

    name = "compile"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._compiled = torch.compile(super().loss, dynamic=False)

    def loss(self, batch: Any) -> Loss:
        from torch._inductor.exc import InductorError  # here: it takes a second to import

        try:
            # Beyond the limit, torch would silently stop compiling.
            with torch._dynamo.config.patch(recompile_limit=MAX_GRAPHS):
                loss: Loss = self._compiled(batch.fixed())
        except (torch._dynamo.exc.TorchDynamoException, InductorError) as error:
            raise EngineError("a step cannot be compiled", error) from error
        return loss


class CompiledGraphEngine(CompiledEngine, CudaGraphEngine):
    """Compiles a step and then records it as a CUDA graph, so that the host launches it at once."""


# ---- the choice ----


def engine_for(config: TrainingConfig, device: torch.device, update: Update, *parts: Any) -> Engine | AutoEngine:
    """Return the engine that a config selects on a device. `parts` are the other arguments of every engine."""
    on_gpu = device.type == "cuda"
    problem = None
    if config.engine == "graph" and not on_gpu:
        problem = f"records CUDA graphs, and this run is on the {device.type}"
    elif config.engine == "graph" and config.activation_checkpointing:
        problem = "cannot record layers that draw their dropout a second time (training.activation_checkpointing)"
    if problem is not None:
        raise ConfigError(f"training.engine: graph {problem}; use auto, eager or compile")
    if config.engine == "auto" and on_gpu and not config.activation_checkpointing and not update.model.divided:
        return AutoEngine(update, *parts)
    kinds = {"graph": CudaGraphEngine, "compile": CompiledGraphEngine if on_gpu else CompiledEngine}
    return kinds.get(config.engine, Engine)(update, *parts)


class AutoEngine:
    """Starts with CUDA graphs, whose recording is cheap, and compiles if that saves time.

    Compiling takes up to half a minute for each shape. It is tried only if it would save more than that in the rest of
    the run, and dropped if its steps are not faster.
    """

    def __init__(self, update: Update, *parts: Any) -> None:
        self.parts = (update, *parts)
        self.update = update  # whose number of steps a time limit changes
        self.engine: Engine = CudaGraphEngine(*self.parts)
        self.graph_pace: float | None = None  # seconds of a step with graphs, while compiling is tried
        self.is_final = False
        self.start_times: list[float] = []  # of steps

    @property
    def name(self) -> str:
        return self.engine.name

    def step(self, step: int, batches: Sequence[Any]) -> Tensor:
        if not self.is_final:
            self._measure(self.update.total_steps - step)
        try:
            return self.engine.step(step, batches)
        except EngineError as error:
            simpler = CudaGraphEngine if isinstance(self.engine, CompiledEngine) else Engine
            warnings.warn(f"{error}. The run continues with {simpler.name}", EngineWarning, stacklevel=2)
            self.engine, self.is_final = simpler(*self.parts), True
            return self.engine.step(step, batches)

    def _measure(self, steps_left: int) -> None:
        """Measure the time of a step, and choose the next engine.

        The host runs at most a few steps ahead of the device, so its steps take as long as the device's.
        """
        self.start_times.append(time.monotonic())
        if len(self.start_times) <= 2 * PACE_STEPS:  # the first half records, and allocates what all steps use
            return
        times = self.start_times[PACE_STEPS:]
        pace, self.start_times = median(end - start for start, end in pairwise(times)), []
        shapes = self.engine.n_shapes if isinstance(self.engine, CudaGraphEngine) else 1
        if self.graph_pace is None and pace * steps_left * COMPILE_GAIN > COMPILE_SECONDS * shapes:
            self.graph_pace, self.engine = pace, CompiledGraphEngine(*self.parts)  # frees the graphs and their memory
        elif self.graph_pace is not None and pace >= self.graph_pace:
            self.engine, self.is_final = CudaGraphEngine(*self.parts), True
        else:
            self.is_final = True
