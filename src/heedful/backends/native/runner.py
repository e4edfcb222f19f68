"""Batches that are decoded in C. There is no padding: a row is a token, and every sequence has its own slots.

Shapes: B sentences, R sequences (the beams of each sentence in turn), C slots, Q columns, G key/value heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import torch
from torch import Tensor

from ...core import ALiBi, Learned, Relative, Rotary, Sinusoidal
from ..single_step import indices
from .model import CRows, NativeModel, NativeStack, empty

CPU = torch.device("cpu")
EMBEDDED = (Sinusoidal, Learned)  # positions that are added to the input
SLOTS = 32  # initial room for tokens; doubled when it runs out


class NativeCache:
    """Keys and values of every layer: (Q, G, C, K).

    `origin` says in which column a sequence finds its key of a slot. Beams share the keys of a common beginning, and
    reordering beams copies no keys.
    """

    def __init__(self, stack: NativeStack, n_slots: int, n_columns: int) -> None:
        shape = n_columns, stack.n_kv_heads, n_slots, stack.d_head
        self.layers = [empty(*shape) for _ in range(2 * stack.n_layers)]  # the keys of all, then the values of all
        self.origin = torch.arange(n_columns, dtype=torch.int32).repeat(n_slots, 1)  # (C, R)

    @property
    def n_slots(self) -> int:
        """C, including dropped slots that still take memory."""
        return self.layers[0].stride(1) // self.layers[0].shape[3]

    def make_room(self, length: int, n_sequences: int) -> None:
        """Make room for one more slot after the first `length`, with a column for each sequence."""
        n_slots = self.layers[0].shape[2]
        self._grow(n_sequences, 2 * (length + 1) if length >= n_slots else n_slots, length)
        if len(self.origin) < self.layers[0].shape[2] or self.origin.shape[1] != n_sequences:
            origin = torch.empty(self.layers[0].shape[2], n_sequences, dtype=torch.int32)
            origin[:length] = self.origin[:length]
            self.origin = origin
        self.origin[length] = torch.arange(n_sequences, dtype=torch.int32)

    def reorder(self, rows: Tensor, length: int) -> None:
        """Let sequence i continue from the keys of sequence rows[i]."""
        self.origin = self.origin[:length].index_select(1, rows)

    def extend(self, other: NativeCache, length: int, other_length: int) -> None:
        """Append the sequences of another cache. Both end at the same slot."""
        if other_length <= length:
            self._insert(other, length, other_length)
        else:
            self._merge(other, length, other_length)

    def _insert(self, other: NativeCache, length: int, other_length: int) -> None:
        """Copy the other cache into columns that no sequence uses in the last slots; nothing here is moved."""
        first, n_here, n_other = length - other_length, self.origin.shape[1], other.origin.shape[1]
        column = int(self.origin[first:length].max()) + 1
        self._grow(column + n_other, self.layers[0].shape[2], length)
        for layer, other_layer in zip(self.layers, other.layers, strict=True):
            layer[column : column + n_other, :, first:length] = other._compact(other_layer, other_length)
        origin = torch.zeros(length, n_here + n_other, dtype=torch.int32)  # they see none of the slots before theirs
        origin[:, :n_here] = self.origin[:length]
        origin[first:, n_here:] = torch.arange(column, column + n_other, dtype=torch.int32)
        self.origin = origin

    def _merge(self, other: NativeCache, length: int, other_length: int) -> None:
        """Copy both caches into new memory, with a column for every sequence."""
        longest = max(length, other_length)
        n_here, n_other = self.origin.shape[1], other.origin.shape[1]
        for index, (layer, other_layer) in enumerate(zip(self.layers, other.layers, strict=True)):
            merged = self.layers[index] = empty(n_here + n_other, layer.shape[1], longest + SLOTS, layer.shape[3])
            merged[:n_here, :, longest - length : longest] = self._compact(layer, length)
            merged[n_here:, :, longest - other_length : longest] = other._compact(other_layer, other_length)
        self.origin = torch.arange(n_here + n_other, dtype=torch.int32).repeat(longest, 1)

    def _grow(self, n_columns: int, n_slots: int, length: int) -> None:
        """Make room for at least these columns and slots. The first `length` slots keep their values."""
        columns, heads, slots, width = self.layers[0].shape
        if n_columns <= columns and n_slots <= slots:
            return
        for index, layer in enumerate(self.layers):
            self.layers[index] = empty(max(columns, n_columns), heads, max(slots, n_slots), width)
            self.layers[index][:columns, :, :length] = layer[:, :, :length]

    def drop(self, n: int) -> None:
        self.layers = [part[:, :, n:] for part in self.layers]
        self.origin = self.origin[n:]

    def _compact(self, layer: Tensor, length: int) -> Tensor:
        """Return (R, G, length, K), with one column for every sequence."""
        columns = self.origin[:length].long().t()  # (R, length)
        return layer[columns, :, torch.arange(length)].transpose(1, 2)


def run(
    stack: NativeStack,
    cache: NativeCache,
    x: Tensor,
    *,
    sequence: Tensor,
    slot: Tensor,
    first: Tensor,
    end: Tensor,
    n_beams: int = 1,
    memory: Memory | None = None,
) -> Tensor:
    """Run the layers over the rows x (R, D).

    Row i is a token of `sequence[i]`, its key goes to `slot[i]`, and it sees the slots from `first[i]` to `end[i]`.
    """
    positions, placed = stack.positions, slot - first
    x = positions.embed(x[None], placed)[0] if type(positions) in EMBEDDED else x
    x = x.to(torch.float32, copy=True).contiguous()  # C writes into it
    n_keys = int(end.max())
    places = torch.stack([sequence, slot, first, end]).int()
    bias = cosines = sines = None
    if isinstance(positions, Relative | ALiBi):  # they depend on distances alone, so slots serve as positions
        bias = positions.bias(slot, torch.arange(n_keys)).transpose(0, 1).float().contiguous()  # (R, H, keys)
    if isinstance(positions, Rotary):
        angles = placed[:, None].float() * positions.frequencies()
        cosines, sines = angles.cos().contiguous(), angles.sin().contiguous()
    keys, values = _pointers(cache.layers).chunk(2)
    memories = None if memory is None else _pointers(memory.layers)
    rows = CRows(
        n_rows=len(x),
        n_slots=cache.n_slots,
        n_beams=n_beams,
        sequence=_at(places[0]),
        slot=_at(places[1]),
        first=_at(places[2]),
        end=_at(places[3]),
        origin=_at(cache.origin),
        n_sequences=cache.origin.shape[1],
        keys=_at(keys),
        values=_at(values),
        bias=_at(bias),
        bias_width=n_keys,
        longest=n_keys if memory is None else max(n_keys, int(memory.lengths.max())),
        cosines=_at(cosines),
        sines=_at(sines),
        memory=_at(memories),
        n_memory=0 if memory is None else memory.layers[0].shape[1],
        source=None if memory is None else _at(memory.first),
        n_source=None if memory is None else _at(memory.lengths),
    )
    stack.run(rows, x)
    return x


class Memory:
    """The sources' keys and values in each layer of the decoder, concatenated, and where each source begins."""

    def __init__(self, layers: list[Tensor], lengths: Sequence[int]) -> None:
        self.layers = layers
        self.lengths = indices(lengths, CPU)
        self.first = self.lengths.cumsum(0) - self.lengths

    def select(self, sentences: Tensor) -> None:
        self.lengths, self.first = self.lengths[sentences], self.first[sentences]

    def extend(self, other: Memory) -> None:
        """Append the sources of another memory, and drop those that were deselected."""
        places = torch.cat([torch.arange(int(n)) + f for n, f in zip(self.lengths, self.first, strict=True)])
        pairs = zip(self.layers, other.layers, strict=True)
        self.layers = [torch.cat([layer[:, places], other_layer], 1) for layer, other_layer in pairs]
        offset = int(self.lengths.sum())
        self.first = torch.cat([self.lengths.cumsum(0) - self.lengths, other.first + offset])
        self.lengths = torch.cat([self.lengths, other.lengths])


class NativeRunner:
    """A batch that is decoded in C, of answers to sources or of continued prompts. `memory` is of encoded sources."""

    def __init__(self, model: NativeModel, inputs: Sequence[Any], start: int, memory: Memory | None = None) -> None:
        self._model, self._memory = model, memory
        if model.reads_source:
            self._memory = memory or self._encode(inputs)
            inputs = [[start]] * len(inputs)
        self._prompts = inputs
        self._length = 0  # slots that are filled
        self._starts = torch.tensor(0)
        self._cache = NativeCache(model.decoder, 1, 1)

    def _encode(self, sources: Sequence[Sequence[int]]) -> Memory:
        lengths = indices(map(len, sources), CPU)
        sequence = torch.repeat_interleave(torch.arange(len(sources)), lengths)
        slot = torch.cat([torch.arange(len(source)) for source in sources])
        model = self._model
        x, _ = model.source_embedding(torch.tensor([[token for source in sources for token in source]]))
        cache = NativeCache(model.encoder, int(lengths.max()), len(sources))
        first = torch.zeros_like(slot)
        x = run(model.encoder, cache, x[0], sequence=sequence, slot=slot, first=first, end=lengths[sequence])
        return Memory(model.memories(x), lengths.tolist())

    def prefill(self) -> Tensor:
        lengths = indices(map(len, self._prompts), CPU)
        self._length = int(lengths.max())
        self._starts = self._length - lengths  # all end at the same slot
        self._cache = NativeCache(self._model.decoder, self._length + SLOTS, len(lengths))
        sequence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        slot = torch.cat([torch.arange(int(start), self._length) for start in self._starts])
        x, _ = self._model.embedding(torch.tensor([[token for prompt in self._prompts for token in prompt]]))
        first = self._starts[sequence]
        x = self._run(x[0], sequence=sequence, slot=slot, first=first, end=slot + 1)
        return self._model.logits(x[lengths.cumsum(0) - 1])

    def step(self, tokens: Tensor) -> Tensor:
        self._cache.make_room(self._length, len(tokens))
        x, _ = self._model.embedding(tokens[None])
        sequence = torch.arange(len(tokens))
        slot = torch.full_like(sequence, self._length)
        x = self._run(x[0], sequence=sequence, slot=slot, first=self._starts, end=slot + 1)
        self._length += 1
        return self._model.logits(x)

    def _run(self, x: Tensor, **rows: Tensor) -> Tensor:
        n_sequences = len(self._starts)
        n_beams = 1 if self._memory is None else n_sequences // len(self._memory.lengths)
        return run(self._model.decoder, self._cache, x, n_beams=n_beams, memory=self._memory, **rows)

    def reorder(self, rows: Sequence[int], staying: Sequence[int] | None) -> None:
        chosen = indices(rows, CPU)
        self._cache.reorder(chosen, self._length)
        self._starts = self._starts[chosen]
        if staying is not None and self._memory is not None:
            self._memory.select(indices(staying, CPU))
        unused = int(self._starts.min())
        if unused:
            self._cache.drop(unused)
            self._starts, self._length = self._starts - unused, self._length - unused

    def extend(self, other: Self) -> None:
        longest = max(self._length, other._length)
        self._cache.extend(other._cache, self._length, other._length)
        halves = [half._starts + longest - half._length for half in (self, other)]
        self._starts, self._length = torch.cat(halves), longest
        if self._memory is not None and other._memory is not None:
            self._memory.extend(other._memory)

    def allocate(self, width: int, capacity: int) -> Self:
        return self


def _pointers(tensors: Sequence[Tensor]) -> Tensor:
    return torch.tensor([tensor.data_ptr() for tensor in tensors])


def _at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
