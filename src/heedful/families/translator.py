"""What every encoder-decoder over two vocabularies shares: the fields, and who shares which matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

from torch import nn

from ..config import FamilyConfig
from ..core import Decoder, DecoderLayer, Encoder, EncoderLayer, Positions, TokenEmbedding, VocabularyHead

S = TypeVar("S", Encoder, Decoder)
Part = Callable[[], nn.Module]  # makes a new one each time


@dataclass(frozen=True, kw_only=True)
class TranslatorConfig(FamilyConfig):
    """`target_vocab_size` is the source's unless given.

    `tied` says what shares one matrix: "all" source, target and output; "output" target and output;
    "none" nothing.
    """

    vocab_size: int = 37000
    target_vocab_size: int | None = None
    d_model: int = 512
    tied: Literal["all", "output", "none"] = "all"
    dropout: float = 0.1

    def check(self) -> None:
        self.require_positive("vocab_size", "target_vocab_size", "d_model")
        self.require_share("dropout")
        self.require(
            self.tied != "all" or self.target_vocab_size in (None, self.vocab_size),
            f'tied="all" needs one vocabulary, but vocab_size={self.vocab_size} and '
            f'target_vocab_size={self.target_vocab_size}; use tied="output"',
        )


@dataclass(frozen=True, kw_only=True)
class AttentionConfig(TranslatorConfig):
    """What those built of attention share besides."""

    n_heads: int = 8
    d_ff: int = 2048
    n_encoder_layers: int = 6
    n_decoder_layers: int = 6
    max_length: int = 5000
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0

    def check(self) -> None:
        super().check()
        self.require_positive("n_heads", "d_ff", "n_encoder_layers", "n_decoder_layers", "max_length")
        self.require_share("attention_dropout", "activation_dropout")


def embeddings(
    config: TranslatorConfig, *, scale: bool = True, bias: bool = False
) -> tuple[TokenEmbedding, TokenEmbedding, VocabularyHead]:
    """Source, target and output, sharing one matrix as far as the config says."""
    target_size = config.vocab_size if config.target_vocab_size is None else config.target_vocab_size
    source = TokenEmbedding(config.vocab_size, config.d_model, scale=scale)
    target = source if config.tied == "all" else TokenEmbedding(target_size, config.d_model, scale=scale)
    table = None if config.tied == "none" else target
    return source, target, VocabularyHead(config.d_model, target_size, table=table, bias=bias)


def stacks(
    n_encoder_layers: int,
    n_decoder_layers: int,
    *,
    attention: Part,
    feed_forward: Part,
    positions: Callable[[bool], Positions],
    entry: Part | None = None,
    norm: Part | None = None,
    dropout: float = 0.0,
) -> tuple[Encoder, Decoder]:
    """Encoder and decoder of the same parts, which come in their residuals; `positions` is told what is causal."""

    def stack(kind: type[S], layers: Sequence[nn.Module], causal: bool) -> S:
        return kind(
            layers,
            positions=positions(causal),
            entry=None if entry is None else entry(),
            norm=None if norm is None else norm(),
            dropout=dropout,
        )

    encoder_layers = [EncoderLayer(attention(), feed_forward()) for _ in range(n_encoder_layers)]
    decoder_layers = [DecoderLayer(attention(), attention(), feed_forward()) for _ in range(n_decoder_layers)]
    return stack(Encoder, encoder_layers, False), stack(Decoder, decoder_layers, True)
