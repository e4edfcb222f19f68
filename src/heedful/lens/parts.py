"""How many parameters each part of a Transformer holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from ..core import DecoderLayer, EncoderDecoder


@dataclass(frozen=True)
class Count:
    """One kind of part, over all layers of its stack."""

    stack: str
    part: str
    parameters: int


def n_parameters(module: nn.Module) -> int:
    """Each shared parameter once."""
    return sum(parameter.numel() for parameter in module.parameters())


def count_parts(model: nn.Module) -> list[Count]:
    """Embeddings, then by stack the attentions, the feed-forwards and the norms; together, every parameter."""
    model = _encoder_decoder(model)
    tables = nn.ModuleList([model.source_embedding, model.target_embedding, model.head])
    counts = [Count("", "embeddings and output", n_parameters(tables))]
    for name, stack in (("encoder", model.encoder), ("decoder", model.decoder)):
        layers: list[Any] = list(stack.layers)
        wraps = {"self-attention": [layer.attention for layer in layers]}
        if isinstance(layers[0], DecoderLayer):
            wraps["cross-attention"] = [layer.cross_attention for layer in layers]
        wraps["feed-forward"] = [layer.feed_forward for layer in layers]
        for part, wrapped in wraps.items():
            counts.append(Count(name, part, sum(n_parameters(wrap.part) for wrap in wrapped)))
        counted = sum(count.parameters for count in counts if count.stack == name)
        counts.append(Count(name, "norms and positions", n_parameters(stack) - counted))
    return counts


def feed_forward_shares(model: nn.Module) -> dict[str, float]:
    """The feed-forward's share of an encoder layer, of a decoder layer, and of both stacks."""
    model = _encoder_decoder(model)
    encoder: Any = model.encoder.layers[0]
    decoder: Any = model.decoder.layers[0]
    all_layers: list[Any] = [*model.encoder.layers, *model.decoder.layers]
    return {
        "encoder layer": n_parameters(encoder.feed_forward.part) / n_parameters(encoder),
        "decoder layer": n_parameters(decoder.feed_forward.part) / n_parameters(decoder),
        "both stacks": sum(n_parameters(layer.feed_forward.part) for layer in all_layers)
        / (n_parameters(model.encoder) + n_parameters(model.decoder)),
    }


def _encoder_decoder(model: nn.Module) -> EncoderDecoder:
    if not isinstance(model, EncoderDecoder):
        raise TypeError(f"parts are counted for an encoder-decoder, not for a {type(model).__name__}")
    return model
