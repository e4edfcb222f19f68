"""An encoder-decoder or a decoder alone, said part by part: for models that were read from elsewhere, unnamed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import nn

from ...config import FamilyConfig
from ...core import (
    Decoder,
    DecoderLayer,
    DecoderOnly,
    Encoder,
    EncoderDecoder,
    EncoderLayer,
    MultiHeadAttention,
    TokenEmbedding,
    VocabularyHead,
    window,
)
from ..llama import SCALINGS
from ..registry import Family, register
from .parts import RESIDUALS, AttentionPart, StackPart


@dataclass(frozen=True, kw_only=True)
class ComposedConfig(FamilyConfig):
    """Without an encoder, a decoder alone. `target_vocab_size` is the source's unless given.

    `tied` says what shares one matrix: "all" source, target and output; "output" target and output; "embeddings"
    source and target; "none" nothing. `head_scale` multiplies what the output's matrix is given.
    """

    family: ClassVar[str] = "composed"

    vocab_size: int
    target_vocab_size: int | None = None
    encoder: StackPart | None = None
    decoder: StackPart
    tied: Literal["all", "output", "embeddings", "none"] = "none"
    head_bias: bool = False
    head_scale: float = 1.0

    def check(self) -> None:
        self.require_positive("vocab_size", "target_vocab_size")
        reads = self.decoder.cross_attention is not None
        if self.encoder is None:
            self.require(not reads, "a decoder alone has nothing to read: leave out cross_attention, or say an encoder")
            self.require(self.target_vocab_size is None, "a decoder alone has one vocabulary: no target_vocab_size")
            self.require(
                self.tied in ("output", "none"), f'a decoder alone is tied="output" or "none", not {self.tied!r}'
            )
            return
        self.require(reads, "a decoder that reads what an encoder made needs cross_attention")
        self.require(self.encoder.cross_attention is None, "an encoder has no cross_attention; leave it out")
        sides = ((self.vocab_size, self.encoder), (self.target_size, self.decoder))
        source, target = ((size, stack.d_model, stack.embedding_scale) for size, stack in sides)
        self.require(
            self.tied in ("output", "none") or source == target,
            f"tied={self.tied!r} needs one vocabulary, d_model and embedding_scale, but the source has {source} and "
            f'the target {target}; use tied="output" or "none"',
        )

    @property
    def target_size(self) -> int:
        """How many tokens are written."""
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size


def build(config: ComposedConfig) -> EncoderDecoder | DecoderOnly:
    """Put the parts together."""
    target = _embedding(config.target_size, config.decoder)
    head = VocabularyHead(
        config.decoder.d_model,
        config.target_size,
        table=target if config.tied in ("all", "output") else None,
        bias=config.head_bias,
        scale=config.head_scale,
    )
    if config.encoder is None:
        return DecoderOnly(embedding=target, decoder=Decoder(**_stack(config.decoder, Decoder)), head=head)
    shared = config.tied in ("all", "embeddings")
    return EncoderDecoder(
        source_embedding=target if shared else _embedding(config.vocab_size, config.encoder),
        encoder=Encoder(**_stack(config.encoder, Encoder)),
        target_embedding=target,
        decoder=Decoder(**_stack(config.decoder, Decoder, d_memory=config.encoder.d_model)),
        head=head,
    )


def _embedding(size: int, stack: StackPart) -> TokenEmbedding:
    embedding = TokenEmbedding(size, stack.d_model, scale=False)
    embedding.scale = stack.embedding_scale
    return embedding


def _stack(stack: StackPart, kind: type[Encoder | Decoder], *, d_memory: int | None = None) -> dict[str, Any]:
    """What its constructor takes."""
    d_model, scaling = stack.d_model, stack.positions.scaling

    def residual(part: nn.Module) -> nn.Module:
        return RESIDUALS[stack.order].part(part, stack.norm.made(d_model=d_model), stack.dropout)

    def attention(part: AttentionPart, d_memory: int | None = None) -> nn.Module:
        return residual(MultiHeadAttention(d_model, d_memory=d_memory, **part.to_dict()))

    def layer() -> nn.Module:
        reading, feed_forward = attention(stack.attention), residual(stack.feed_forward.made(d_model=d_model))
        if stack.cross_attention is None:
            return EncoderLayer(reading, feed_forward)
        return DecoderLayer(reading, attention(stack.cross_attention, d_memory), feed_forward)

    return {
        "layers": [layer() for _ in range(stack.n_layers)],
        "mask": kind.default_mask if stack.window is None else kind.default_mask & window(stack.window),
        "positions": stack.positions.made(
            d_model=d_model,
            n_heads=stack.attention.n_heads,
            d_head=stack.head_width,
            causal=kind is Decoder,
            scaling=None if scaling is None else SCALINGS[scaling.kind](scaling),
        ),
        "entry": None if stack.entry_norm is None else stack.entry_norm.made(d_model=d_model),
        "norm": None if stack.final_norm is None else stack.final_norm.made(d_model=d_model),
        "dropout": stack.entry_dropout,
    }


composed = register(Family(ComposedConfig, build))
