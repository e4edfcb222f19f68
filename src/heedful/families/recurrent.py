"""The recurrent encoder-decoders that came before: with additive attention, and with one vector for a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from ..core import AdditiveAttention, EncoderDecoder, NoAttention, RecurrentDecoder, RecurrentEncoder
from .registry import register
from .translator import TranslatorConfig, embeddings


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig(TranslatorConfig):
    """Bidirectional GRU encoder, GRU decoder; `attention` is "additive" (Bahdanau) or "none"."""

    family: ClassVar[str] = "recurrent"

    n_encoder_layers: int = 1
    attention: Literal["additive", "none"] = "additive"

    def check(self) -> None:
        super().check()
        self.require_positive("n_encoder_layers")


def build(config: RecurrentConfig) -> EncoderDecoder:
    """Put the parts together."""
    d_model = config.d_model
    reader = AdditiveAttention(d_model, 2 * d_model, d_model) if config.attention == "additive" else NoAttention()
    source, target, head = embeddings(config)
    return EncoderDecoder(
        source_embedding=source,
        encoder=RecurrentEncoder(d_model, n_layers=config.n_encoder_layers, dropout=config.dropout),
        target_embedding=target,
        decoder=RecurrentDecoder(d_model, 2 * d_model, reader, dropout=config.dropout),
        head=head,
    )


recurrent = register(
    RecurrentConfig,
    build,
    presets={"recurrent": RecurrentConfig(), "recurrent-plain": RecurrentConfig(attention="none")},
)
