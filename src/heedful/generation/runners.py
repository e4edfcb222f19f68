"""Runners: how a batch encodes inputs and computes logits with each kind of model that has a decoder.

`new_runner` chooses one: layers in C if the prepared model has them, else the module itself, through torch.

Shapes: B sequences, S tokens of the longest input, R rows (the beams of each sequence in turn), T keys so far,
D d_model, V vocabulary.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self
from weakref import finalize

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..backends import RuntimeModel
from ..backends.native.runner import CPU, Memory, NativeRunner
from ..backends.single_step import CudaGraphRunner, GraphShape, indices
from ..core import padding
from ..core.cache import concat_rows
from ..errors import GenerationError
from .batch import DecodeRunner, PrefillRunner


@dataclass(frozen=True, eq=False)
class EncoderMemory:
    """The encoder's output for one source, computed beforehand: (S, D). `keep` (S,) tells real positions from padding.

    None means that all are real.
    """

    memory: Tensor
    keep: Tensor | None = None


TokenIds = tuple[int, ...]
# A tensor is what the encoder's embedding takes, without a batch dimension.
ModelInput = TokenIds | Tensor | EncoderMemory


class Runner:
    """The base of runners through torch: a cache, and the slot where each row begins, after its padding."""

    def __init__(self, model: RuntimeModel, starts: Sequence[int], device: torch.device) -> None:
        self._model, self._module, self._single_step, self._device = model, model.module, model.single_step, device
        self.cache = model.module.new_cache()
        self.starts = list(starts)
        self._ragged = any(starts)
        self.memory_bias: Tensor | None = None  # (B, 1, 1, S): -inf on the padding of the memory

    def step(self, tokens: Tensor) -> Tensor:
        if self._single_step is None:
            return self._decode(tokens[:, None])
        return self._single_step.step(tokens, self.cache, self._real(self.cache.length + 1), self.memory_bias)

    def _decode(self, tokens: Tensor) -> Tensor:
        """Return logits (R, V) for the token after the last of (R, T)."""
        raise NotImplementedError

    def reorder(self, rows: Sequence[int], staying: Sequence[int] | None) -> None:
        raise NotImplementedError

    def _real(self, n_keys: int) -> Tensor | None:
        """Return which keys are real (R, T); None where all are."""
        if not self._ragged:
            return None
        return torch.arange(n_keys, device=self._device) >= indices(self.starts, self._device)[:, None]

    def _reorder_starts(self, rows: Sequence[int]) -> None:
        """Let row i begin where row rows[i] did, and drop the slots that no row uses any more."""
        self.starts = [self.starts[row] for row in rows]
        unused = min(self.starts)
        if unused:
            self.cache.drop(unused)
            self.starts = [start - unused for start in self.starts]

    def extend(self, other: Self) -> None:
        """Append the rows of another batch that was prefilled. Both end at the same slot."""
        longest = max(self.cache.length, other.cache.length)
        self.starts = [start + longest - half.cache.length for half in (self, other) for start in half.starts]
        self._ragged = any(self.starts) or self._ragged or other._ragged
        self.cache.join(other.cache)

    def allocate(self, width: int, capacity: int) -> DecodeRunner:
        if self._single_step is None or self._device.type != "cuda":
            return self
        return self.in_slots(width, capacity)

    def in_slots(self, width: int, capacity: int) -> CudaGraphRunner:
        """Move the rows to the slots of a captured program; other batches can be added while there are free slots."""
        n_source = max((key.shape[2] for key, _ in self.cache.memories.values()), default=0)
        program = self._model.program(GraphShape.of(len(self.starts) // width, width, capacity, n_source), self.cache)
        runner = CudaGraphRunner(program)
        finalize(runner, self._model.release_program, program)  # when the batch is gone, another may use it
        runner.extend(self)
        return runner


class EncoderDecoderRunner(Runner):
    """Encodes sources and decodes answers. A sequence has one row of memory, however many beams read it."""

    def __init__(self, model: RuntimeModel, sources: Sequence[ModelInput], start: int, device: torch.device) -> None:
        super().__init__(model, [0] * len(sources), device)
        self._first = torch.full((len(sources), 1), start, device=device)
        ids = [source for source in sources if isinstance(source, tuple)]
        if ids:
            lengths = [len(source) for source in ids]
            keep = padding(_real(lengths, device), lengths=lengths)
            memory: Tensor = self._module.encode(_padded(ids, device, left=False), keep)
        else:
            memories = _memories(self._module, sources, device)
            lengths, memory = [len(each) for each in memories], pad_sequence(memories, batch_first=True)
        self._set_memory(memory, lengths)

    @staticmethod
    def room(module: Any, length: int) -> int | None:
        """Return how many tokens may answer an input of this length: 0 if that is too long, None for no limit."""
        longest = _n_positions(module, "encoder")
        return _n_positions(module, "decoder") if longest is None or length <= longest else 0

    def prefill(self) -> Tensor:
        return self._decode(self._first)

    def _decode(self, tokens: Tensor) -> Tensor:
        keep = self._real(self.cache.length + 1)
        logits: Tensor = self._module.decode(tokens, self._memory, self._keep, self.cache, keep=keep)
        return logits[:, -1]

    def reorder(self, rows: Sequence[int], staying: Sequence[int] | None) -> None:
        chosen = indices(rows, self._device)
        if staying is None:
            self.cache.reorder(chosen)
        else:
            sources = indices(staying, self._device)
            self.cache.select(chosen, sources)
            self._set_memory(self._memory.index_select(0, sources), [self._lengths[index] for index in staying])
        self._reorder_starts(rows)

    def extend(self, other: Self) -> None:
        super().extend(other)
        self._set_memory(concat_rows(self._memory, other._memory, 1), self._lengths + other._lengths)

    def _set_memory(self, memory: Tensor, lengths: list[int]) -> None:
        self._memory, self._lengths = memory, lengths
        real = _real(lengths, self._device, memory.shape[1])
        self._keep, self.memory_bias = padding(real, lengths=lengths), None
        if min(lengths) < memory.shape[1]:
            zeros = torch.zeros(real.shape, device=self._device)
            self.memory_bias = zeros.masked_fill(~real, -torch.inf)[:, None, None]


class DecoderOnlyRunner(Runner):
    """Continues prompts with a decoder-only model. Prompts are padded on the left; the start token is not used."""

    def __init__(self, model: RuntimeModel, prompts: Sequence[Sequence[int]], start: int, device: torch.device) -> None:
        longest = max(map(len, prompts))
        super().__init__(model, [longest - len(prompt) for prompt in prompts], device)
        self._prompts = _padded(prompts, device, left=True)

    @staticmethod
    def room(module: Any, length: int) -> int | None:
        """Return how many tokens may follow a prompt of this length: 0 if that is too long, None for no limit."""
        longest = _n_positions(module, "decoder")
        return None if longest is None else max(longest - length + 1, 0)

    def prefill(self) -> Tensor:
        return self._decode(self._prompts)

    def _decode(self, tokens: Tensor) -> Tensor:
        """Compute the logits after the last token only: a prompt is long and the vocabulary large."""
        keep = self._real(self.cache.length + tokens.shape[1])
        x, real = self._module.embedding(tokens, keep)
        x = self._module.decoder(x, keep=real, cache=self.cache)
        logits: Tensor = self._module.head(x[:, -1:], None)
        return logits[:, 0]

    def reorder(self, rows: Sequence[int], staying: Sequence[int] | None) -> None:
        self.cache.select(indices(rows, self._device))
        self._reorder_starts(rows)


def runner_of(module: Any) -> type[EncoderDecoderRunner] | type[DecoderOnlyRunner]:
    """Return the runner class for a model with or without an encoder.

    Raises:
        GenerationError: for a model without a decoder.
    """
    if not hasattr(module, "new_cache"):
        raise GenerationError(f"{type(module).__name__} has no decoder, so it cannot generate")
    return EncoderDecoderRunner if hasattr(module, "encode") else DecoderOnlyRunner


def new_runner(
    module: Any, model: RuntimeModel, inputs: Sequence[Any], start: int | None, device: torch.device
) -> PrefillRunner:
    """Return a runner for these inputs, which are all of one kind, with the prepared model."""
    first = 0 if start is None else start  # a decoder-only model begins with its prompt
    if model.native is None:
        return runner_of(module)(model, inputs, first, device)
    if not isinstance(inputs[0], EncoderMemory):
        return NativeRunner(model.native, inputs, first)
    memories = [source.memory for source in inputs]
    memory = Memory(model.native.memories(torch.cat(memories).to(CPU)), [len(part) for part in memories])
    return NativeRunner(model.native, inputs, first, memory)


def _memories(module: Any, sources: Sequence[Any], device: torch.device) -> list[Tensor]:
    """Return the memory (S, D) of each source. Sources of equal shape are encoded together, without padding."""
    dtype = next(module.parameters()).dtype
    memories: dict[int, Tensor] = {}
    by_shape: defaultdict[torch.Size, list[int]] = defaultdict(list)
    for place, source in enumerate(sources):
        if isinstance(source, EncoderMemory):
            memories[place] = source.memory.to(device, dtype)
        else:
            by_shape[source.shape].append(place)
    for places in by_shape.values():
        batch = torch.stack([sources[place] for place in places]).to(device, dtype)
        memories |= zip(places, module.encode(batch), strict=True)
    return [memories[place] for place in range(len(sources))]


def _n_positions(module: Any, stack: str) -> int | None:
    """Return the largest number of tokens that a stack has positions for; None if there is no limit."""
    positions = getattr(getattr(module, stack, None), "positions", None)
    return getattr(positions, "limit", None)


def _real(lengths: Sequence[int], device: torch.device, longest: int | None = None) -> Tensor:
    """Return a mask (B, S) of the real tokens, which are the first of each row."""
    slots = torch.arange(max(lengths) if longest is None else longest, device=device)
    return slots < indices(lengths, device)[:, None]


def _padded(rows: Sequence[Sequence[int]], device: torch.device, *, left: bool) -> Tensor:
    longest = max(map(len, rows))
    fills = [[0] * (longest - len(row)) for row in rows]
    ids = [[*fill, *row] if left else [*row, *fill] for row, fill in zip(rows, fills, strict=True)]
    return torch.tensor(ids).to(device, non_blocking=True)
