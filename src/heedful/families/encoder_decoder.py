"""The configs, embeddings and stacks that encoder-decoders share."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

from torch import nn

from .. import core
from ..config import FamilyConfig
from .layers import residual_layer

S = TypeVar("S", core.Encoder, core.Decoder)


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


def stacks(
    config: Any,
    *,
    positions: Callable[[bool], core.Positions],
    residual: type[core.PreNorm | core.PostNorm] = core.PostNorm,
    norm: Callable[[int], nn.Module] = core.LayerNorm,
    attention: Callable[..., nn.Module] = core.MultiHeadAttention,
    feed_forward: Callable[..., nn.Module] = core.FeedForward,
    has_entry_norm: bool = False,
) -> tuple[core.Encoder, core.Decoder]:
    """Build an encoder and a decoder of equal layers.

    Args:
        config: A config with the fields of EncoderDecoderTransformerConfig that size the layers.
        positions: Returns a position scheme, causal or not.
        residual: The wrapper of every sublayer; with PreNorm, both stacks end in a norm.
        norm: Returns a norm of this width.
        attention: The class of the attentions, or a `partial` of it with more options.
        feed_forward: The class of the feed-forward parts, likewise.
        has_entry_norm: Whether a norm stands before the layers of each stack.
    """
    feed_forward = partial(feed_forward, dropout=config.activation_dropout)
    layer = partial(residual_layer, config, residual, norm, attention=attention, feed_forward=feed_forward)
    encoder_layers = [layer() for _ in range(config.n_encoder_layers)]
    decoder_layers = [layer(has_cross_attention=True) for _ in range(config.n_decoder_layers)]

    def stack(kind: type[S], layers: list[nn.Module]) -> S:
        return kind(
            layers,
            positions=positions(kind is core.Decoder),
            entry=norm(config.d_model) if has_entry_norm else None,
            norm=norm(config.d_model) if residual is core.PreNorm else None,
            dropout=config.dropout,
        )

    return stack(core.Encoder, encoder_layers), stack(core.Decoder, decoder_layers)


def assemble(
    config: EncoderDecoderConfig,
    encoder: core.Encoder | core.RecurrentEncoder,
    decoder: core.Decoder | core.RecurrentDecoder,
    *,
    scale_embedding: bool = True,
    head_bias: bool = False,
) -> core.EncoderDecoder:
    """Add the embeddings and the head to two stacks, tied as the config says.

    Args:
        config: The sizes of the vocabularies.
        encoder: The encoder.
        decoder: The decoder.
        scale_embedding: Whether embeddings are multiplied by √D.
        head_bias: Whether the output has a bias.
    """
    target_size = config.vocab_size if config.target_vocab_size is None else config.target_vocab_size
    source = core.TokenEmbedding(config.vocab_size, config.d_model, scale=scale_embedding)
    target = source if config.tied == "all" else core.TokenEmbedding(target_size, config.d_model, scale=scale_embedding)
    table = None if config.tied == "none" else target
    head = core.VocabularyHead(config.d_model, target_size, embedding=table, bias=head_bias)
    return core.EncoderDecoder(
        source_embedding=source, encoder=encoder, target_embedding=target, decoder=decoder, head=head
    )
