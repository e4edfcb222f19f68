"""One decoding step with few small operations: it computes what Decoder.forward does for one token per row.

A step through the modules handles any length, mask and part, which costs host time. Here the parts of every layer are
collected once, and a step runs only the operations that one new token per row needs.

On a GPU the step has fixed shapes and addresses: it is captured once as a CUDA graph and replayed for every token. Such
a program has slots for sentences. When a sentence has finished, another one takes its slot, and the program stays the
same: its rows have different lengths, which only the device knows.

Shapes: R rows, B sentences, W = R / B beams, H heads, G key/value heads, K head width, D d_model, V vocabulary,
C capacity, S source tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import core
from ..core.attention import Rotate
from ..core.cache import KeysValues, map_layers
from .description import Reason, joined_projection, only, stack_refusals, sublayers, within
from .registry import Implementation, device_type, machine_check, register

Linear = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Step:
    """Values that all layers of one step share."""

    cache: core.Cache
    keep: Tensor | None  # (R, 1, 1, T) 0 or -inf, plus the position bias; None where every key is visible
    memory_keep: Tensor | None  # (B, 1, 1, S)
    rotate: Rotate | None


class SelfAttention:
    """Attention over the cache. One product, `qkv`, gives queries, keys and values; in cross-attention only queries."""

    def __init__(self, part: core.MultiHeadAttention, index: int, qkv: Linear) -> None:
        self._qkv, self._out, self._index = qkv, part.out_proj, index
        self._heads = part.n_heads, part.n_kv_heads, part.n_kv_heads
        self._width = part.d_head
        self._options: dict[str, Any] = {"scale": part.attention.scale, "enable_gqa": part.n_heads != part.n_kv_heads}

    def _mix(self, query: Tensor, key: Tensor, value: Tensor, keep: Tensor | None) -> Tensor:
        keep = keep if keep is None or keep.dtype == query.dtype else keep.to(query.dtype)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=keep, **self._options)

    def __call__(self, x: Tensor, step: Step) -> Tensor:
        heads = self._qkv(x).view(x.shape[0], -1, 1, self._width)  # (R, H + 2 G, 1, K)
        query, key, value = heads.split(self._heads, dim=1)
        if step.rotate is not None:
            query, key = step.rotate(query, key)
        key, value = step.cache.append(self._index, key, value)
        return self._out(self._mix(query, key, value, step.keep).view(x.shape[0], -1))


class CrossAttention(SelfAttention):
    """Attention over the memory. The beams of a sentence are folded into the query's length."""

    def __call__(self, x: Tensor, step: Step) -> Tensor:
        key, value = step.cache.memory(self._index, _not_computed)
        query = self._qkv(x).view(key.shape[0], -1, self._heads[0], self._width).transpose(1, 2)  # (B, H, W, K)
        mixed = self._mix(query, key, value, step.memory_keep)
        return self._out(mixed.transpose(1, 2).reshape(x.shape[0], -1))


def _not_computed() -> tuple[Tensor, Tensor]:
    raise RuntimeError("the memory's keys and values must be in the cache: the model's first step computes them")


@register("single_step", core.EncoderDecoder, core.DecoderOnly)
class SingleStepDecoder(Implementation):
    """The embedding, decoder and head of a model, for single steps. `qkv` has each layer's joined projection."""

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from only(part, core.EncoderDecoder, core.DecoderOnly)
        yield from within("decoder", stack_refusals(part.decoder, core.Decoder))

    def __init__(self, module: Any, qkv: Sequence[Linear]) -> None:
        self._embedding = module.target_embedding if hasattr(module, "target_embedding") else module.embedding
        self._stack, self._head = module.decoder, module.head
        self._parts: list[tuple[bool, nn.Module, Callable[..., Tensor], bool]] = []
        for index, (layer, joined) in enumerate(zip(module.decoder.layers, qkv, strict=True)):
            for name, norm_first, norm, part in sublayers(layer):
                if name == "self_attention":
                    part = SelfAttention(part, index, joined)
                elif name == "cross_attention":
                    part = CrossAttention(part, index, part.q_proj)
                self._parts.append((norm_first, norm, part, name != "feed_forward"))

    @staticmethod
    def joined_projections(module: Any) -> list[nn.Linear]:
        """Return each layer's projections to queries, keys and values as one linear map, for a supported model."""
        return [_linear(*joined_projection(sublayers(layer)[0].module)) for layer in module.decoder.layers]

    def step(self, tokens: Tensor, cache: core.Cache, real: Tensor | None, memory_keep: Tensor | None) -> Tensor:
        """Decode a new token for each row (R,). Return logits (R, V).

        `real` (R, T) says which keys are real, the new ones included; None means all.
        """
        x, _ = self._embedding(tokens[:, None])  # (R, 1, D)
        n_keys = cache.begin(1)
        device = x.device
        here = torch.full((1,), n_keys - 1, device=device) if real is None else real.sum(dim=1, keepdim=True) - 1
        placed = None if real is None else cache.key_positions(here)
        positions = self._stack.positions
        x = self._stack.entry(positions.embed(x, here))[:, 0]
        bias = positions.bias(here, torch.arange(n_keys, device=device) if placed is None else placed)
        step = Step(cache, _additive_mask(bias, real), memory_keep, positions.rotation(here, here))
        for norm_first, norm, part, is_attention in self._parts:
            args = (step,) if is_attention else ()
            x = x + part(norm(x), *args) if norm_first else norm(x + part(x, *args))
        cache.advance(1, placed, needs_keep=real is not None, needs_positions=False)
        logits: Tensor = self._head(self._stack.norm(x))
        return logits


def _additive_mask(bias: Tensor | None, real: Tensor | None) -> Tensor | None:
    """Combine the position bias with -inf on padding. The result broadcasts to (R, H, 1, T)."""
    if bias is not None and bias.dim() == 3:
        bias = bias[None]
    if real is None:
        return bias
    return torch.where(real[:, None, None], 0.0 if bias is None else bias, -torch.inf)


def _linear(weight: Tensor, bias: Tensor | None) -> nn.Linear:
    joined = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    joined.weight = nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        joined.bias = nn.Parameter(bias, requires_grad=False)
    return joined


def indices(places: Iterable[int], device: torch.device) -> Tensor:
    """Copy indices to a tensor on the device, without waiting for the device."""
    return torch.tensor(list(places)).to(device, non_blocking=True)


# ---- the step in fixed slots, captured as a CUDA graph ----


@dataclass(frozen=True)
class GraphShape:
    """The sizes that a program is captured for. They are rounded up, so that few programs serve all batches."""

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


class SlotCache(core.Cache):
    """A cache at fixed addresses for R rows of different lengths. Each row appends after its last token."""

    def __init__(self, shape: GraphShape, like: core.KVCache) -> None:
        super().__init__()
        self.layers = _zeros(like.layers, shape.n_rows, shape.capacity)
        self.memories = _zeros(like.memories, shape.n_sentences, shape.n_source)
        device = next(iter(self.layers.values()))[0].device
        self.lengths = torch.zeros(shape.n_rows, dtype=torch.long, device=device)
        self._slots = torch.arange(shape.capacity, device=device)
        self._rows = torch.arange(shape.n_rows, device=device)

    def real(self) -> Tensor:
        """Return which keys are real (R, C), including those that this step appends."""
        return self._slots <= self.lengths[:, None]

    def begin(self, n_new: int) -> int:
        return len(self._slots)

    def key_positions(self, new: Tensor | None) -> Tensor | None:
        return self._slots

    def append(self, layer: int, key: Tensor, value: Tensor) -> KeysValues:
        for buffer, new in zip(self.layers[layer], (key, value), strict=True):
            buffer[self._rows, :, self.lengths] = new[:, :, 0]
        return self.layers[layer]

    def advance(self, n_new: int, key_positions: Tensor | None, *, needs_keep: bool, needs_positions: bool) -> None:
        self.lengths.add_(n_new).clamp_(max=len(self._slots) - 1)  # rows in unused slots must stay in bounds

    def reorder(self, rows: Tensor) -> None:
        for buffer in (part for pair in self.layers.values() for part in pair):
            buffer.copy_(buffer.index_select(0, rows))
        self.lengths.copy_(self.lengths.index_select(0, rows))


def _zeros(layers: dict[int, KeysValues], n_rows: int, length: int) -> dict[int, KeysValues]:
    """Return buffers of zeros: masked values are multiplied by zero, and zero times NaN would be NaN."""
    return map_layers(layers, lambda like: like.new_zeros(n_rows, like.shape[1], length, like.shape[3]))


class GraphProgram:
    """One decoding step for a shape. On a GPU it is captured; elsewhere it runs eagerly."""

    def __init__(self, decoder: SingleStepDecoder, shape: GraphShape, like: core.KVCache) -> None:
        self.shape = shape
        self.cache = SlotCache(shape, like)
        device = self.cache.lengths.device
        self.tokens = torch.zeros(shape.n_rows, dtype=torch.long, device=device)
        self.identity = torch.arange(shape.n_rows, device=device)
        self.order = self.identity.clone()
        bias = torch.zeros(shape.n_sentences, 1, 1, shape.n_source, device=device) if like.memories else None
        self.memory_bias = bias  # -inf on padding
        self._decoder = decoder
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._capture()

    def run(self) -> Tensor:
        """Reorder the rows by `order`, append `tokens`, and return logits (R, V)."""
        if self._graph is None:
            return self._step()
        self._graph.replay()
        return self._logits

    def _step(self) -> Tensor:
        if self.shape.width > 1:
            self.cache.reorder(self.order)
        return self._decoder.step(self.tokens, self.cache, self.cache.real(), self.memory_bias)

    def _capture(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):  # libraries initialize at their first call, which cannot be captured
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._logits = self._step()
        self._graph = graph


class CudaGraphRunner:
    """A batch that is decoded in the slots of a program."""

    def __init__(self, program: GraphProgram) -> None:
        self._program = program
        self._free = list(reversed(range(program.shape.n_sentences)))
        self._slots: list[int] = []  # of each sentence, in the order of the batch
        self._device = program.tokens.device
        self._reordered = False

    @property
    def vacancies(self) -> int:
        """The number of sentences that can still be added."""
        return len(self._free)

    def extend(self, other: Any) -> None:
        """Copy the keys and values of a batch whose first tokens were chosen into free slots."""
        cache, starts, memory_bias = other.cache, other.starts, other.memory_bias
        shape, fixed = self._program.shape, self._program.cache
        n_new = len(starts) // shape.width
        new_slots = [self._free.pop() for _ in range(n_new)]
        rows = self._rows(new_slots)
        first = torch.arange(cache.length, device=self._device) + indices(starts, self._device)[:, None]
        places = first.clamp(max=cache.length - 1)[:, None, :, None]  # left padding becomes right padding
        for layer, pair in cache.layers.items():
            for buffer, part in zip(fixed.layers[layer], pair, strict=True):
                shifted = part[:, :, : cache.length].gather(2, places.expand(-1, part.shape[1], -1, part.shape[3]))
                buffer[rows, :, : cache.length] = shifted
        fixed.lengths[rows] = cache.length - indices(starts, self._device)
        slots = indices(new_slots, self._device)
        for layer, pair in cache.memories.items():
            for buffer, part in zip(fixed.memories[layer], pair, strict=True):
                buffer[slots, :, : part.shape[2]] = part
        bias = self._program.memory_bias
        if bias is not None and (memory := next(iter(cache.memories.values()), None)):
            bias[slots] = -torch.inf
            bias[slots, :, :, : memory[0].shape[2]] = 0.0 if memory_bias is None else memory_bias
        self._slots += new_slots

    def step(self, tokens: Tensor) -> Tensor:
        program, rows = self._program, self._rows(self._slots)
        program.tokens.index_copy_(0, rows, tokens)
        logits = program.run().index_select(0, rows)
        if self._reordered:
            program.order.copy_(program.identity)
            self._reordered = False
        return logits

    def reorder(self, rows: Sequence[int], staying: Sequence[int] | None) -> None:
        width = self._program.shape.width
        slots = self._slots if staying is None else [self._slots[index] for index in staying]
        if width > 1:
            order = list(range(self._program.shape.n_rows))
            for place, row in enumerate(rows):
                order[slots[place // width] * width + place % width] = self._slots[row // width] * width + row % width
            self._program.order.copy_(indices(order, self._device))
            self._reordered = True
        self._free += [slot for slot in self._slots if slot not in set(slots)]
        self._slots = list(slots)

    def _rows(self, slots: Sequence[int]) -> Tensor:
        width = self._program.shape.width
        return indices([slot * width + beam for slot in slots for beam in range(width)], self._device)


register("cuda_graph", core.EncoderDecoder, core.DecoderOnly)(SingleStepDecoder)  # the step that is captured


@machine_check("cuda_graph")
def _machine(module: nn.Module) -> Iterator[str]:
    if (device := device_type(module) or "cpu") != "cuda":
        yield f"CUDA graphs need a CUDA device, and this model is on a {device} device"
