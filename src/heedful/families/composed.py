"""A family for any encoder-decoder or decoder-only model, whose config describes it part by part.

Models that were read from other formats have this family. The config names the kind of each part and its options.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, ClassVar, Literal, TypeVar

from torch import nn

from .. import core
from ..config import Config, FamilyConfig
from ..core import window
from .llama import ScalingConfig
from .original import FEED_FORWARDS, NORMS, POSITIONS, RESIDUALS, build_part
from .registry import register

S = TypeVar("S", core.Encoder, core.Decoder)


@dataclass(frozen=True, kw_only=True)
class KindPart(Config):
    """The config of a part that has several kinds.

    Fields that the kind's constructor takes are required, others must be None. The stack passes the other arguments.
    """

    kinds: ClassVar[Mapping[str, type[nn.Module]]]
    optional: ClassVar[tuple[str, ...]] = ()

    kind: str  # Which class the part is of; it determines the other fields

    def check(self) -> None:
        takes = signature(self.kinds[self.kind]).parameters
        for field in fields(self):
            is_set = getattr(self, field.name) is not None
            if field.name in takes:
                self.require(is_set or field.name in self.optional, f"the kind {self.kind!r} needs {field.name}")
            elif field.name != "kind":
                self.require(not is_set, f"{field.name} does not apply to the kind {self.kind!r}; leave it out")

    def build(self, **context: Any) -> Any:
        """Build the part from the config's fields and the arguments that the stack passes."""
        arguments = {field.name: getattr(self, field.name) for field in fields(self)} | context
        return build_part(self.kinds[self.kind], **arguments)


@dataclass(frozen=True, kw_only=True)
class NormPart(KindPart):
    """A norm over the features of a token."""

    title: ClassVar[str] = "norm"
    kinds = NORMS

    kind: Literal["layer", "rms"]  # LayerNorm or RMSNorm
    eps: float  # Added to the variance, or to the mean square
    bias: bool | None = None  # Whether a LayerNorm has a bias; required for it, None for RMSNorm

    def check(self) -> None:
        super().check()
        self.require(self.eps >= 0, f"eps must not be below 0, but is {self.eps}")


@dataclass(frozen=True, kw_only=True)
class FeedForwardPart(KindPart):
    """A plain or gated feed-forward part of a layer."""

    title: ClassVar[str] = "feed-forward"
    kinds = FEED_FORWARDS

    kind: Literal["plain", "gated"]  # Two matrices, or three with a gate
    d_ff: int  # Inner width of the part
    activation: Literal["relu", "gelu", "gelu_tanh", "silu", "tanh"]  # Activation between the matrices
    bias: bool  # Whether all projections have biases
    dropout: float = 0.0  # Probability of dropping a feature between the matrices

    def check(self) -> None:
        super().check()
        self.require_positive("d_ff")
        self.require_share("dropout")


@dataclass(frozen=True, kw_only=True)
class PositionsPart(KindPart):
    """A position scheme and its options; relative positions are causal in a decoder."""

    title: ClassVar[str] = "positions"
    kinds = POSITIONS
    optional = ("scaling",)

    # How tokens get positions: added to the embeddings (sinusoidal, learned), as biases of the scores (relative, as
    # in T5, alibi), by rotating queries and keys, or not at all. A kind needs its own options and allows no others.
    kind: Literal["none", "sinusoidal", "learned", "relative", "rotary", "alibi"]
    max_length: int | None = None  # "sinusoidal", "learned": the number of positions
    layout: Literal["interleaved", "halves"] | None = None  # "sinusoidal": sines and cosines alternate, or sines first
    offset: int | None = None  # "learned": unused rows before position 0
    n_buckets: int | None = None  # "relative": buckets of distances, each with a learned bias per head
    max_distance: int | None = None  # "relative": larger distances share the last bucket
    base: float | None = None  # "rotary": feature pair i rotates by base^(−2i/width) radians per position
    width: int | None = None  # "rotary": features of a head that are rotated
    interleaved: bool | None = None  # "rotary": pair neighboring features, or the halves of a head
    scaling: ScalingConfig | None = None  # "rotary": kind, factor … of a model extended to longer inputs

    def check(self) -> None:
        super().check()
        self.require_positive("max_length", "n_buckets", "max_distance", "width")
        self.require(self.offset is None or self.offset >= 0, f"offset must not be below 0, but is {self.offset}")
        self.require(self.base is None or self.base > 0, f"base must be above 0, but is {self.base}")
        self.require(not (self.width or 0) % 2, f"rotary positions rotate pairs, so width={self.width} must be even")
        self.require(
            self.n_buckets is None or (self.n_buckets >= 4 and (self.max_distance or 0) > self.n_buckets // 2),
            f"n_buckets={self.n_buckets} to max_distance={self.max_distance} leave no bucket for near or far distances",
        )


@dataclass(frozen=True, kw_only=True)
class AttentionPart(Config):
    """The options of self-attention or cross-attention."""

    title: ClassVar[str] = "attention"

    n_heads: int  # Query heads
    n_kv_heads: int | None = None  # Key/value heads, which divide n_heads (grouped-query attention); None means n_heads
    d_head: int | None = None  # Width of a head; None means d_model / n_heads
    bias: bool = True  # Whether the projections have biases
    out_bias: bool | None = None  # Whether the output projection has a bias; None means as bias says
    scale: float | None = None  # Multiplies the scores; None means d_head^−½
    dropout: float = 0.0  # Probability of dropping an attention weight

    def check(self) -> None:
        self.require_positive("n_heads", "n_kv_heads", "d_head")
        self.require_share("dropout")
        self.require_divisible("n_heads", "n_kv_heads")


@dataclass(frozen=True, kw_only=True)
class StackPart(Config):
    """A stack of equal layers, with its embedding and its norms."""

    title: ClassVar[str] = "stack"

    d_model: int  # Width of the embeddings and of all layers
    n_layers: int  # Layers of the stack, which are all alike
    attention: AttentionPart
    feed_forward: FeedForwardPart
    norm: NormPart
    order: Literal["pre", "post"]  # The norm is before each sublayer, or after its addition
    positions: PositionsPart
    cross_attention: AttentionPart | None = None  # The same options for attention to the encoder; None without one
    embedding_scale: float = 1.0  # Multiplies the token embeddings
    entry_norm: NormPart | None = None  # Norm of the embeddings before the first layer; None means none
    final_norm: NormPart | None = None  # Norm after the last layer; None means none
    window: int | None = None  # Self-attention sees tokens less than this many positions away; None means all
    dropout: float = 0.0  # Probability of dropping a feature of every sublayer's output
    entry_dropout: float = 0.0  # Probability of dropping a feature of the embeddings with their positions

    def check(self) -> None:
        self.require_positive("d_model", "n_layers", "window")
        self.require_share("dropout", "entry_dropout")
        for part in (self.attention, self.cross_attention or self.attention):
            self.require(
                part.d_head is not None or self.d_model % part.n_heads == 0,
                f"d_model={self.d_model} is not divisible by n_heads={part.n_heads}; change one, or give d_head",
            )
        self.require(
            (self.positions.width or 0) <= self.head_width,
            f"positions rotate width={self.positions.width} features, but heads have {self.head_width}",
        )

    @property
    def norms(self) -> list[NormPart]:
        """All norms of the stack, those of its layers first."""
        return [norm for norm in (self.norm, self.entry_norm, self.final_norm) if norm is not None]

    @property
    def head_width(self) -> int:
        """K, the width of one head of the self-attention."""
        return self.d_model // self.attention.n_heads if self.attention.d_head is None else self.attention.d_head


@dataclass(frozen=True, kw_only=True)
class ComposedConfig(FamilyConfig):
    """An encoder-decoder, or a decoder-only model if `encoder` is None, described part by part."""

    family: ClassVar[str] = "composed"

    vocab_size: int  # Number of source tokens, or of all tokens without an encoder
    target_vocab_size: int | None = None  # Number of target tokens; None means vocab_size
    encoder: StackPart | None = None  # A stack with the fields of decoder; None means a decoder-only model
    decoder: StackPart
    # What shares a matrix. all: source, target and output; output: target and output; embeddings: source and target.
    tied: Literal["all", "output", "embeddings", "none"] = "none"
    head_bias: bool = False  # Whether the output has a bias
    head_scale: float = 1.0  # Multiplies the input of the output matrix

    def check(self) -> None:
        self.require_positive("vocab_size", "target_vocab_size")
        has_cross_attention = self.decoder.cross_attention is not None
        if self.encoder is None:
            self.require(not has_cross_attention, "cross_attention needs an encoder; leave it out, or add an encoder")
            self.require(
                self.target_vocab_size is None, "a decoder-only model has one vocabulary; leave out target_vocab_size"
            )
            self.require(
                self.tied in ("output", "none"), f'a decoder-only model has tied="output" or "none", not {self.tied!r}'
            )
            return
        self.require(has_cross_attention, "the decoder of an encoder-decoder needs cross_attention")
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
        """The size of the target vocabulary."""
        return self.vocab_size if self.target_vocab_size is None else self.target_vocab_size


def build(config: ComposedConfig) -> core.EncoderDecoder | core.DecoderOnly:
    """Build the model that a composed config describes."""
    target = _embedding(config.target_size, config.decoder)
    head = core.VocabularyHead(
        config.decoder.d_model,
        config.target_size,
        embedding=target if config.tied in ("all", "output") else None,
        bias=config.head_bias,
        scale=config.head_scale,
    )
    if config.encoder is None:
        return core.DecoderOnly(embedding=target, decoder=_stack(config.decoder, core.Decoder), head=head)
    shared = config.tied in ("all", "embeddings")
    return core.EncoderDecoder(
        source_embedding=target if shared else _embedding(config.vocab_size, config.encoder),
        encoder=_stack(config.encoder, core.Encoder),
        target_embedding=target,
        decoder=_stack(config.decoder, core.Decoder, d_memory=config.encoder.d_model),
        head=head,
    )


def _embedding(size: int, stack: StackPart) -> core.TokenEmbedding:
    embedding = core.TokenEmbedding(size, stack.d_model, scale=False)
    embedding.scale = stack.embedding_scale
    return embedding


def _stack(stack: StackPart, kind: type[S], *, d_memory: int | None = None) -> S:
    d_model, scaling = stack.d_model, stack.positions.scaling

    def residual(part: nn.Module) -> nn.Module:
        return RESIDUALS[stack.order](part, stack.norm.build(d_model=d_model), stack.dropout)

    def attention(part: AttentionPart, d_memory: int | None = None) -> nn.Module:
        return residual(core.MultiHeadAttention(d_model, d_memory=d_memory, **part.to_dict()))

    def layer() -> nn.Module:
        reading, feed_forward = attention(stack.attention), residual(stack.feed_forward.build(d_model=d_model))
        if stack.cross_attention is None:
            return core.EncoderLayer(reading, feed_forward)
        return core.DecoderLayer(reading, attention(stack.cross_attention, d_memory), feed_forward)

    return kind(
        [layer() for _ in range(stack.n_layers)],
        mask=kind.default_mask if stack.window is None else kind.default_mask & window(stack.window),
        positions=stack.positions.build(
            d_model=d_model,
            n_heads=stack.attention.n_heads,
            d_head=stack.head_width,
            causal=issubclass(kind, core.Decoder),
            scaling=None if scaling is None else scaling.build(),
        ),
        entry=None if stack.entry_norm is None else stack.entry_norm.build(d_model=d_model),
        norm=None if stack.final_norm is None else stack.final_norm.build(d_model=d_model),
        dropout=stack.entry_dropout,
    )


composed = register(ComposedConfig, build)
