"""A model as layers.c reads it: its parts described in C's structures, its matrices packed.

Shapes: N outputs, K inputs, D d_model, G key/value heads.
"""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Sequence
from ctypes import c_int64
from typing import Any

import torch
from torch import Tensor, nn

from ...core import (
    DecoderLayer,
    GatedFeedForward,
    LayerNorm,
    MultiHeadAttention,
    PreNorm,
    RMSNorm,
    Rotary,
    Stack,
)
from ..known import activation_kind
from .structures import CLayer, CMatrix, CNorm, CRows, CStack


class Packer:
    """Matrices and norms in C's layout. What C points at is kept here."""

    def __init__(self, library: ctypes.CDLL, bits: int) -> None:
        lanes, blocks = c_int64(), c_int64()
        library.packing(ctypes.byref(lanes), ctypes.byref(blocks))
        self._library, self._bits = library, bits
        self._lanes, self._multiple = lanes.value, lanes.value * blocks.value
        self._kept: list[Tensor] = []

    def matrix(self, weight: Tensor, bias: Tensor | None) -> CMatrix:
        """From (N, K), as F.linear has it."""
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

    def norm(self, norm: nn.Module) -> CNorm:
        """Of one of the three kinds."""
        kind = {nn.Identity: 0, LayerNorm: 1, RMSNorm: 2}[type(norm)]
        weight, bias = getattr(norm, "weight", None), getattr(norm, "bias", None)
        return CNorm(kind, self._keep(weight), self._keep(bias), getattr(norm, "eps", 0.0))

    def _keep(self, tensor: Tensor | None) -> int | None:
        if tensor is None:
            return None
        tensor = tensor.detach().contiguous()
        self._kept.append(tensor)
        return tensor.data_ptr()


class NativeStack:
    """An encoder's or a decoder's layers."""

    def __init__(self, stack: Stack, packer: Packer, library: ctypes.CDLL) -> None:
        self._library, self._packer = library, packer
        self.positions = stack.positions
        layers: Any = stack.layers
        self.n_layers = len(layers)
        first = layers[0]
        attention, feed_forward = first.attention.part, first.feed_forward.part
        self.n_kv_heads, self.d_head = attention.n_kv_heads, attention.d_head
        self._layers = (CLayer * len(layers))(*(self._layer(layer) for layer in layers))
        turned = isinstance(self.positions, Rotary)
        self._stack = CStack(
            n_layers=len(layers),
            d_model=attention.query.in_features,
            n_heads=attention.n_heads,
            n_kv_heads=attention.n_kv_heads,
            d_head=attention.d_head,
            norm_first=isinstance(first.attention, PreNorm),
            activation=activation_kind(feed_forward),
            gated=isinstance(feed_forward, GatedFeedForward),
            n_turned=self.positions.width if turned else 0,
            paired=self.positions.interleaved if turned else 0,
            scale=_scale(attention),
            cross_scale=_scale(first.cross_attention.part) if hasattr(first, "cross_attention") else 0.0,
            layers=self._layers,
            entry=packer.norm(stack.entry),
            last=packer.norm(stack.norm),
        )

    def run(self, rows: CRows, x: Tensor) -> None:
        """Every layer over x (R, D), in place."""
        if self._library.run_layers(
            ctypes.byref(self._stack), ctypes.byref(rows), x.data_ptr(), torch.get_num_threads()
        ):
            raise MemoryError(f"there is no memory for {rows.n_rows} rows")

    def _layer(self, layer: Any) -> CLayer:
        packer, attention = self._packer, layer.attention.part
        feed_forward = layer.feed_forward.part
        inward = [attention.query, attention.key_value]
        bias = None if attention.query.bias is None else torch.cat([linear.bias for linear in inward])
        wide = feed_forward.gate_up if isinstance(feed_forward, GatedFeedForward) else feed_forward.wide
        made = CLayer(
            inward=packer.matrix(torch.cat([linear.weight for linear in inward]), bias),
            out=packer.matrix(attention.out.weight, attention.out.bias),
            wide=packer.matrix(wide.weight, wide.bias),
            narrow=packer.matrix(feed_forward.narrow.weight, feed_forward.narrow.bias),
        )
        made.norms[0], made.norms[2] = packer.norm(layer.attention.norm), packer.norm(layer.feed_forward.norm)
        if isinstance(layer, DecoderLayer):
            cross: Any = layer.cross_attention
            made.cross_query = packer.matrix(cross.part.query.weight, cross.part.query.bias)
            made.cross_out = packer.matrix(cross.part.out.weight, cross.part.out.bias)
            made.norms[1] = packer.norm(cross.norm)
        return made


class NativeModel:
    """A model whose stacks run in C; its embeddings and positions stay torch's."""

    def __init__(self, module: Any, library: ctypes.CDLL, bits: int) -> None:
        packer = self._packer = Packer(library, bits)
        self._library = library
        self._room = _Room()
        self.reads_source = hasattr(module, "encode")
        self.embedding = module.target_embedding if self.reads_source else module.embedding
        self.decoder = NativeStack(module.decoder, packer, library)
        self.scale = module.head.scale
        self._head = packer.matrix(module.head.weight, module.head.bias)
        if self.reads_source:
            self.source_embedding = module.source_embedding
            self.encoder = NativeStack(module.encoder, packer, library)
            kept: Sequence[Any] = [layer.cross_attention.part.key_value for layer in module.decoder.layers]
            self._memory = [packer.matrix(linear.weight, linear.bias) for linear in kept]

    def logits(self, x: Tensor) -> Tensor:
        """(R, D) → (R, V), where this thread has them in every step: they are there until its next one."""
        y = self._room.of(len(x), self._head.n_out)
        return self._product(self._head, x if self.scale == 1.0 else x * self.scale, y)

    def memories(self, x: Tensor) -> list[Tensor]:
        """The memory's rows (tokens, D) → their keys and values in each layer, (2 G, tokens, K)."""
        heads = 2 * self.decoder.n_kv_heads
        every = (self._product(matrix, x, empty(len(x), matrix.n_out)) for matrix in self._memory)
        return [made.unflatten(1, (heads, -1)).transpose(0, 1).contiguous() for made in every]

    def _product(self, matrix: CMatrix, x: Tensor, y: Tensor) -> Tensor:
        x = x.float().contiguous()
        if self._library.run_product(ctypes.byref(matrix), x.data_ptr(), len(x), y.data_ptr(), torch.get_num_threads()):
            raise MemoryError(f"there is no memory for {len(x)} rows")
        return y


class _Room(threading.local):
    """A thread's own, for its logits. They are the largest of what a step makes, and memory that is new in every step
    costs more time than it takes to choose among them."""

    MOST = 1 << 24  # numbers that are kept

    def __init__(self) -> None:
        self._kept = empty(0)

    def of(self, n_rows: int, width: int) -> Tensor:
        n = n_rows * width
        if n > self.MOST:
            return empty(n_rows, width)
        if len(self._kept) < n:
            self._kept = empty(n)
        return self._kept[:n].view(n_rows, width)


def empty(*shape: int) -> Tensor:
    """Room for what C writes."""
    return torch.empty(shape, dtype=torch.float32, device="cpu")


def _scale(part: MultiHeadAttention) -> float:
    return 1 / math.sqrt(part.d_head) if part.attention.scale is None else part.attention.scale
