"""A CTranslate2 model's variables as a module of our own parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeVar

from torch import nn

from ...core import (
    Decoder,
    DecoderLayer,
    DecoderOnly,
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    TokenEmbedding,
    VocabularyHead,
)
from ..weights import WeightsError
from .parts import Parts, put, without_memory
from .places import positions_of
from .variables import Variables

M = TypeVar("M", bound=nn.Module)
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


def encoder_decoder(variables: Variables, usual: Usual) -> EncoderDecoder:
    """Of the variables of a translator."""
    source = "encoder/embeddings" if "encoder/embeddings/weight" in variables else "encoder/embeddings_0"
    reading = _Stack(variables, "encoder", source, usual)
    writing = _Stack(variables, "decoder", "decoder/embeddings", usual)
    one = variables.same(f"{source}/weight", "decoder/embeddings/weight")
    module = EncoderDecoder(
        source_embedding=writing.embedding if one and writing.scale == reading.scale else reading.embedding,
        encoder=Encoder(reading.layers(), **reading.ends()),
        target_embedding=writing.embedding,
        decoder=Decoder(writing.layers(d_memory=reading.d_model), **writing.ends()),
        head=writing.head(),
    )
    return _whole(module, variables)


def decoder_only(variables: Variables, usual: Usual) -> DecoderOnly:
    """Of the variables of a language model."""
    writing = _Stack(variables, "decoder", "decoder/embeddings", usual)
    decoder = Decoder(writing.layers(), **writing.ends())
    return _whole(DecoderOnly(embedding=writing.embedding, decoder=decoder, head=writing.head()), variables)


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
    """One stack's variables."""

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
        self.embedding = without_memory(TokenEmbedding, *weight.shape, scale=False)
        self.embedding.scale = self.scale
        put(self.embedding, "weight", weight, f"{table}/weight")
        self._parts = Parts(
            variables,
            d_model=self.d_model,
            n_heads=self._n_heads,
            pre_norm=bool(self._setting("pre_norm", 1)),
            activation=ACTIVATIONS[activation],
            epsilon=usual.epsilon,
        )

    def layers(self, *, d_memory: int | None = None) -> list[nn.Module]:
        """Those of a decoder that reads a memory of this width, or else an encoder's."""
        return [self._layer(f"{self._scope}/layer_{index}", d_memory) for index in range(self._n_layers)]

    def _layer(self, scope: str, d_memory: int | None) -> nn.Module:
        attention = self._parts.self_attention(f"{scope}/self_attention")
        feed_forward = self._parts.feed_forward(f"{scope}/ffn")
        if d_memory is None:
            return EncoderLayer(attention, feed_forward)
        return DecoderLayer(attention, self._parts.cross_attention(f"{scope}/attention", d_memory), feed_forward)

    def ends(self) -> dict[str, Any]:
        """What a stack has beside its layers."""
        return {
            "positions": positions_of(self._variables, self._scope, n_heads=self._n_heads, d_model=self.d_model),
            "entry": self._parts.norm(f"{self._scope}/layernorm_embedding"),
            "norm": self._parts.norm(f"{self._scope}/layer_norm"),
        }

    def _scale(self, table: str) -> float:
        """√D where nothing is said; what is said is a number, or whether it is √D."""
        for name in (f"{self._scope}/scale_embeddings", f"{table}/multiply_by_sqrt_depth"):
            if name in self._variables:
                value = self._variables.number(name, 1.0)
                return (math.sqrt(self.d_model) if value else 1.0) if self._variables.is_flag(name) else value
        return math.sqrt(self.d_model)

    def head(self) -> VocabularyHead:
        """Of vectors to tokens, sharing the embedding's matrix where it is the same."""
        scope = f"{self._scope}/projection"
        weight, bias = self._variables.matrix(f"{scope}/weight"), self._variables.vector(f"{scope}/bias")
        tied = self._variables.same(f"{scope}/weight", f"{self._scope}/embeddings/weight")
        part = without_memory(
            VocabularyHead,
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
