"""Layers' parts from CTranslate2's variables. Their sizes are read from the weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor, nn

from ...core import FeedForward, GatedFeedForward, LayerNorm, MultiHeadAttention, PostNorm, PreNorm, RMSNorm
from ..weights import WeightsError
from .variables import Variables

M = TypeVar("M", bound=nn.Module)
Map = tuple[Tensor, Tensor | None]  # a matrix, and a bias where there is one


class Parts:
    """What the layers of one stack are made of."""

    def __init__(
        self,
        variables: Variables,
        *,
        d_model: int,
        n_heads: int,
        pre_norm: bool,
        activation: str,
        epsilon: float | None,
    ) -> None:
        self._variables = variables
        self._d_model = d_model
        self._n_heads = n_heads
        self._residual = PreNorm if pre_norm else PostNorm
        self._activation = activation
        self._epsilon = epsilon

    def self_attention(self, scope: str) -> nn.Module:
        """Queries, keys and values come from one matrix."""
        packed, out = (self._map(f"{scope}/linear_{index}") for index in range(2))
        width = out[0].shape[1]
        query, key_value = (
            (packed[0][rows], None if packed[1] is None else packed[1][rows])
            for rows in (slice(width), slice(width, None))
        )
        return self._attention(scope, query, key_value, out, d_memory=self._d_model)

    def cross_attention(self, scope: str, d_memory: int) -> nn.Module:
        """Queries come from one matrix, the memory's keys and values from another."""
        query, key_value, out = (self._map(f"{scope}/linear_{index}") for index in range(3))
        return self._attention(scope, query, key_value, out, d_memory=d_memory)

    def _attention(self, scope: str, query: Map, key_value: Map, out: Map, *, d_memory: int) -> nn.Module:
        d_model, width = self._d_model, out[0].shape[1]
        d_head, uneven = divmod(width, self._n_heads)
        n_kv_heads, over = divmod(len(key_value[0]), 2 * d_head) if d_head else (0, 1)
        if uneven or over or not n_kv_heads or self._n_heads % n_kv_heads:
            raise WeightsError(f"the weights of {scope} cannot be cut into {self._n_heads} heads")
        if self._variables.number(f"{scope}/num_heads_kv", n_kv_heads) != n_kv_heads:
            raise WeightsError(f"{scope}/num_heads_kv is not {n_kv_heads}, which its weights have")
        usual = max(1.0, self._variables.number(f"{scope}/head_dim", d_model // self._n_heads))
        scale = self._variables.number(f"{scope}/queries_scale", 1 / math.sqrt(usual))
        has_bias = query[1] is not None or key_value[1] is not None
        part = without_memory(
            MultiHeadAttention,
            d_model,
            self._n_heads,
            n_kv_heads=n_kv_heads,
            d_head=d_head,
            d_memory=d_memory,
            bias=has_bias,
            out_bias=out[1] is not None,
            scale=None if scale == 1 / math.sqrt(d_head) else scale,
        )
        for place, (weight, bias) in ((part.query, query), (part.key_value, key_value)):
            _put_map(place, (weight, torch.zeros(len(weight)) if has_bias and bias is None else bias), scope)
        _put_map(part.out, out, scope)
        return self._wrapped(part, scope)

    def feed_forward(self, scope: str) -> nn.Module:
        """Plain, or gated where there is a second matrix."""
        wide, narrow = self._map(f"{scope}/linear_0"), self._map(f"{scope}/linear_1")
        kind: Callable[..., FeedForward | GatedFeedForward] = FeedForward
        d_ff = len(wide[0])
        if f"{scope}/linear_0_noact/weight" in self._variables:
            kind, up = GatedFeedForward, self._map(f"{scope}/linear_0_noact")
            if up[0].shape != wide[0].shape:
                raise WeightsError(
                    f"{scope}/linear_0 and linear_0_noact are {tuple(wide[0].shape)} and {tuple(up[0].shape)}"
                )
            bias = None if wide[1] is None or up[1] is None else torch.cat([wide[1], up[1]])
            wide = torch.cat([wide[0], up[0]]), bias
        part = without_memory(kind, self._d_model, d_ff, activation=self._activation, bias=narrow[1] is not None)
        _put_map(part.gate_up if isinstance(part, GatedFeedForward) else part.wide, wide, f"{scope}/linear_0")
        _put_map(part.narrow, narrow, f"{scope}/linear_1")
        return self._wrapped(part, scope)

    def norm(self, scope: str) -> nn.Module | None:
        """With a bias it is a LayerNorm, without one an RMSNorm; None where there is none."""
        weight, bias = self._variables.vector(f"{scope}/gamma"), self._variables.vector(f"{scope}/beta")
        if weight is None:
            return None
        kind, usual = (RMSNorm, 1e-6) if bias is None else (LayerNorm, 1e-5)
        part: nn.Module = without_memory(kind, self._d_model, eps=usual if self._epsilon is None else self._epsilon)
        put(part, "weight", weight, f"{scope}/gamma")
        if bias is not None:
            put(part, "bias", bias, f"{scope}/beta")
        return part

    def _wrapped(self, part: nn.Module, scope: str) -> nn.Module:
        norm = self.norm(f"{scope}/layer_norm")
        if norm is None:
            raise WeightsError(f"the model lacks {scope}/layer_norm; layers without it are not known here")
        return self._residual(part, norm)

    def _map(self, scope: str) -> Map:
        weight, bias = self._variables.matrix(f"{scope}/weight"), self._variables.vector(f"{scope}/bias")
        if bias is not None and len(bias) != len(weight):
            raise WeightsError(f"{scope}/bias has {len(bias)} numbers for the {len(weight)} rows of its matrix")
        return weight, bias


def without_memory(kind: Callable[..., M], *args: object, **options: object) -> M:
    """A part that has shapes and no weights yet."""
    with torch.device("meta"):
        return kind(*args, **options)


def put(part: nn.Module, name: str, weight: Tensor, where: str) -> None:
    """Give a part one of its weights."""
    place = getattr(part, name)
    shape = None if place is None else tuple(place.shape)
    if shape != tuple(weight.shape):
        raise WeightsError(f"{where} is {tuple(weight.shape)} and should be {shape or 'left out'}")
    setattr(part, name, nn.Parameter(weight.contiguous()))


def _put_map(part: nn.Linear, given: Map, where: str) -> None:
    weight, bias = given
    put(part, "weight", weight, f"{where}/weight")
    if bias is not None:
        put(part, "bias", bias, f"{where}/bias")
    elif part.bias is not None:
        raise WeightsError(f"the model lacks {where}/bias")
