"""The configs, embeddings and stacks that encoder-decoders share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from torch import nn

from .. import core
from ..config import FamilyConfig

S = TypeVar("S", core.Encoder, core.Decoder)
Part = Callable[[], nn.Module]  # builds a new part at every call


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderConfig(FamilyConfig):
    """The fields of all encoder-decoders, with attention or recurrent."""

    vocab_size: int = 37000  # Number of (source) tokens; training sets it to that of a new tokenizer
    target_vocab_size: int | None = None  # Number of target tokens; None means one vocabulary for both
    d_model: int = 512  # Width of the embeddings and of all layers
    tied: Literal["all", "output", "none"] = "all"  # What shares a matrix: source, target and output, or the last two
    dropout: float = 0.1  # Probability of dropping a feature of the embeddings and of every sublayer's output

    def check(self) -> None:
        self.require_positive("vocab_size", "target_vocab_size", "d_model")
        self.require_share("dropout")
        self.require(
            self.tied != "all" or self.target_vocab_size in (None, self.vocab_size),
            f'tied="all" needs one vocabulary, but vocab_size={self.vocab_size} and '
            f'target_vocab_size={self.target_vocab_size}; use tied="output"',
        )


@dataclass(frozen=True, kw_only=True)
class EncoderDecoderTransformerConfig(EncoderDecoderConfig):
    """The fields of encoder-decoders with attention layers."""

    n_heads: int = 8  # Attention heads of each layer
    d_ff: int = 2048  # Inner width of the feed-forward sublayers
    n_encoder_layers: int = 6  # Layers of the encoder
    n_decoder_layers: int = 6  # Layers of the decoder
    max_length: int = 5000  # The most tokens of a source or target
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"  # Between the matrices of feed-forward parts
    attention_dropout: float = 0.0  # Probability of dropping an attention weight
    activation_dropout: float = 0.0  # Probability of dropping a feature between the feed-forward matrices

    def check(self) -> None:
        super().check()
        self.require_positive("n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "max_length")
        self.require_share("attention_dropout", "activation_dropout")


def embeddings(
    config: EncoderDecoderConfig, *, scale: bool = True, bias: bool = False
) -> tuple[core.TokenEmbedding, core.TokenEmbedding, core.VocabularyHead]:
    """Return the source embedding, the target embedding and the head, tied as the config says."""
    target_size = config.vocab_size if config.target_vocab_size is None else config.target_vocab_size
    source = core.TokenEmbedding(config.vocab_size, config.d_model, scale=scale)
    target = source if config.tied == "all" else core.TokenEmbedding(target_size, config.d_model, scale=scale)
    table = None if config.tied == "none" else target
    return source, target, core.VocabularyHead(config.d_model, target_size, embedding=table, bias=bias)


def stacks(
    n_encoder_layers: int,
    n_decoder_layers: int,
    *,
    attention: Part,
    feed_forward: Part,
    positions: Callable[[bool], core.Positions],
    entry: Part | None = None,
    norm: Part | None = None,
    dropout: float = 0.0,
) -> tuple[core.Encoder, core.Decoder]:
    """Build an encoder and a decoder from functions that return residual parts; `positions` is passed `causal`."""

    def stack(kind: type[S], layers: Sequence[nn.Module], causal: bool) -> S:
        return kind(
            layers,
            positions=positions(causal),
            entry=None if entry is None else entry(),
            norm=None if norm is None else norm(),
            dropout=dropout,
        )

    encoder_layers = [core.EncoderLayer(attention(), feed_forward()) for _ in range(n_encoder_layers)]
    decoder_layers = [core.DecoderLayer(attention(), attention(), feed_forward()) for _ in range(n_decoder_layers)]
    return stack(core.Encoder, encoder_layers, False), stack(core.Decoder, decoder_layers, True)


def assemble(
    config: EncoderDecoderTransformerConfig,
    *,
    positions: Callable[[bool], core.Positions],
    residual: type[core.PreNorm | core.PostNorm] = core.PostNorm,
    norm: Callable[[int], nn.Module] = core.LayerNorm,
    feed_forward: Callable[..., nn.Module] = core.FeedForward,
    entry: Part | None = None,
    n_kv_heads: int | None = None,
    d_head: int | None = None,
    bias: bool = True,
    scale_embedding: bool = True,
    head_bias: bool = False,
) -> core.EncoderDecoder:
    """Build an encoder-decoder of equal layers.

    Args:
        config: The sizes and dropouts.
        positions: Returns a position scheme, causal or not.
        residual: The wrapper of every sublayer; with PreNorm, both stacks end in a norm.
        norm: Returns a norm of this width.
        feed_forward: The class of the feed-forward parts.
        entry: Returns the norm before the layers of each stack.
        n_kv_heads: The number of key/value heads, by default that of the heads.
        d_head: The width of a head, by default d_model / n_heads.
        bias: Whether attention and feed-forward have biases.
        scale_embedding: Whether embeddings are multiplied by √D.
        head_bias: Whether the output has a bias.
    """
    d_model = config.d_model

    def wrapped(part: nn.Module) -> nn.Module:
        return residual(part, norm(d_model), config.dropout)

    def attention() -> nn.Module:
        dropout = config.attention_dropout
        return core.MultiHeadAttention(
            d_model, config.n_heads, n_kv_heads=n_kv_heads, d_head=d_head, bias=bias, dropout=dropout
        )

    def transform() -> nn.Module:
        dropout = config.activation_dropout
        return feed_forward(d_model, config.d_ff, activation=config.activation, bias=bias, dropout=dropout)

    encoder, decoder = stacks(
        config.n_encoder_layers,
        config.n_decoder_layers,
        attention=lambda: wrapped(attention()),
        feed_forward=lambda: wrapped(transform()),
        positions=positions,
        entry=entry,
        norm=(lambda: norm(d_model)) if residual is core.PreNorm else None,
        dropout=config.dropout,
    )
    source, target, head = embeddings(config, scale=scale_embedding, bias=head_bias)
    return core.EncoderDecoder(
        source_embedding=source, encoder=encoder, target_embedding=target, decoder=decoder, head=head
    )
