"""Batches that are written in C. No padding: a row is a token, and every sequence has slots of its own.

Shapes: B sentences, R sequences (the beams of each sentence in turn), C slots, Q columns, G key/value heads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import torch
from torch import Tensor

from ...core import ALiBi, Learned, Relative, Rotary, Sinusoidal
from ..logits import indices
from .model import NativeModel, NativeStack, empty
from .structures import CRows

CPU = torch.device("cpu")
EMBEDDED = (Sinusoidal, Learned)  # what adds something to the input
SLOTS = 32  # room for so many tokens at first; doubled when it runs out


class Store:
    """Keys and values of every layer: (Q, G, C, K). A sequence finds those of a slot in the column `origin` says,
    so that beams which share a past share its keys, and going on from another beam copies nothing.
    """

    def __init__(self, stack: NativeStack, n_slots: int, n_columns: int) -> None:
        shape = n_columns, stack.n_kv_heads, n_slots, stack.d_head
        self.keys = [empty(*shape) for _ in range(stack.n_layers)]
        self.values = [empty(*shape) for _ in range(stack.n_layers)]
        self.origin = torch.arange(n_columns, dtype=torch.int32).repeat(n_slots, 1)  # (C, R)

    @property
    def n_slots(self) -> int:
        """C, where slots that were dropped still take room."""
        return self.keys[0].stride(1) // self.keys[0].shape[3]

    def make_room(self, length: int, n_sequences: int) -> None:
        """For one more slot after the first `length`, and a column there for each sequence."""
        n_slots = self.keys[0].shape[2]
        self._widen(n_sequences, 2 * (length + 1) if length >= n_slots else n_slots, length)
        if len(self.origin) < self.keys[0].shape[2] or self.origin.shape[1] != n_sequences:
            origin = torch.empty(self.keys[0].shape[2], n_sequences, dtype=torch.int32)
            origin[:length] = self.origin[:length]
            self.origin = origin
        self.origin[length] = torch.arange(n_sequences, dtype=torch.int32)

    def reorder(self, rows: Tensor, length: int) -> None:
        """Sequence i goes on from the keys of sequence rows[i]."""
        self.origin = self.origin[:length].index_select(1, rows)

    def join(self, other: Store, length: int, other_length: int) -> None:
        """The sequences of another store come after these. Both end at the same slot."""
        if other_length <= length:
            self._append(other, length, other_length)
        else:
            self._merge(other, length, other_length)

    def _append(self, other: Store, length: int, other_length: int) -> None:
        """What is here stays where it is: in the last slots, the newcomers take columns that nobody has there."""
        first, n_own, n_other = length - other_length, self.origin.shape[1], other.origin.shape[1]
        taken = int(self.origin[first:length].max()) + 1
        self._widen(taken + n_other, self.keys[0].shape[2], length)
        for own, others in ((self.keys, other.keys), (self.values, other.values)):
            for held, more in zip(own, others, strict=True):
                held[taken : taken + n_other, :, first:length] = other._compact(more, other_length)
        origin = torch.zeros(length, n_own + n_other, dtype=torch.int32)  # before they came, they see nothing
        origin[:, :n_own] = self.origin[:length]
        origin[first:, n_own:] = torch.arange(taken, taken + n_other, dtype=torch.int32)
        self.origin = origin

    def _merge(self, other: Store, length: int, other_length: int) -> None:
        """In a new place, every sequence in a column of its own."""
        longest = max(length, other_length)
        n_own, n_other = self.origin.shape[1], other.origin.shape[1]
        for own, others in ((self.keys, other.keys), (self.values, other.values)):
            for index, held in enumerate(own):
                own[index] = empty(n_own + n_other, held.shape[1], longest + SLOTS, held.shape[3])
                own[index][:n_own, :, longest - length : longest] = self._compact(held, length)
                own[index][n_own:, :, longest - other_length : longest] = other._compact(others[index], other_length)
        self.origin = torch.arange(n_own + n_other, dtype=torch.int32).repeat(longest, 1)

    def _widen(self, n_columns: int, n_slots: int, length: int) -> None:
        """So many columns and slots at least; what is in the first `length` slots is kept."""
        columns, heads, slots, width = self.keys[0].shape
        if n_columns <= columns and n_slots <= slots:
            return
        for parts in (self.keys, self.values):
            for index, held in enumerate(parts):
                parts[index] = empty(max(columns, n_columns), heads, max(slots, n_slots), width)
                parts[index][:columns, :, :length] = held[:, :, :length]

    def drop(self, n: int) -> None:
        """Forget the first n slots."""
        self.keys, self.values = ([part[:, :, n:] for part in parts] for parts in (self.keys, self.values))
        self.origin = self.origin[n:]

    def _compact(self, held: Tensor, length: int) -> Tensor:
        """(R, G, length, K): every sequence in a column of its own."""
        columns = self.origin[:length].long().t()  # (R, length)
        return held[columns, :, torch.arange(length)].transpose(1, 2)


def run(
    stack: NativeStack,
    store: Store,
    x: Tensor,
    *,
    sequence: Tensor,
    slot: Tensor,
    first: Tensor,
    end: Tensor,
    n_beams: int = 1,
    memory: Memory | None = None,
) -> Tensor:
    """The layers over the rows x (R, D); each is a token of a sequence, has its key in a slot, and sees some slots."""
    positions, placed = stack.positions, slot - first
    x = positions.embed(x[None], placed)[0] if type(positions) in EMBEDDED else x
    x = x.to(torch.float32, copy=True).contiguous()  # C writes into it
    n_keys = int(end.max())
    places = torch.stack([sequence, slot, first, end]).int()
    bias = turned = None
    if isinstance(positions, Relative | ALiBi):  # they look at distances alone, so slots will do for positions
        bias = positions.bias(slot, torch.arange(n_keys)).transpose(0, 1).float().contiguous()  # (R, H, keys)
    if isinstance(positions, Rotary):
        angles = placed[:, None].float() * positions.frequencies()
        turned = angles.cos().contiguous(), angles.sin().contiguous()
    layers = [_pointers(parts) for parts in (store.keys, store.values)]
    memories = None if memory is None else _pointers(memory.layers)
    rows = CRows(
        n_rows=len(x),
        n_slots=store.n_slots,
        n_beams=n_beams,
        sequence=_at(places[0]),
        slot=_at(places[1]),
        first=_at(places[2]),
        end=_at(places[3]),
        origin=_at(store.origin),
        n_sequences=store.origin.shape[1],
        keys=_at(layers[0]),
        values=_at(layers[1]),
        bias=_at(bias),
        bias_width=n_keys,
        longest=n_keys if memory is None else max(n_keys, int(memory.lengths.max())),
        cosines=None if turned is None else _at(turned[0]),
        sines=None if turned is None else _at(turned[1]),
        memory=_at(memories),
        n_memory=0 if memory is None else memory.layers[0].shape[1],
        source=None if memory is None else _at(memory.first),
        n_source=None if memory is None else _at(memory.lengths),
    )
    stack.run(rows, x)
    return x


class Memory:
    """The sources' keys and values in each layer of the decoder, one after another, and where each source is."""

    def __init__(self, layers: list[Tensor], lengths: Sequence[int]) -> None:
        self.layers = layers
        self.lengths = indices(lengths, CPU)
        self.first = self.lengths.cumsum(0) - self.lengths

    def select(self, sentences: Tensor) -> None:
        """Keep these sources only."""
        self.lengths, self.first = self.lengths[sentences], self.first[sentences]

    def join(self, other: Memory) -> None:
        """Sources that nobody reads any more are left behind."""
        places = torch.cat([torch.arange(int(n)) + f for n, f in zip(self.lengths, self.first, strict=True)])
        self.layers = [
            torch.cat([own[:, places], more], 1) for own, more in zip(self.layers, other.layers, strict=True)
        ]
        offset = int(self.lengths.sum())
        own_first = self.lengths.cumsum(0) - self.lengths
        self.first = torch.cat([own_first, other.first + offset])
        self.lengths = torch.cat([self.lengths, other.lengths])


class NativeRows:
    """A batch that is being written: of answers to sources, or of prompts that go on."""

    def __init__(self, model: NativeModel, inputs: Sequence[Sequence[int]], start: int) -> None:
        self._model = model
        self._memory: Memory | None = None
        if model.reads_source:
            self._memory = self._read(inputs)
            inputs = [[start]] * len(inputs)
        self._prompts = inputs
        self._length = 0  # slots that are filled
        self._starts = torch.tensor(0)
        self._store = Store(model.decoder, 1, 1)

    def _read(self, sources: Sequence[Sequence[int]]) -> Memory:
        lengths = indices(map(len, sources), CPU)
        sequence = torch.repeat_interleave(torch.arange(len(sources)), lengths)
        slot = torch.cat([torch.arange(len(source)) for source in sources])
        model = self._model
        x, _ = model.source_embedding(torch.tensor([[token for source in sources for token in source]]))
        store = Store(model.encoder, int(lengths.max()), len(sources))
        none = torch.zeros_like(slot)
        x = run(model.encoder, store, x[0], sequence=sequence, slot=slot, first=none, end=lengths[sequence])
        return Memory(model.memories(x), lengths.tolist())

    def start(self) -> Tensor:
        """Logits (B, V) for each answer's first token."""
        lengths = indices(map(len, self._prompts), CPU)
        self._length = int(lengths.max())
        self._starts = self._length - lengths  # all end at the same slot
        self._store = Store(self._model.decoder, self._length + SLOTS, len(lengths))
        sequence = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        slot = torch.cat([torch.arange(int(start), self._length) for start in self._starts])
        x, _ = self._model.embedding(torch.tensor([[token for prompt in self._prompts for token in prompt]]))
        first = self._starts[sequence]
        x = self._run(x[0], sequence=sequence, slot=slot, first=first, end=slot + 1)
        return self._model.logits(x[lengths.cumsum(0) - 1])

    def step(self, tokens: Tensor) -> Tensor:
        """A new token for each sequence (R,) → logits (R, V) for the one after it."""
        self._store.make_room(self._length, len(tokens))
        x, _ = self._model.embedding(tokens[None])
        every = torch.arange(len(tokens))
        here = torch.full_like(every, self._length)
        x = self._run(x[0], sequence=every, slot=here, first=self._starts, end=here + 1)
        self._length += 1
        return self._model.logits(x)

    def _run(self, x: Tensor, **rows: Tensor) -> Tensor:
        n_sequences = len(self._starts)
        n_beams = 1 if self._memory is None else n_sequences // len(self._memory.lengths)
        return run(self._model.decoder, self._store, x, n_beams=n_beams, memory=self._memory, **rows)

    def go_on(self, rows: Sequence[int], sentences: Sequence[int] | None) -> None:
        """Sequence i goes on from what sequence rows[i] held. Of the sentences only these stay; None: all."""
        chosen = indices(rows, CPU)
        self._store.reorder(chosen, self._length)
        self._starts = self._starts[chosen]
        if sentences is not None and self._memory is not None:
            self._memory.select(indices(sentences, CPU))
        unused = int(self._starts.min())
        if unused:
            self._store.drop(unused)
            self._starts, self._length = self._starts - unused, self._length - unused

    def join(self, other: Self) -> None:
        """The sequences of another batch, which has started, come after these."""
        longest = max(self._length, other._length)
        self._store.join(other._store, self._length, other._length)
        halves = [half._starts + longest - half._length for half in (self, other)]
        self._starts, self._length = torch.cat(halves), longest
        if self._memory is not None and other._memory is not None:
            self._memory.join(other._memory)

    def settle(self, width: int, capacity: int) -> Self:
        """It stays where it is."""
        return self


def _pointers(tensors: Sequence[Tensor]) -> Tensor:
    return torch.tensor([tensor.data_ptr() for tensor in tensors])


def _at(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
