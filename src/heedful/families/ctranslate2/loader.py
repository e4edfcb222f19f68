"""A CTranslate2 model's variables as a module of our own parts, whose sizes are read from the weights."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor

from ... import core
from ..composed import AttentionPart, ComposedConfig, FeedForwardPart, NormPart, PositionsPart, StackPart, build
from ..description import TIED
from ..llama import ScalingConfig
from ..weight_map import Link, WeightMap, from_hf, link, to_hf, zeros
from ..weights import WeightsError
from .model_bin import Variables

T = TypeVar("T")


def _links() -> Iterator[Link]:
    yield link("source_embedding.weight", "encoder/embeddings_0/weight")
    yield link("target_embedding.weight", "decoder/embeddings/weight")
    yield link("embedding.weight", "decoder/embeddings/weight")
    yield link("head.table.weight", "decoder/projection/weight")
    yield link("head.bias", "decoder/projection/bias")
    for stack in ("encoder", "decoder"):
        ours, theirs = f"{stack}.layers.*", f"{stack}/layer_*"
        attention, cross, feed_forward = (f"{ours}.{name}" for name in ("attention", "cross_attention", "feed_forward"))
        yield link(
            (f"{attention}.part.query.*", f"{attention}.part.key_value.*"), f"{theirs}/self_attention/linear_0/*"
        )
        yield link(f"{attention}.part.out.weight", f"{theirs}/self_attention/linear_1/weight")
        yield link(f"{attention}.part.out.bias", f"{theirs}/self_attention/linear_1/bias", absent=zeros)
        for index, part in enumerate(("query", "key_value", "out")):
            yield link(f"{cross}.part.{part}.weight", f"{theirs}/attention/linear_{index}/weight")
            yield link(f"{cross}.part.{part}.bias", f"{theirs}/attention/linear_{index}/bias", absent=zeros)
        gated = f"{theirs}/ffn/linear_0/*", f"{theirs}/ffn/linear_0_noact/*"
        yield link(f"{feed_forward}.part.wide.*", gated[0])
        yield link(f"{feed_forward}.part.gate_up.*", gated)
        yield link(f"{feed_forward}.part.narrow.*", f"{theirs}/ffn/linear_1/*")
        for norm, name in (
            (f"{attention}.norm", f"{theirs}/self_attention/layer_norm"),
            (f"{cross}.norm", f"{theirs}/attention/layer_norm"),
            (f"{feed_forward}.norm", f"{theirs}/ffn/layer_norm"),
            (f"{stack}.entry", f"{stack}/layernorm_embedding"),
            (f"{stack}.norm", f"{stack}/layer_norm"),
        ):
            yield link(f"{norm}.weight", f"{name}/gamma")
            yield link(f"{norm}.bias", f"{name}/beta")
        yield link(f"{stack}.positions.weight", f"{stack}/position_encodings/encodings")
        yield link(f"{stack}.positions.weight", f"{stack}/layer_0/self_attention/relative_attention_bias")


WEIGHTS = WeightMap(tuple(_links()))  # where a module's weights stand among the variables, read both ways
ENDLESS = 1024  # rows of a table that CTranslate2 computes as far as it must; it cuts its inputs there unless told


def _usual(length: int, d_model: int) -> Tensor:
    """CTranslate2's own: sines before cosines, from 1 on, the slowest turning once in 10,000 · 2π."""
    half = d_model // 2
    if half < 2 or d_model % 2:
        raise WeightsError(f"sinusoidal positions of width {d_model} are not known here")
    slower = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / (half - 1)))
    angle = torch.arange(1, length + 1, dtype=torch.float64)[:, None] * slower
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def _relative(variables: Variables, first: str, others: list[str]) -> PositionsPart:
    name = f"{first}/relative_attention_bias"
    distance = int(variables.number(f"{first}/relative_attention_max_distance", 0))
    for other in others:
        variables.weight(f"{other}/relative_attention_bias")
        if not variables.same(name, f"{other}/relative_attention_bias") or distance != int(
            variables.number(f"{other}/relative_attention_max_distance", 0)
        ):
            raise WeightsError(f"{first} and {other} have other relative positions; a stack has one scheme here")
    return PositionsPart(kind="relative", n_buckets=variables.sizes(name)[0], max_distance=distance)


ROTARY = {
    "rotary_dim": -1,
    "rotary_base": 10000,
    "rotary_interleave": 1,
    "rotary_scaling_type": -1,
    "rotary_scaling_factor": 1,
    "rotary_low_freq_factor": 1,
    "rotary_high_freq_factor": 4,
    "original_max_position_embeddings": 0,
}  # what they are where they are left out


def _rotary(variables: Variables, first: str, others: list[str], d_head: int) -> PositionsPart | None:
    values, *more = (
        [variables.number(f"{scope}/{name}", default) for name, default in ROTARY.items()] for scope in (first, *others)
    )
    if any(other != values for other in more):
        raise WeightsError(f"{first} and other layers turn by other angles; a stack has one scheme here")
    width, base, interleaved, kind, factor, low, high, original = values
    if width < 0:
        return None
    scaling = None
    if kind == 0:
        scaling = ScalingConfig(kind="linear", factor=factor)
    elif kind == 2:
        scaling = ScalingConfig(kind="llama3", factor=factor, low=low, high=high, original_length=int(original))
    elif kind != -1:
        raise WeightsError(f"{first}/rotary_scaling_type is {kind:g}; -1, 0 and 2 are known here")
    turned = int(width) or d_head
    return PositionsPart(kind="rotary", base=base, width=turned, interleaved=bool(interleaved), scaling=scaling)


ACTIVATIONS: dict[int, Any] = {0: "relu", 1: "gelu_tanh", 2: "silu", 3: "gelu", 5: "tanh"}
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
    older = "encoder/embeddings/weight" in variables
    source = "encoder/embeddings" if older else "encoder/embeddings_0"
    reading = _Stack(variables, "encoder", source, usual)
    writing = _Stack(variables, "decoder", "decoder/embeddings", usual)
    equal = variables.same(f"{source}/weight", "decoder/embeddings/weight") and writing.scale == reading.scale
    return _module(variables, writing, reading, {"encoder/embeddings_0/weight": f"{source}/weight"}, equal)


def decoder_only(variables: Variables, usual: Usual) -> core.DecoderOnly:
    """Of the variables of a language model."""
    return _module(variables, _Stack(variables, "decoder", "decoder/embeddings", usual))


def _module(
    variables: Variables,
    writing: _Stack,
    reading: _Stack | None = None,
    renamed: dict[str, str] | None = None,
    equal: bool = False,
) -> Any:
    """The config that the stacks make, built without memory and filled; each variable has been asked for then.

    Files store equal weights once; here each has memory of its own, unless they are one.
    """
    projection, sizes = "decoder/projection", [stack.vocab_size for stack in (reading or writing, writing)]
    config = ComposedConfig(
        vocab_size=sizes[0],
        target_vocab_size=None if sizes[0] == sizes[1] else sizes[1],
        encoder=None if reading is None else reading.part(),
        decoder=writing.part(reads=reading is not None),
        tied=TIED[equal, variables.same(f"{projection}/weight", "decoder/embeddings/weight")],
        head_bias=f"{projection}/bias" in variables,
        head_scale=variables.number("decoder/scale_outputs", 1.0),
    )
    with torch.device("meta"):
        module = build(config)
    state = module.state_dict(keep_vars=True)
    stored = {name: (renamed or {}).get(name, name) for name in to_hf(state, WEIGHTS)}
    given = {name: variables.weight(place) for name, place in stored.items() if place in variables}
    for stack in filter(None, (reading, writing)):
        given |= {name: table for name, table in stack.computed.items() if name not in given}
    variables.refuse_others()
    module.load_state_dict(from_hf(given, WEIGHTS, state), assign=True)
    taken: set[int] = set()
    for parameter in module.parameters():
        if parameter.data_ptr() in taken:
            parameter.data = parameter.data.clone()
        taken.add(parameter.data_ptr())
    return module.eval()


class _Stack:
    """One stack's variables, and what they say of its parts."""

    def __init__(self, variables: Variables, scope: str, table: str, usual: Usual) -> None:
        self._variables, self._scope, self._epsilon = variables, scope, usual.epsilon
        self._layers = [f"{scope}/layer_{index}" for index in range(variables.count(f"{scope}/layer_"))]
        self._n_heads = int(self._setting("num_heads", usual.n_heads))
        activation = int(self._setting("activation", 0))
        if activation not in ACTIVATIONS or self._n_heads < 1:
            raise WeightsError(f"{scope} has {self._n_heads} heads and the activation {activation}; not known here")
        for name in SILENT:
            self._setting(name, 0)
        for name in ("start_from_zero_embedding", "scale_alibi"):
            if self._setting(name, 0):
                raise WeightsError(f"{scope}/{name} is set, which nothing here does")
        self._activation = ACTIVATIONS[activation]
        self.vocab_size, self.d_model = variables.sizes(f"{table}/weight")
        self.scale = self._scale(table)
        self.computed: dict[str, Tensor] = {}  # weights that a file leaves out

    def part(self, *, reads: bool = False) -> StackPart:
        """The config of the layers, and of what stands around them; of a decoder's that read a memory, or others."""
        names = ("self_attention", "ffn", *(("attention",) if reads else ()))
        norms = {
            f"{layer}/{name}": self._norm(f"{layer}/{name}/layer_norm") for layer in self._layers for name in names
        }
        for scope, norm in norms.items():
            if norm is None:
                raise WeightsError(f"the model lacks {scope}/layer_norm; layers without it are not known here")
        attention = _alike({layer: self._attention(layer, "self_attention") for layer in self._layers})
        return StackPart(
            d_model=self.d_model,
            n_layers=len(self._layers),
            attention=attention,
            cross_attention=_alike({layer: self._attention(layer, "attention", 1) for layer in self._layers})
            if reads
            else None,
            feed_forward=_alike({layer: self._feed_forward(f"{layer}/ffn") for layer in self._layers}),
            norm=_alike({scope: norm for scope, norm in norms.items() if norm is not None}),
            order="pre" if self._setting("pre_norm", 1) else "post",
            positions=self._positions(attention.d_head or 0),
            embedding_scale=self.scale,
            entry_norm=self._norm(f"{self._scope}/layernorm_embedding"),
            final_norm=self._norm(f"{self._scope}/layer_norm"),
        )

    def _scale(self, table: str) -> float:
        """√D where nothing is said; what is said is a number, or whether it is √D."""
        for name in (f"{self._scope}/scale_embeddings", f"{table}/multiply_by_sqrt_depth"):
            if name in self._variables:
                value = self._variables.number(name, 1.0)
                return (math.sqrt(self.d_model) if value else 1.0) if self._variables.is_flag(name) else value
        return math.sqrt(self.d_model)

    def _setting(self, name: str, default: float) -> float:
        """Older models say it once for both stacks."""
        return self._variables.number(f"{self._scope}/{name}", self._variables.number(name, default))

    def _attention(self, layer: str, name: str, cross: int = 0) -> AttentionPart:
        """Queries, keys and values come from one matrix; in cross-attention, keys and values from a second."""
        variables, scope, out = self._variables, f"{layer}/{name}", f"linear_{1 + cross}"
        width = variables.sizes(f"{scope}/{out}/weight")[1]
        rows = variables.sizes(f"{scope}/linear_{cross}/weight")[0] - (0 if cross else width)
        d_head, uneven = divmod(width, self._n_heads)
        n_kv_heads, over = divmod(rows, 2 * d_head) if d_head else (0, 1)
        if uneven or over or n_kv_heads < 1 or self._n_heads % n_kv_heads:
            raise WeightsError(f"the weights of {scope} cannot be cut into {self._n_heads} heads")
        if variables.number(f"{scope}/num_heads_kv", n_kv_heads) != n_kv_heads:
            raise WeightsError(f"{scope}/num_heads_kv is not {n_kv_heads}, which its weights have")
        usual = max(1.0, variables.number(f"{scope}/head_dim", self.d_model // self._n_heads))
        scale = variables.number(f"{scope}/queries_scale", 1 / math.sqrt(usual))
        return AttentionPart(
            n_heads=self._n_heads,
            n_kv_heads=n_kv_heads,
            d_head=d_head,
            bias=any(f"{scope}/linear_{index}/bias" in variables for index in range(1 + cross)),
            out_bias=any(f"{each}/{name}/{out}/bias" in variables for each in self._layers),
            scale=None if scale == 1 / math.sqrt(d_head) else scale,
        )

    def _feed_forward(self, scope: str) -> FeedForwardPart:
        """Plain, or gated where there is a second matrix."""
        return FeedForwardPart(
            kind="gated" if f"{scope}/linear_0_noact/weight" in self._variables else "plain",
            d_ff=self._variables.sizes(f"{scope}/linear_0/weight")[0],
            activation=self._activation,
            bias=f"{scope}/linear_1/bias" in self._variables,
        )

    def _norm(self, scope: str) -> NormPart | None:
        """With a bias it is a LayerNorm, without one an RMSNorm; None where there is none."""
        if f"{scope}/gamma" not in self._variables:
            return None
        has_bias = f"{scope}/beta" in self._variables
        eps = (1e-5 if has_bias else 1e-6) if self._epsilon is None else self._epsilon
        return NormPart(kind="layer", eps=eps, bias=True) if has_bias else NormPart(kind="rms", eps=eps)

    def _positions(self, d_head: int) -> PositionsPart:
        """One scheme serves all layers."""
        variables, d_model = self._variables, self.d_model
        first, *others = [f"{layer}/self_attention" for layer in self._layers]
        if variables.number(f"{self._scope}/alibi", 0):
            return PositionsPart(kind="alibi")
        if f"{first}/relative_attention_bias" in variables:
            return _relative(variables, first, others)
        if (rotary := _rotary(variables, first, others, d_head)) is not None:
            return rotary
        name = f"{self._scope}/position_encodings/encodings"
        table = variables.weight(name) if name in variables else _usual(ENDLESS, d_model)
        for layout in ("interleaved", "halves"):
            formula = core.Sinusoidal(d_model, len(table), layout=layout)
            if table.shape == (len(table), d_model) and torch.allclose(table, formula.table(), rtol=0, atol=1e-6):
                return PositionsPart(kind="sinusoidal", max_length=len(table), layout=layout)
        self.computed[name] = table
        return PositionsPart(kind="learned", max_length=len(table), offset=0)


def _alike(parts: dict[str, T]) -> T:
    """What all layers have; a stack's are alike here."""
    (first, part), *others = parts.items()
    for scope, other in others:
        if other != part:
            raise WeightsError(
                f"{first} and {scope} differ in more than their weights; a stack's layers are alike here"
            )
    return part
