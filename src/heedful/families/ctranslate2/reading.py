"""A CTranslate2 model's variables as a module of our own parts, whose sizes are read from the weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from ... import core
from ..weights import WeightsError
from .binary import Variables

M = TypeVar("M", bound=nn.Module)
Map = tuple[Tensor, Tensor | None]  # a matrix, and a bias where there is one


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


ENDLESS = 1024  # rows of a table that CTranslate2 computes as far as it must; it cuts its inputs there unless told


def positions_of(variables: Variables, stack: str, *, n_heads: int, d_model: int) -> core.Positions:
    """Those of a stack. One scheme serves all of its layers."""
    first, *others = [f"{stack}/layer_{index}/self_attention" for index in range(variables.count(f"{stack}/layer_"))]
    if variables.number(f"{stack}/alibi", 0):
        return core.ALiBi(n_heads)
    in_layers = _relative(variables, first, others, causal=stack == "decoder") or _rotary(
        variables, first, others, n_heads=n_heads
    )
    if in_layers is not None:
        return in_layers
    name = f"{stack}/position_encodings/encodings"
    table = variables.matrix(name) if name in variables else _usual(ENDLESS, d_model)
    for layout in ("interleaved", "halves"):
        formula = core.Sinusoidal(d_model, len(table), layout=layout)
        if table.shape[1] == d_model and torch.allclose(table, formula.table(), rtol=0, atol=1e-6):
            return formula
    positions = without_memory(core.Learned, len(table), d_model)
    put(positions, "weight", table, name)
    return positions


def _usual(length: int, d_model: int) -> Tensor:
    """CTranslate2's own: sines before cosines, from 1 on, the slowest turning once in 10,000 · 2π."""
    half = d_model // 2
    if half < 2 or d_model % 2:
        raise WeightsError(f"sinusoidal positions of width {d_model} are not known here")
    slower = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / (half - 1)))
    angle = torch.arange(1, length + 1, dtype=torch.float64)[:, None] * slower
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def _relative(variables: Variables, first: str, others: list[str], *, causal: bool) -> core.Relative | None:
    name = f"{first}/relative_attention_bias"
    if name not in variables:
        return None
    table = variables.matrix(name)
    distance = int(variables.number(f"{first}/relative_attention_max_distance", 0))
    for other in others:
        variables.weight(f"{other}/relative_attention_bias")
        if not variables.same(name, f"{other}/relative_attention_bias") or distance != int(
            variables.number(f"{other}/relative_attention_max_distance", 0)
        ):
            raise WeightsError(f"{first} and {other} have other relative positions; a stack has one scheme here")
    try:
        positions = without_memory(
            core.Relative, table.shape[1], n_buckets=len(table), max_distance=distance, causal=causal
        )
    except ValueError as error:
        raise WeightsError(f"{name}: {error}") from None
    put(positions, "weight", table, name)
    return positions


def _rotary(variables: Variables, first: str, others: list[str], *, n_heads: int) -> core.Rotary | None:
    said = [_rotary_said(variables, scope) for scope in (first, *others)]
    if any(other != said[0] for other in said):
        raise WeightsError(f"{first} and other layers turn by other angles; a stack has one scheme here")
    width, base, interleaved, kind, factor, low, high, original = said[0]
    if width < 0:
        return None
    scaling: core.LinearScaling | core.Llama3Scaling | None = None
    if kind == 0:
        scaling = core.LinearScaling(factor=factor)
    elif kind == 2:
        scaling = core.Llama3Scaling(factor=factor, low=low, high=high, original_length=int(original))
    elif kind != -1:
        raise WeightsError(f"{first}/rotary_scaling_type is {kind:g}; -1, 0 and 2 are known here")
    d_head = variables.matrix(f"{first}/linear_1/weight").shape[1] // n_heads
    try:
        return core.Rotary(d_head, base=base, width=int(width) or None, interleaved=bool(interleaved), scaling=scaling)
    except ValueError as error:
        raise WeightsError(f"{first}: {error}") from None


def _rotary_said(variables: Variables, scope: str) -> tuple[float, ...]:
    defaults = {
        "rotary_dim": -1,
        "rotary_base": 10000,
        "rotary_interleave": 1,
        "rotary_scaling_type": -1,
        "rotary_scaling_factor": 1,
        "rotary_low_freq_factor": 1,
        "rotary_high_freq_factor": 4,
        "original_max_position_embeddings": 0,
    }
    return tuple(variables.number(f"{scope}/{name}", default) for name, default in defaults.items())


ACTIVATIONS = {0: "relu", 1: "gelu_tanh", 2: "silu", 3: "gelu", 5: "tanh"}
# They change nothing that is computed here: alignments are read from outside, one embedding is merged with no other,
# weights say which heads are shared, and what ALiBi adds to a whole row of scores their softmax takes away.
SILENT = (
    *("alignment_layer", "alignment_heads", "embeddings_merge"),
    *("multi_query_attention", "alibi_use_positive_positions"),
)


@dataclass(frozen=True)
class Usual:
    """What a model means where it does not say it."""

    n_heads: int = 8
    epsilon: float | None = None


def encoder_decoder(variables: Variables, usual: Usual) -> core.EncoderDecoder:
    """Of the variables of a translator."""
    source = "encoder/embeddings" if "encoder/embeddings/weight" in variables else "encoder/embeddings_0"
    reading = _Stack(variables, "encoder", source, usual)
    writing = _Stack(variables, "decoder", "decoder/embeddings", usual)
    one = variables.same(f"{source}/weight", "decoder/embeddings/weight")
    module = core.EncoderDecoder(
        source_embedding=writing.embedding if one and writing.scale == reading.scale else reading.embedding,
        encoder=core.Encoder(reading.layers(), **reading.ends()),
        target_embedding=writing.embedding,
        decoder=core.Decoder(writing.layers(d_memory=reading.d_model), **writing.ends()),
        head=writing.head(),
    )
    return _whole(module, variables)


def decoder_only(variables: Variables, usual: Usual) -> core.DecoderOnly:
    """Of the variables of a language model."""
    writing = _Stack(variables, "decoder", "decoder/embeddings", usual)
    decoder = core.Decoder(writing.layers(), **writing.ends())
    return _whole(core.DecoderOnly(embedding=writing.embedding, decoder=decoder, head=writing.head()), variables)


def _whole(module: M, variables: Variables) -> M:
    """Files store equal weights once; here each has memory of its own, unless they are one."""
    variables.refuse_others()
    taken: set[int] = set()
    for parameter in module.parameters():
        if parameter.data_ptr() in taken:
            parameter.data = parameter.data.clone()
        taken.add(parameter.data_ptr())
    return module.eval()


class _Stack:
    """One stack's variables, and the parts that are made of them."""

    def __init__(self, variables: Variables, scope: str, table: str, usual: Usual) -> None:
        self._variables, self._scope = variables, scope
        self._n_layers = variables.count(f"{scope}/layer_")
        self._n_heads = int(self._setting("num_heads", usual.n_heads))
        activation = int(self._setting("activation", 0))
        if activation not in ACTIVATIONS or self._n_heads < 1:
            raise WeightsError(f"{scope} has {self._n_heads} heads and the activation {activation}; not known here")
        for name in SILENT:
            self._setting(name, 0)
        for name in ("start_from_zero_embedding", "scale_alibi"):
            if self._setting(name, 0):
                raise WeightsError(f"{scope}/{name} is set, which nothing here does")
        weight = variables.matrix(f"{table}/weight")
        self.d_model = weight.shape[1]
        self.scale = self._scale(table)
        self.embedding = without_memory(core.TokenEmbedding, *weight.shape, scale=False)
        self.embedding.scale = self.scale
        put(self.embedding, "weight", weight, f"{table}/weight")
        self._residual = core.PreNorm if self._setting("pre_norm", 1) else core.PostNorm
        self._activation = ACTIVATIONS[activation]
        self._epsilon = usual.epsilon

    def layers(self, *, d_memory: int | None = None) -> list[nn.Module]:
        """Those of a decoder that reads a memory of this width, or else an encoder's."""
        return [self._layer(f"{self._scope}/layer_{index}", d_memory) for index in range(self._n_layers)]

    def _layer(self, scope: str, d_memory: int | None) -> nn.Module:
        attention = self.self_attention(f"{scope}/self_attention")
        feed_forward = self.feed_forward(f"{scope}/ffn")
        if d_memory is None:
            return core.EncoderLayer(attention, feed_forward)
        return core.DecoderLayer(attention, self.cross_attention(f"{scope}/attention", d_memory), feed_forward)

    def ends(self) -> dict[str, Any]:
        """What a stack has beside its layers."""
        return {
            "positions": positions_of(self._variables, self._scope, n_heads=self._n_heads, d_model=self.d_model),
            "entry": self.norm(f"{self._scope}/layernorm_embedding"),
            "norm": self.norm(f"{self._scope}/layer_norm"),
        }

    def _scale(self, table: str) -> float:
        """√D where nothing is said; what is said is a number, or whether it is √D."""
        for name in (f"{self._scope}/scale_embeddings", f"{table}/multiply_by_sqrt_depth"):
            if name in self._variables:
                value = self._variables.number(name, 1.0)
                return (math.sqrt(self.d_model) if value else 1.0) if self._variables.is_flag(name) else value
        return math.sqrt(self.d_model)

    def head(self) -> core.VocabularyHead:
        """Of vectors to tokens, sharing the embedding's matrix where it is the same."""
        scope = f"{self._scope}/projection"
        weight, bias = self._variables.matrix(f"{scope}/weight"), self._variables.vector(f"{scope}/bias")
        tied = self._variables.same(f"{scope}/weight", f"{self._scope}/embeddings/weight")
        part = without_memory(
            core.VocabularyHead,
            self.d_model,
            len(weight),
            table=self.embedding if tied else None,
            bias=bias is not None,
            scale=self._variables.number(f"{self._scope}/scale_outputs", 1.0),
        )
        if not tied:
            put(part.table, "weight", weight, f"{scope}/weight")
        if bias is not None:
            put(part, "bias", bias, f"{scope}/bias")
        return part

    def _setting(self, name: str, default: float) -> float:
        """Older models say it once for both stacks."""
        return self._variables.number(f"{self._scope}/{name}", self._variables.number(name, default))

    def self_attention(self, scope: str) -> nn.Module:
        """Queries, keys and values come from one matrix."""
        packed, out = (self._map(f"{scope}/linear_{index}") for index in range(2))
        width = out[0].shape[1]
        query, key_value = (
            (packed[0][rows], None if packed[1] is None else packed[1][rows])
            for rows in (slice(width), slice(width, None))
        )
        return self._attention(scope, query, key_value, out, d_memory=self.d_model)

    def cross_attention(self, scope: str, d_memory: int) -> nn.Module:
        """Queries come from one matrix, the memory's keys and values from another."""
        query, key_value, out = (self._map(f"{scope}/linear_{index}") for index in range(3))
        return self._attention(scope, query, key_value, out, d_memory=d_memory)

    def _attention(self, scope: str, query: Map, key_value: Map, out: Map, *, d_memory: int) -> nn.Module:
        d_model, width = self.d_model, out[0].shape[1]
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
            core.MultiHeadAttention,
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
        kind: Callable[..., core.FeedForward | core.GatedFeedForward] = core.FeedForward
        d_ff = len(wide[0])
        if f"{scope}/linear_0_noact/weight" in self._variables:
            kind, up = core.GatedFeedForward, self._map(f"{scope}/linear_0_noact")
            if up[0].shape != wide[0].shape:
                raise WeightsError(
                    f"{scope}/linear_0 and linear_0_noact are {tuple(wide[0].shape)} and {tuple(up[0].shape)}"
                )
            bias = None if wide[1] is None or up[1] is None else torch.cat([wide[1], up[1]])
            wide = torch.cat([wide[0], up[0]]), bias
        part = without_memory(kind, self.d_model, d_ff, activation=self._activation, bias=narrow[1] is not None)
        _put_map(part.gate_up if isinstance(part, core.GatedFeedForward) else part.wide, wide, f"{scope}/linear_0")
        _put_map(part.narrow, narrow, f"{scope}/linear_1")
        return self._wrapped(part, scope)

    def norm(self, scope: str) -> nn.Module | None:
        """With a bias it is a LayerNorm, without one an RMSNorm; None where there is none."""
        weight, bias = self._variables.vector(f"{scope}/gamma"), self._variables.vector(f"{scope}/beta")
        if weight is None:
            return None
        kind, usual = (core.RMSNorm, 1e-6) if bias is None else (core.LayerNorm, 1e-5)
        part: nn.Module = without_memory(kind, self.d_model, eps=usual if self._epsilon is None else self._epsilon)
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
