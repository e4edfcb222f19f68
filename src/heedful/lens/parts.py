"""Parameter counts of the parts of a Transformer."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from ..core import Decoder, DecoderLayer, Encoder, EncoderDecoder


@dataclass(frozen=True)
class Count:
    """The parameters of one kind of part, summed over all layers of its stack."""

    stack: str
    part: str
    parameters: int


def n_parameters(module: nn.Module) -> int:
    """Count the module's parameters, each shared parameter once."""
    return sum(parameter.numel() for parameter in module.parameters())


def count_parts(model: nn.Module) -> list[Count]:
    """Count embeddings, then by stack attention, feed-forward and norms; the counts sum to all parameters."""
    encoder, decoder = _stacks(model)
    counts = [Count("", "embeddings and output", n_parameters(model) - n_parameters(encoder) - n_parameters(decoder))]
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        layers: list[Any] = list(stack.layers)
        wraps = {"self-attention": [layer.self_attention for layer in layers]}
        if isinstance(layers[0], DecoderLayer):
            wraps["cross-attention"] = [layer.cross_attention for layer in layers]
        wraps["feed-forward"] = [layer.feed_forward for layer in layers]
        for part, wrapped in wraps.items():
            counts.append(Count(name, part, sum(n_parameters(wrap.sublayer) for wrap in wrapped)))
        subtotal = sum(count.parameters for count in counts if count.stack == name)
        counts.append(Count(name, "norms and positions", n_parameters(stack) - subtotal))
    return counts


def feed_forward_shares(model: nn.Module) -> dict[str, float]:
    """Return the feed-forward's share of an encoder layer, of a decoder layer, and of both stacks."""
    encoder, decoder = _stacks(model)
    layers: list[Any] = [*encoder.layers, *decoder.layers]
    wide = [n_parameters(layer.feed_forward.sublayer) for layer in layers]
    return {
        "encoder layer": wide[0] / n_parameters(layers[0]),
        "decoder layer": wide[-1] / n_parameters(layers[-1]),
        "both stacks": sum(wide) / (n_parameters(encoder) + n_parameters(decoder)),
    }


def _stacks(model: nn.Module) -> tuple[Encoder, Decoder]:
    if isinstance(model, EncoderDecoder):
        encoder, decoder = model.encoder, model.decoder
        if isinstance(encoder, Encoder) and isinstance(decoder, Decoder):
            return encoder, decoder
    raise TypeError(f"parts are counted for an encoder-decoder with layers, not for this {type(model).__name__}")
