"""A model in the structures of layers.c, with packed matrices.

Shapes: N outputs, K inputs, D d_model, G key/value heads.
"""

import ctypes
import math
import threading
from collections.abc import Iterator
from ctypes import POINTER, Structure, c_float, c_int64, c_void_p
from typing import Any

import torch
from torch import Tensor, nn

from ... import core
from ...families.description import activation_name
from ..description import (
    SUBLAYERS,
    Reason,
    first_projection,
    joined_projection,
    only,
    stack_refusals,
    sublayers,
    within,
)
from ..registry import Implementation, machine_check, register
from ..single_step import SingleStepDecoder
from .library import unavailable_reason

ACTIVATION_KINDS = {"relu": 0, "gelu": 1, "gelu_tanh": 2, "silu": 3}  # as layers.c numbers them


# ---- the structures of layers.c, field by field ----


def _fields(kind: Any, names: str) -> list[tuple[str, Any]]:
    return [(name, kind) for name in names.split()]


class CMatrix(Structure):
    """A packed matrix and its bias."""

    _fields_ = (*_fields(c_int64, "n_in n_out bits"), *_fields(c_void_p, "weights scales bias"))


class CNorm(Structure):
    """A norm: its kind, weight, bias and epsilon."""

    _fields_ = (("kind", c_int64), *_fields(c_void_p, "weight bias"), ("eps", c_float))


class CLayer(Structure):
    """The matrices and norms of a layer."""

    _fields_ = (*_fields(CMatrix, "qkv out cross_query cross_out up_proj down_proj"), ("norms", CNorm * 3))


class CStack(Structure):
    """The layers, and the sizes and settings that all of them share."""

    _fields_ = (
        *_fields(c_int64, "n_layers d_model n_heads n_kv_heads d_head norm_first activation gated n_turned paired"),
        *_fields(c_float, "scale cross_scale"),
        ("layers", POINTER(CLayer)),
        *_fields(CNorm, "entry last"),
    )


class CRows(Structure):
    """The rows to run, and where their keys and values are."""

    _fields_ = (
        *_fields(c_int64, "n_rows n_slots n_beams"),
        *_fields(c_void_p, "sequence slot first end origin"),
        ("n_sequences", c_int64),
        *_fields(c_void_p, "keys values bias"),
        *_fields(c_int64, "bias_width longest"),
        *_fields(c_void_p, "cosines sines memory"),
        ("n_memory", c_int64),
        *_fields(c_void_p, "source n_source"),
    )


# ---- a model in these structures ----


class Packer:
    """Converts matrices and norms to C's layout, and keeps the tensors that C points at alive."""

    def __init__(self, library: ctypes.CDLL, bits: int) -> None:
        lanes, blocks = c_int64(), c_int64()
        library.packing(ctypes.byref(lanes), ctypes.byref(blocks))
        self._library, self._bits = library, bits
        self._lanes, self._multiple = lanes.value, lanes.value * blocks.value
        self._tensors: list[Tensor] = []

    def matrix(self, weight: Tensor, bias: Tensor | None) -> CMatrix:
        """Pack a weight (N, K), as F.linear takes it, and a bias."""
        n_out, n_in = weight.shape
        n_padded = -(-n_out // self._multiple) * self._multiple
        scales = None
        if self._bits == 8:
            scales = torch.ones(n_padded, dtype=torch.float32)
            scales[:n_out] = (weight.abs().amax(dim=1) / 127).clamp(min=1e-30)
            whole = torch.full((n_padded, -(-n_in // 4) * 4), 128, dtype=torch.uint8)
            whole[:n_out, :n_in] = ((weight / scales[:n_out, None]).round() + 128).to(torch.uint8)
            packed = whole.view(n_padded // self._lanes, self._lanes, -1, 4)
        else:
            whole = torch.zeros(n_padded, n_in, dtype=torch.float32)
            whole[:n_out] = weight
            packed = whole.view(n_padded // self._lanes, self._lanes, n_in)
        packed = packed.transpose(1, 2).contiguous()
        return CMatrix(n_in, n_out, self._bits, self._keep(packed), self._keep(scales), self._keep(bias))

    def linear(self, linear: nn.Linear) -> CMatrix:
        return self.matrix(linear.weight, linear.bias)

    def norm(self, norm: nn.Module) -> CNorm:
        kind = {nn.Identity: 0, core.LayerNorm: 1, core.RMSNorm: 2}[type(norm)]
        weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
        return CNorm(kind, self._keep(weight), self._keep(bias), getattr(norm, "eps", 0.0))

    def _keep(self, tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        tensor = tensor.detach().contiguous()
        self._tensors.append(tensor)
        return tensor.data_ptr()


class NativeStack:
    """The layers of an encoder or a decoder."""

    def __init__(self, stack: core.Stack, packer: Packer, library: ctypes.CDLL) -> None:
        self._library, self._packer = library, packer
        self.positions = stack.positions
        self.n_layers = len(stack.layers)
        self._layers = (CLayer * self.n_layers)(*map(self._layer, stack.layers))
        first, *_ = described = sublayers(stack.layers[0])
        parts = {sublayer.name: sublayer.module for sublayer in described}
        attention, cross, feed_forward = first.module, parts.get("cross_attention"), parts["feed_forward"]
        self.n_kv_heads, self.d_head = attention.n_kv_heads, attention.d_head
        rotary = isinstance(self.positions, core.Rotary)
        self._stack = CStack(
            n_layers=self.n_layers,
            d_model=attention.q_proj.in_features,
            n_heads=attention.n_heads,
            n_kv_heads=attention.n_kv_heads,
            d_head=attention.d_head,
            norm_first=first.norm_first,
            activation=ACTIVATION_KINDS[activation_name(feed_forward.activation) or ""],
            gated=isinstance(feed_forward, core.GatedFeedForward),
            n_turned=self.positions.width if rotary else 0,
            paired=self.positions.interleaved if rotary else 0,
            scale=_scale(attention),
            cross_scale=0.0 if cross is None else _scale(cross),
            layers=self._layers,
            entry=packer.norm(stack.entry),
            last=packer.norm(stack.norm),
        )

    def run(self, rows: CRows, x: Tensor) -> None:
        """Run every layer over x (R, D), in place."""
        if self._library.run_layers(
            ctypes.byref(self._stack), ctypes.byref(rows), x.data_ptr(), torch.get_num_threads()
        ):
            raise MemoryError(f"out of memory for {rows.n_rows} rows")

    def _layer(self, layer: nn.Module) -> CLayer:
        packer, packed = self._packer, CLayer()
        for name, _, norm, part in sublayers(layer):
            packed.norms[SUBLAYERS.index(name)] = packer.norm(norm)
            if name == "self_attention":
                packed.qkv, packed.out = packer.matrix(*joined_projection(part)), packer.linear(part.out_proj)
            elif name == "cross_attention":
                packed.cross_query, packed.cross_out = packer.linear(part.q_proj), packer.linear(part.out_proj)
            else:
                packed.up_proj, packed.down_proj = packer.linear(first_projection(part)), packer.linear(part.down_proj)
        return packed


@register("native", core.EncoderDecoder, core.DecoderOnly)
class NativeModel(Implementation):
    """A model whose stacks run in C; its embeddings and positions run in torch."""

    @classmethod
    def refusals(cls, part: Any) -> Iterator[Reason]:
        yield from SingleStepDecoder.refusals(part)
        if other := {(tensor.dtype, tensor.device.type) for tensor in part.parameters()} - {(torch.float32, "cpu")}:
            seen = " and ".join(sorted(f"{str(dtype).removeprefix('torch.')} on {where}" for dtype, where in other))
            yield Reason("", f"the layers in C take float32 on a CPU, not {seen}")
        for name, child in part.named_children():
            if name.endswith("embedding"):
                yield from within(name, only(child, core.TokenEmbedding))
                if getattr(child, "segments", None) is not None:
                    yield Reason(name, "it adds segments")
        yield from within("head", (reasons := list(only(part.head, core.VocabularyHead))))
        if not reasons:
            yield from within("head.transform", only(part.head.transform, nn.Identity))
        for name, kind in (("encoder", core.Encoder), ("decoder", core.Decoder)):
            if (stack := getattr(part, name, None)) is None:
                continue
            reasons = list(stack_refusals(stack, kind))
            if name == "encoder":  # SingleStepDecoder's include the decoder's
                yield from within(name, reasons)
            if not reasons:
                yield from within(name, _native_stack_refusals(stack))

    def __init__(self, module: Any, library: ctypes.CDLL, bits: int) -> None:
        packer = self._packer = Packer(library, bits)
        self._library = library
        self._buffer = _Buffer()
        self.reads_source = hasattr(module, "encode")
        self.embedding = module.target_embedding if self.reads_source else module.embedding
        self.decoder = NativeStack(module.decoder, packer, library)
        self.scale = module.head.scale
        self._head = packer.matrix(module.head.weight, module.head.bias)
        if self.reads_source:
            self.source_embedding = module.source_embedding
            self.encoder = NativeStack(module.encoder, packer, library)
            attentions = [sublayers(layer)[1].module for layer in module.decoder.layers]
            self._memory = [packer.linear(cross.kv_proj) for cross in attentions]

    def logits(self, x: Tensor) -> Tensor:
        """Return logits (R, V) of x (R, D), in memory that this thread's next call overwrites."""
        y = self._buffer.get(len(x), self._head.n_out)
        return self._product(self._head, x if self.scale == 1.0 else x * self.scale, y)

    def memories(self, x: Tensor) -> list[Tensor]:
        """Return keys and values in each layer (2 G, tokens, K) of the memory's rows (tokens, D)."""
        heads = 2 * self.decoder.n_kv_heads
        products = (self._product(matrix, x, empty(len(x), matrix.n_out)) for matrix in self._memory)
        return [product.unflatten(1, (heads, -1)).transpose(0, 1).contiguous() for product in products]

    def _product(self, matrix: CMatrix, x: Tensor, y: Tensor) -> Tensor:
        x = x.float().contiguous()
        if self._library.run_product(ctypes.byref(matrix), x.data_ptr(), len(x), y.data_ptr(), torch.get_num_threads()):
            raise MemoryError(f"out of memory for {len(x)} rows")
        return y


class _Buffer(threading.local):
    """Memory for the logits of each thread. Allocating it in every step would take longer than choosing tokens."""

    MAX_SIZE = 1 << 24  # numbers

    def __init__(self) -> None:
        self._memory = empty(0)

    def get(self, n_rows: int, width: int) -> Tensor:
        n = n_rows * width
        if n > self.MAX_SIZE:
            return empty(n_rows, width)
        if len(self._memory) < n:
            self._memory = empty(n)
        return self._memory[:n].view(n_rows, width)


def empty(*shape: int) -> Tensor:
    """Allocate float32 memory that C fills."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def _scale(part: core.MultiHeadAttention) -> float:
    return 1 / math.sqrt(part.d_head) if part.attention.scale is None else part.attention.scale


@machine_check("native")
def _machine(module: nn.Module) -> Iterator[str]:
    if reason := unavailable_reason():
        yield reason


def _native_stack_refusals(stack: Any) -> Iterator[Reason]:
    """Require what layers.c supports, of a stack that `stack_refusals` accepts."""
    for name in ("entry", "norm"):
        yield from within(name, only(getattr(stack, name), nn.Identity, core.LayerNorm, core.RMSNorm))
    for index, layer in enumerate(stack.layers):
        for name, _, norm, part in sublayers(layer):
            path = f"layers.{index}.{name}"
            yield from within(f"{path}.norm", only(norm, core.LayerNorm, core.RMSNorm))
            if name == "feed_forward":
                for linear in ("down_proj", "gate_up_proj" if hasattr(part, "gate_up_proj") else "up_proj"):
                    yield from within(f"{path}.sublayer.{linear}", only(getattr(part, linear), nn.Linear))
                if activation_name(part.activation) not in ACTIVATION_KINDS:
                    yield Reason(f"{path}.sublayer", f"its activation is not one of {', '.join(ACTIVATION_KINDS)}")
        if _common(layer) != _common(stack.layers[0]):
            yield Reason(f"layers.{index}", "it differs from the first layer in more than its weights")
    attentions = [part for name, _, _, part in sublayers(stack.layers[0]) if name != "feed_forward"]
    if len({(part.n_heads, part.n_kv_heads, part.d_head) for part in attentions}) > 1:
        yield Reason("layers.0", "its self-attention and cross-attention have different heads")
    yield from within("positions", _positions_refusals(stack.positions, attentions[0]))


def _common(layer: Any) -> list[tuple[object, ...]]:
    """Return what must be equal in all layers of a stack."""
    return [
        (name, norm_first, type(part), activation_name(part.activation))
        if name == "feed_forward"
        else (name, norm_first, part.n_heads, part.n_kv_heads, part.d_head, part.attention.scale)
        for name, norm_first, _, part in sublayers(layer)
    ]


def _positions_refusals(positions: Any, attention: core.MultiHeadAttention) -> Iterator[Reason]:
    sizes = {core.Relative: "n_heads", core.ALiBi: "n_heads", core.Rotary: "d_head"}
    if (size := sizes.get(type(positions))) is not None:
        value = positions.weight.shape[1] if type(positions) is core.Relative else getattr(positions, size)
        if value != getattr(attention, size):
            yield Reason("", f"its {size} is {value}, and that of attention {getattr(attention, size)}")
