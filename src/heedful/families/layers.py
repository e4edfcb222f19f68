"""The config fields, layers and initial weights that families share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from torch import nn

from .. import core
from ..config import FamilyConfig

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True, kw_only=True)
class LayersConfig(FamilyConfig):
    """The fields of models with one stack of equal layers."""

    d_model: int = 768  # Width of the embeddings and of all layers
    n_heads: int = 12  # Attention heads of each layer
    d_ff: int = 3072  # Inner width of the feed-forward sublayers
    n_layers: int = 12  # Number of layers
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "gelu"  # Between the matrices of feed-forward parts
    attention_dropout: float = 0.0  # Probability of dropping an attention weight

    def check(self) -> None:
        self.require_positive("d_model", "n_heads", "d_ff", "n_layers")
        self.require_share("attention_dropout")


@dataclass(frozen=True, kw_only=True)
class DecoderOnlyConfig(LayersConfig):
    """The fields of models that continue texts."""

    vocab_size: int  # Number of tokens; training sets it to that of a new tokenizer
    max_length: int  # The most tokens of a text
    tied: bool = True  # Whether the output shares the embedding's matrix

    def check(self) -> None:
        super().check()
        self.require_positive("vocab_size", "max_length")


def residual_layer(
    config: Any,
    residual: type[core.PreNorm | core.PostNorm],
    norm: Callable[[int], nn.Module],
    *,
    attention: Callable[..., nn.Module] = core.MultiHeadAttention,
    feed_forward: Callable[..., nn.Module] = core.FeedForward,
    has_cross_attention: bool = False,
) -> nn.Module:
    """Build a layer of the config's sizes, each part in its residual with a norm.

    Args:
        config: A config with `d_model`, `n_heads`, `d_ff`, `activation`, `dropout` and `attention_dropout`.
        residual: The wrapper of all parts.
        norm: Returns a norm of this width.
        attention: The class of the attentions, or a `partial` of it with more options.
        feed_forward: The class of the feed-forward part, likewise.
        has_cross_attention: Whether the layer also attends to an encoder's output.
    """
    d_model, n_attentions = config.d_model, 2 if has_cross_attention else 1
    parts = [attention(d_model, config.n_heads, dropout=config.attention_dropout) for _ in range(n_attentions)]
    parts.append(feed_forward(d_model, config.d_ff, activation=config.activation))
    kind: Callable[..., nn.Module] = core.DecoderLayer if has_cross_attention else core.EncoderLayer
    return kind(*(residual(part, norm(d_model), config.dropout) for part in parts))


def decoder_only(config: DecoderOnlyConfig, decoder: core.Decoder) -> core.DecoderOnly:
    """Return a decoder with its embedding and its output, and with weights initialized from N(0, 0.02²)."""
    embedding = core.TokenEmbedding(config.vocab_size, config.d_model, scale=False)
    head = core.VocabularyHead(config.d_model, config.vocab_size, embedding=embedding if config.tied else None)
    return initialize_normal(core.DecoderOnly(embedding=embedding, decoder=decoder, head=head), 0.02)


def initialize_normal(module: M, std: float) -> M:
    """Initialize all matrices and tables of a module from N(0, std²); GPT-2, BERT, BART and LLaMA use std=0.02."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=std)
    return module
