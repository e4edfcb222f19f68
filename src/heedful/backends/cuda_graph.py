"""The decoding step on a GPU: fixed shapes and places, captured once and replayed for every token.

A program has slots for sentences. A sentence that is settled leaves its slot, one that waits takes it, and the
program never changes: its rows have lengths of their own, which only the device knows.

Shapes: B slots, W rows of each, R = B · W rows, G key/value heads, C capacity, S source tokens, K head width.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..core import DecoderOnly, EncoderDecoder, KVCache
from ..core.cache import KeysValues
from .registry import device_type, machine_check, register
from .single_step import SingleStepDecoder, indices


@dataclass(frozen=True)
class GraphShape:
    """What a program is captured for. Sizes are rounded up, so that few programs serve all batches."""

    n_sentences: int
    width: int
    capacity: int
    n_source: int

    @classmethod
    def of(cls, n_sentences: int, width: int, capacity: int, n_source: int) -> GraphShape:
        rounded = 1 << (n_sentences - 1).bit_length() if n_sentences <= 16 else -(-n_sentences // 16) * 16
        return cls(rounded, width, -(-capacity // 32) * 32, -(-n_source // 16) * 16)

    @property
    def n_rows(self) -> int:
        return self.n_sentences * self.width


class SlotCache:
    """Room for R rows in fixed places. Each row writes behind its own last token."""

    def __init__(self, shape: GraphShape, like: KVCache) -> None:
        self.layers = _room(like.layers, shape.n_rows, shape.capacity)
        self.sources = _room(like.memories, shape.n_sentences, shape.n_source)
        some = next(iter(self.layers.values()))[0]
        self.lengths = torch.zeros(shape.n_rows, dtype=torch.long, device=some.device)
        self._slots = torch.arange(shape.capacity, device=some.device)
        self._rows = torch.arange(shape.n_rows, device=some.device)

    def real(self) -> Tensor:
        """(R, C) which keys are real, those that come in now among them."""
        return self._slots <= self.lengths[:, None]

    def begin(self, n_new: int) -> int:
        return len(self._slots)

    def key_positions(self, new: Tensor | None) -> Tensor | None:
        return self._slots

    def append(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        for buffer, new in zip(self.layers[layer], (key, value), strict=True):
            buffer[self._rows, :, self.lengths] = new[:, :, 0]
        return self.layers[layer]

    def memory(self, layer: int, compute: Callable[[], KeysValues]) -> KeysValues:
        return self.sources[layer]

    def advance(self, n_new: int, key_positions: Tensor | None, *, padded: bool, given: bool) -> None:
        """A row that nobody reads any more stays within its room."""
        self.lengths.add_(n_new).clamp_(max=len(self._slots) - 1)

    def reorder(self, rows: Tensor) -> None:
        for buffer in (part for pair in self.layers.values() for part in pair):
            buffer.copy_(buffer.index_select(0, rows))
        self.lengths.copy_(self.lengths.index_select(0, rows))


def _room(layers: dict[int, KeysValues], n_rows: int, length: int) -> dict[int, KeysValues]:
    """Zeros, since what is hidden is multiplied by zero, and zero times NaN is NaN."""

    def empty(part: Tensor) -> Tensor:
        return part.new_zeros(n_rows, part.shape[1], length, part.shape[3])

    return {layer: (empty(key), empty(value)) for layer, (key, value) in layers.items()}


class GraphProgram:
    """One step for a shape. On a GPU it is captured; elsewhere it runs as it is written."""

    def __init__(self, decoder: SingleStepDecoder, shape: GraphShape, like: KVCache) -> None:
        self.shape = shape
        self.cache = SlotCache(shape, like)
        device = self.cache.lengths.device
        self.tokens = torch.zeros(shape.n_rows, dtype=torch.long, device=device)
        self.same = torch.arange(shape.n_rows, device=device)
        self.order = self.same.clone()
        self.hides = torch.zeros(shape.n_sentences, 1, 1, shape.n_source, device=device) if like.memories else None
        self._decoder = decoder
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._capture()

    def run(self) -> Tensor:
        """Logits (R, V) after the tokens that were set, in the order that was set."""
        if self._graph is None:
            return self._step()
        self._graph.replay()
        return self._logits

    def _step(self) -> Tensor:
        if self.shape.width > 1:
            self.cache.reorder(self.order)
        return self._decoder.step(self.tokens, self.cache, self.cache.real(), self.hides)

    def _capture(self) -> None:
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(2):  # what a library sets up at its first call cannot be captured
                self._step()
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._logits = self._step()
        self._graph = graph


class CudaGraphRunner:
    """A batch that is written in the slots of a program."""

    def __init__(self, program: GraphProgram) -> None:
        self._program = program
        self._free = list(reversed(range(program.shape.n_sentences)))
        self._slots: list[int] = []  # of each sentence, in the order the search knows them
        self._device = program.tokens.device
        self._moved = False

    @property
    def vacancies(self) -> int:
        """How many more sentences have a place."""
        return len(self._free)

    def take(self, cache: KVCache, starts: Sequence[int], hides: Tensor | None) -> None:
        """New sentences, whose first token was chosen: their keys and values go to free slots."""
        shape, fixed = self._program.shape, self._program.cache
        n_new = len(starts) // shape.width
        taken = [self._free.pop() for _ in range(n_new)]
        rows = self._rows(taken)
        first = torch.arange(cache.length, device=self._device) + indices(starts, self._device)[:, None]
        places = first.clamp(max=cache.length - 1)[:, None, :, None]  # padding stood before: it goes behind
        for layer, pair in cache.layers.items():
            for buffer, held in zip(fixed.layers[layer], pair, strict=True):
                moved = held[:, :, : cache.length].gather(2, places.expand(-1, held.shape[1], -1, held.shape[3]))
                buffer[rows, :, : cache.length] = moved
        fixed.lengths[rows] = cache.length - indices(starts, self._device)
        slots = indices(taken, self._device)
        for layer, pair in cache.memories.items():
            for buffer, held in zip(fixed.sources[layer], pair, strict=True):
                buffer[slots, :, : held.shape[2]] = held
        if self._program.hides is not None and (memory := next(iter(cache.memories.values()), None)):
            n_source = memory[0].shape[2]
            self._program.hides[slots] = -torch.inf
            self._program.hides[slots, :, :, :n_source] = 0.0 if hides is None else hides
        self._slots += taken

    def step(self, tokens: Tensor) -> Tensor:
        """A new token for each row (R,) → logits (R, V) for the one after it."""
        program, rows = self._program, self._rows(self._slots)
        program.tokens.index_copy_(0, rows, tokens)
        logits = program.run().index_select(0, rows)
        if self._moved:
            program.order.copy_(program.same)
            self._moved = False
        return logits

    def go_on(self, rows: Sequence[int], sentences: Sequence[int] | None) -> None:
        """Row i goes on from what row rows[i] held. Of the sentences only these stay; None: all."""
        width = self._program.shape.width
        kept = self._slots if sentences is None else [self._slots[index] for index in sentences]
        if width > 1:
            order = list(range(self._program.shape.n_rows))
            for place, row in enumerate(rows):
                order[kept[place // width] * width + place % width] = self._slots[row // width] * width + row % width
            self._program.order.copy_(indices(order, self._device))
            self._moved = True
        self._free += [slot for slot in self._slots if slot not in set(kept)]
        self._slots = list(kept)

    def _rows(self, slots: Sequence[int]) -> Tensor:
        width = self._program.shape.width
        return indices([slot * width + beam for slot in slots for beam in range(width)], self._device)


register("cuda_graph", EncoderDecoder, DecoderOnly)(SingleStepDecoder)  # the step that is captured


@machine_check("cuda_graph")
def _machine(module: nn.Module) -> Iterator[str]:
    where = device_type(module) or "cpu"
    if where != "cuda":
        yield f"CUDA graphs need a CUDA device, and this model is on a {where} device"
