"""The original Transformer, whose config can exchange every part, and recurrent encoder-decoders.

The recurrent models have additive attention (Bahdanau), or one vector for the whole source.
"""

from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Literal, TypeVar

from torch import nn

from .. import core
from ..core import AdditiveAttention, EncoderDecoder, NoAttention, RecurrentDecoder, RecurrentEncoder
from .encoder_decoder import EncoderDecoderConfig, EncoderDecoderTransformerConfig, assemble, stacks
from .registry import register

P = TypeVar("P", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class OriginalConfig(EncoderDecoderTransformerConfig):
    """The original Transformer and its variants. The defaults are the paper's base model."""

    family: ClassVar[str] = "original"

    n_kv_heads: int | None = None  # Key/value heads, which divide n_heads (grouped-query attention); None means n_heads
    d_head: int | None = None  # Width of a head; None means d_model / n_heads
    # How tokens get positions: added to the embeddings (sinusoidal as in the paper, learned), as biases of the scores
    # (relative as in T5, alibi), by rotating queries and keys, or not at all
    positions: Literal["sinusoidal", "learned", "relative", "rotary", "alibi", "none"] = "sinusoidal"
    norm: Literal["post", "pre"] = "post"  # After each sublayer's addition, as in the paper, or before the sublayer
    norm_kind: Literal["layer", "rms"] = "layer"  # LayerNorm, or RMSNorm without centering and bias
    feed_forward: Literal["plain", "gated"] = "plain"  # Two matrices, or three with a gate (SwiGLU with silu)
    bias: bool = True  # Whether attention and feed-forward have biases

    def check(self) -> None:
        super().check()
        self.require_positive("n_kv_heads", "d_head")
        if self.d_head is None:
            self.require_divisible("d_model", "n_heads", "change one, or give d_head")
        self.require_divisible("n_heads", "n_kv_heads")
        self.require(
            self.positions != "rotary" or self.head_width % 2 == 0,
            f"rotary positions rotate pairs, so the head width must be even, not {self.head_width}",
        )

    @property
    def head_width(self) -> int:
        """K, the width of one head."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head


POSITIONS: dict[str, type[core.Positions]] = {
    "none": core.Positions,
    "sinusoidal": core.Sinusoidal,
    "learned": core.Learned,
    "relative": core.Relative,
    "rotary": core.Rotary,
    "alibi": core.ALiBi,
}
RESIDUALS: dict[str, type[core.PreNorm | core.PostNorm]] = {"post": core.PostNorm, "pre": core.PreNorm}
NORMS: dict[str, type[core.LayerNorm | core.RMSNorm]] = {"layer": core.LayerNorm, "rms": core.RMSNorm}
FEED_FORWARDS: dict[str, type[nn.Module]] = {"plain": core.FeedForward, "gated": core.GatedFeedForward}


def build_part(kind: type[P], /, **arguments: Any) -> P:
    """Build a part with those of the arguments that its constructor takes."""
    return kind(**{name: arguments[name] for name in signature(kind).parameters if name in arguments})


def build(config: OriginalConfig) -> core.EncoderDecoder:
    """Build the original Transformer, or a variant of it."""
    sizes = {"d_model": config.d_model, "n_heads": config.n_heads, "d_head": config.head_width}
    kind, max_length = POSITIONS[config.positions], config.max_length
    encoder, decoder = stacks(
        config,
        positions=lambda causal: build_part(kind, **sizes, max_length=max_length, causal=causal),
        residual=RESIDUALS[config.norm],
        norm=NORMS[config.norm_kind],
        attention=partial(
            core.MultiHeadAttention, n_kv_heads=config.n_kv_heads, d_head=config.d_head, bias=config.bias
        ),
        feed_forward=partial(FEED_FORWARDS[config.feed_forward], bias=config.bias),
    )
    return assemble(config, encoder, decoder)


# Not from the paper: sizes for one machine, and pre-norm, which trains at learning rates where post-norm fails.
SMALL = OriginalConfig(
    vocab_size=8000, d_model=256, n_heads=4, d_ff=1024, n_encoder_layers=4, n_decoder_layers=4, norm="pre"
)
original = register(
    OriginalConfig,
    build,
    presets={
        "tiny": SMALL.changed(d_model=128, d_ff=256),
        "small": SMALL,
        "base": OriginalConfig(),
        "big": OriginalConfig(d_model=1024, n_heads=16, d_ff=4096, dropout=0.3),
    },
)


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(EncoderDecoderConfig):
    """A bidirectional GRU encoder and a GRU decoder, with or without attention."""

    family: ClassVar[str] = "recurrent"

    n_encoder_layers: int = 1  # Bidirectional GRU layers of the encoder; the decoder has one GRU
    attention: Literal["additive", "none"] = "additive"  # Bahdanau's, or one vector for the whole source

    def check(self) -> None:
        super().check()
        self.require_positive("n_encoder_layers")


def build_recurrent(config: RecurrentConfig) -> EncoderDecoder:
    """Build a recurrent encoder-decoder with the config's attention."""
    d_model = config.d_model
    attention = AdditiveAttention(d_model, 2 * d_model, d_model) if config.attention == "additive" else NoAttention()
    encoder = RecurrentEncoder(d_model, n_layers=config.n_encoder_layers, dropout=config.dropout)
    decoder = RecurrentDecoder(d_model, 2 * d_model, attention, dropout=config.dropout)
    return assemble(config, encoder, decoder)


recurrent = register(
    RecurrentConfig,
    build_recurrent,
    presets={"recurrent": RecurrentConfig(), "recurrent-plain": RecurrentConfig(attention="none")},
)
