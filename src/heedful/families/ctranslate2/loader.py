"""Builds a module from the variables of a CTranslate2 model; sizes are read from the weights."""

import math
from collections.abc import Iterator
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
    yield link("head.embedding.weight", "decoder/projection/weight")
    yield link("head.bias", "decoder/projection/bias")
    for stack in ("encoder", "decoder"):
        layer, scope = f"{stack}.layers.*", f"{stack}/layer_*"
        attention, cross, feed_forward = (
            f"{layer}.{name}" for name in ("self_attention", "cross_attention", "feed_forward")
        )
        yield link(
            (f"{attention}.sublayer.q_proj.*", f"{attention}.sublayer.kv_proj.*"), f"{scope}/self_attention/linear_0/*"
        )
        yield link(f"{attention}.sublayer.out_proj.weight", f"{scope}/self_attention/linear_1/weight")
        yield link(f"{attention}.sublayer.out_proj.bias", f"{scope}/self_attention/linear_1/bias", absent=zeros)
        for index, part in enumerate(("q_proj", "kv_proj", "out_proj")):
            yield link(f"{cross}.sublayer.{part}.weight", f"{scope}/attention/linear_{index}/weight")
            yield link(f"{cross}.sublayer.{part}.bias", f"{scope}/attention/linear_{index}/bias", absent=zeros)
        gated = f"{scope}/ffn/linear_0/*", f"{scope}/ffn/linear_0_noact/*"
        yield link(f"{feed_forward}.sublayer.up_proj.*", gated[0])
        yield link(f"{feed_forward}.sublayer.gate_up_proj.*", gated)
        yield link(f"{feed_forward}.sublayer.down_proj.*", f"{scope}/ffn/linear_1/*")
        for norm, name in (
            (f"{attention}.norm", f"{scope}/self_attention/layer_norm"),
            (f"{cross}.norm", f"{scope}/attention/layer_norm"),
            (f"{feed_forward}.norm", f"{scope}/ffn/layer_norm"),
            (f"{stack}.entry", f"{stack}/layernorm_embedding"),
            (f"{stack}.norm", f"{stack}/layer_norm"),
        ):
            yield link(f"{norm}.weight", f"{name}/gamma")
            yield link(f"{norm}.bias", f"{name}/beta")
        yield link(f"{stack}.positions.weight", f"{stack}/position_encodings/encodings")
        yield link(f"{stack}.positions.weight", f"{stack}/layer_0/self_attention/relative_attention_bias")


WEIGHTS = WeightMap(tuple(_links()))  # the variable of each weight, used in both directions
MAX_LENGTH = 1024  # CTranslate2 computes its table as far as needed, but truncates inputs to this by default


def _default_sinusoids(length: int, d_model: int) -> Tensor:
    """Return CTranslate2's table: sines before cosines, from position 1, with wavelengths up to 10,000 · 2π."""
    half = d_model // 2
    if half < 2 or d_model % 2:
        raise WeightsError(
            f"sinusoidal positions of width {d_model} are not supported; the width must be even and at least 4"
        )
    slower = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / (half - 1)))
    angle = torch.arange(1, length + 1, dtype=torch.float64)[:, None] * slower
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


ROTARY_DEFAULTS = {
    "rotary_dim": -1,
    "rotary_base": 10000,
    "rotary_interleave": 1,
    "rotary_scaling_type": -1,
    "rotary_scaling_factor": 1,
    "rotary_low_freq_factor": 1,
    "rotary_high_freq_factor": 4,
    "original_max_position_embeddings": 0,
}


def _rotary(variables: Variables, scope: str, d_head: int) -> PositionsPart | None:
    width, base, interleaved, kind, factor, low, high, original = (
        variables.number(f"{scope}/{name}", default) for name, default in ROTARY_DEFAULTS.items()
    )
    if width < 0:
        return None
    scaling = None
    if kind == 0:
        scaling = ScalingConfig(kind="linear", factor=factor)
    elif kind == 2:
        scaling = ScalingConfig(kind="llama3", factor=factor, low=low, high=high, original_length=int(original))
    elif kind != -1:
        raise WeightsError(f"{scope}/rotary_scaling_type is {kind:g}; only -1, 0 and 2 are supported")
    width = int(width) or d_head
    return PositionsPart(kind="rotary", base=base, width=width, interleaved=bool(interleaved), scaling=scaling)


ACTIVATIONS: dict[int, Any] = {0: "relu", 1: "gelu_tanh", 2: "silu", 3: "gelu", 5: "tanh"}
# They change nothing that is computed here: alignments are read from outside, one embedding is merged with no other,
# weights say which heads are shared, and what ALiBi adds to a whole row of scores their softmax takes away.
WITHOUT_EFFECT = (
    *("alignment_layer", "alignment_heads", "embeddings_merge"),
    *("multi_query_attention", "alibi_use_positive_positions"),
)


def read_module(
    variables: Variables, *, has_encoder: bool, n_heads: int = 8, epsilon: float | None = None
) -> core.EncoderDecoder | core.DecoderOnly:
    """Build a translator or a language model from its variables, each of which must be used.

    The config is built without memory and then filled. Files store equal weights once; here each has memory of its
    own, unless the model shares it.

    Args:
        variables: The contents of model.bin.
        has_encoder: Whether the model is a translator.
        n_heads: The number of heads where the file has none.
        epsilon: The eps of all norms, or None for CTranslate2's defaults.
    """
    encoder = _Stack(variables, "encoder", "encoder/embeddings_0", n_heads, epsilon) if has_encoder else None
    decoder = _Stack(variables, "decoder", "decoder/embeddings", n_heads, epsilon)
    table, projection = "decoder/embeddings/weight", "decoder/projection"
    tied_embeddings = (
        encoder is not None and variables.equal("encoder/embeddings_0/weight", table) and encoder.scale == decoder.scale
    )
    vocab_size = decoder.vocab_size if encoder is None else encoder.vocab_size
    config = ComposedConfig(
        vocab_size=vocab_size,
        target_vocab_size=None if decoder.vocab_size == vocab_size else decoder.vocab_size,
        encoder=None if encoder is None else encoder.config(),
        decoder=decoder.config(has_cross_attention=has_encoder),
        tied=TIED[tied_embeddings, variables.equal(f"{projection}/weight", table)],
        head_bias=f"{projection}/bias" in variables,
        head_scale=variables.number("decoder/scale_outputs", 1.0),
    )
    with torch.device("meta"):
        module = build(config)
    state = module.state_dict(keep_vars=True)
    computed = decoder.computed if encoder is None else encoder.computed | decoder.computed
    weights = {name: variables.weight(name) for name in to_hf(state, WEIGHTS) if name in variables}
    variables.refuse_unread()
    module.load_state_dict(from_hf(computed | weights, WEIGHTS, state), assign=True)
    addresses: set[int] = set()
    for parameter in module.parameters():
        if parameter.data_ptr() in addresses:
            parameter.data = parameter.data.clone()
        addresses.add(parameter.data_ptr())
    return module.eval()


class _Stack:
    """Reads the config of an encoder or a decoder from its variables."""

    def __init__(self, variables: Variables, scope: str, table: str, n_heads: int, epsilon: float | None) -> None:
        self._variables, self._scope, self._epsilon = variables, scope, epsilon
        self._layers = [f"{scope}/layer_{index}" for index in range(variables.count(f"{scope}/layer_"))]
        self._n_heads = int(self._setting("num_heads", n_heads))
        activation = int(self._setting("activation", 0))
        if activation not in ACTIVATIONS or self._n_heads < 1:
            raise WeightsError(
                f"{scope} has {self._n_heads} heads and the activation {activation}, which is not supported"
            )
        for name in WITHOUT_EFFECT:
            self._setting(name, 0)
        for name in ("start_from_zero_embedding", "scale_alibi"):
            if self._setting(name, 0):
                raise WeightsError(f"{scope}/{name} is set, which is not supported")
        self._activation = ACTIVATIONS[activation]
        self.vocab_size, self.d_model = variables.shape(f"{table}/weight")
        self.scale = self._scale(table)
        self.computed: dict[str, Tensor] = {}  # weights that a file leaves out

    def config(self, *, has_cross_attention: bool = False) -> StackPart:
        """Return the config of the whole stack, whose layers must be alike."""
        norms: dict[str, NormPart] = {}
        for layer in self._layers:
            for name in ("self_attention", "ffn", *(("attention",) if has_cross_attention else ())):
                norm = self._norm(f"{layer}/{name}/layer_norm")
                if norm is None:
                    raise WeightsError(f"the model lacks {layer}/{name}/layer_norm, without which no layer can be read")
                norms[f"{layer}/{name}"] = norm
        attention = _common({layer: self._attention(layer, "self_attention") for layer in self._layers})
        cross = {layer: self._attention(layer, "attention", 1) for layer in self._layers if has_cross_attention}
        return StackPart(
            d_model=self.d_model,
            n_layers=len(self._layers),
            attention=attention,
            cross_attention=_common(cross) if cross else None,
            feed_forward=_common({layer: self._feed_forward(f"{layer}/ffn") for layer in self._layers}),
            norm=_common(norms),
            order="pre" if self._setting("pre_norm", 1) else "post",
            positions=self._positions(attention.d_head or 0),
            embedding_scale=self.scale,
            entry_norm=self._norm(f"{self._scope}/layernorm_embedding"),
            final_norm=self._norm(f"{self._scope}/layer_norm"),
        )

    def _scale(self, table: str) -> float:
        """Return the scale of the embeddings: √D by default, else a number or a flag for √D."""
        for name in (f"{self._scope}/scale_embeddings", f"{table}/multiply_by_sqrt_depth"):
            if name in self._variables:
                value = self._variables.number(name, 1.0)
                return (math.sqrt(self.d_model) if value else 1.0) if self._variables.is_flag(name) else value
        return math.sqrt(self.d_model)

    def _setting(self, name: str, default: float) -> float:
        """Return a setting of this stack, or of the whole model, where older files have it."""
        return self._variables.number(f"{self._scope}/{name}", self._variables.number(name, default))

    def _attention(self, layer: str, name: str, cross: int = 0) -> AttentionPart:
        """Read an attention: one matrix for queries, keys and values, or in cross-attention, two."""
        variables, scope, out = self._variables, f"{layer}/{name}", f"linear_{1 + cross}"
        width = variables.shape(f"{scope}/{out}/weight")[1]
        rows = variables.shape(f"{scope}/linear_{cross}/weight")[0] - (0 if cross else width)
        d_head, uneven = divmod(width, self._n_heads)
        n_kv_heads, over = divmod(rows, 2 * d_head) if d_head else (0, 1)
        if uneven or over or n_kv_heads < 1 or self._n_heads % n_kv_heads:
            raise WeightsError(f"the weights of {scope} cannot be cut into {self._n_heads} heads")
        if variables.number(f"{scope}/num_heads_kv", n_kv_heads) != n_kv_heads:
            raise WeightsError(f"{scope}/num_heads_kv is not {n_kv_heads}, which its weights have")
        scaled_width = max(1.0, variables.number(f"{scope}/head_dim", self.d_model // self._n_heads))
        scale = variables.number(f"{scope}/queries_scale", 1 / math.sqrt(scaled_width))
        return AttentionPart(
            n_heads=self._n_heads,
            n_kv_heads=n_kv_heads,
            d_head=d_head,
            bias=any(f"{scope}/linear_{index}/bias" in variables for index in range(1 + cross)),
            out_bias=any(f"{each}/{name}/{out}/bias" in variables for each in self._layers),
            scale=None if scale == 1 / math.sqrt(d_head) else scale,
        )

    def _feed_forward(self, scope: str) -> FeedForwardPart:
        """Read a feed-forward part, which is gated where it has a second input matrix."""
        return FeedForwardPart(
            kind="gated" if f"{scope}/linear_0_noact/weight" in self._variables else "plain",
            d_ff=self._variables.shape(f"{scope}/linear_0/weight")[0],
            activation=self._activation,
            bias=f"{scope}/linear_1/bias" in self._variables,
        )

    def _norm(self, scope: str) -> NormPart | None:
        """Read a norm: a LayerNorm if it has a bias, else an RMSNorm; None where there is none."""
        if f"{scope}/gamma" not in self._variables:
            return None
        has_bias = f"{scope}/beta" in self._variables
        eps = (1e-5 if has_bias else 1e-6) if self._epsilon is None else self._epsilon
        return NormPart(kind="layer", eps=eps, bias=True) if has_bias else NormPart(kind="rms", eps=eps)

    def _positions(self, d_head: int) -> PositionsPart:
        """Read the position scheme that all layers share."""
        variables, d_model = self._variables, self.d_model
        scopes = [f"{layer}/self_attention" for layer in self._layers]
        if variables.number(f"{self._scope}/alibi", 0):
            return PositionsPart(kind="alibi")
        if f"{scopes[0]}/relative_attention_bias" in variables:
            return self._relative(scopes)
        if (rotary := _common({scope: _rotary(variables, scope, d_head) for scope in scopes})) is not None:
            return rotary
        name = f"{self._scope}/position_encodings/encodings"
        table = variables.weight(name) if name in variables else _default_sinusoids(MAX_LENGTH, d_model)
        for layout in ("interleaved", "halves"):
            formula = core.Sinusoidal(d_model, len(table), layout=layout)
            if table.shape == (len(table), d_model) and torch.allclose(table, formula.table(), rtol=0, atol=1e-6):
                return PositionsPart(kind="sinusoidal", max_length=len(table), layout=layout)
        self.computed[name] = table
        return PositionsPart(kind="learned", max_length=len(table), offset=0)

    def _relative(self, scopes: list[str]) -> PositionsPart:
        variables, first, parts = self._variables, f"{scopes[0]}/relative_attention_bias", {}
        for scope in scopes:
            table, distance = (f"{scope}/relative_attention_{name}" for name in ("bias", "max_distance"))
            variables.weight(table)
            if not variables.equal(first, table):
                raise WeightsError(f"{first} and {table} differ; all layers of a stack must share their positions")
            max_distance = int(variables.number(distance, 0))
            parts[scope] = PositionsPart(
                kind="relative", n_buckets=variables.shape(table)[0], max_distance=max_distance
            )
        return _common(parts)


def _common(parts: dict[str, T]) -> T:
    """Return the config that all layers share, or raise for layers that differ."""
    (first, part), *others = parts.items()
    for scope, other in others:
        if other != part:
            raise WeightsError(f"{first} and {scope} differ in more than weights; the layers of a stack must be alike")
    return part
