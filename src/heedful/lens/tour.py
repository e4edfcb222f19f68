"""A tour of the original Transformer: parameter counts, one forward pass, and pictures."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..core import Decoder, Encoder, EncoderDecoder, Sinusoidal
from ..errors import MissingDependencyError
from . import pictures
from .document import n_parameters
from .page.rendering import LANGUAGES, catalog
from .recorder import record

SOURCE = ["I", "am", "a", "student"]
TARGET = ["<s>", "나는", "학생", "입니다"]


@dataclass(frozen=True)
class Count:
    """The parameters of one kind of part, summed over all layers of its stack."""

    stack: str
    part: str
    parameters: int


@dataclass(frozen=True)
class Tour:
    """The results of a tour: counts, shapes and pictures."""

    counts: list[Count]
    shares: dict[str, float]
    shapes: dict[str, tuple[int, ...]]
    pictures: list[Path]
    notes: list[str]


def tour(model: nn.Module, out: Path, *, language: str = "en") -> Tour:
    """Run one sentence pair through an untrained encoder-decoder and draw its pictures."""
    if not isinstance(model, EncoderDecoder):
        raise TypeError(f"the tour needs an encoder-decoder, not a {type(model).__name__}")
    out.mkdir(parents=True, exist_ok=True)
    model.eval()
    source = torch.arange(len(SOURCE))[None]
    target = torch.arange(len(TARGET))[None]
    with torch.no_grad(), record(model, layers=0) as recording:
        memory = model.encode(source)
        logits = model.decode(target, memory)
    shapes = {
        "source tokens (B, S)": source.shape,
        "memory (B, S, D)": memory.shape,
        "cross-attention of layer 0 (B, H, T, S)": recording.cross[0].shape,
        "logits (B, T, V)": logits.shape,
    }
    drawn, notes = _draw(out, recording.encoder[0][0], recording.cross[0][0], language)
    return Tour(count_parts(model), feed_forward_shares(model), dict(shapes), drawn, notes)


def _draw(out: Path, encoder: torch.Tensor, cross: torch.Tensor, language: str) -> tuple[list[Path], list[str]]:
    """Draw every picture as PNG and SVG. A picture whose letters no font has is skipped and noted."""
    table = Sinusoidal(128).table(100)
    titles = catalog(language if language in LANGUAGES else "en")["pictures"]
    figures: dict[str, Callable[[], Any]] = {
        "positional-map": lambda: pictures.positional_map(table, language=language),
        "positional-waves": lambda: pictures.positional_waves(table, language=language),
        "encoder-attention": lambda: pictures.attention_heads(
            encoder, SOURCE, SOURCE, title=titles["encoder_layer"], language=language
        ),
        "cross-attention": lambda: pictures.attention_map(
            cross[0], TARGET, SOURCE, title=titles["cross_head"], language=language
        ),
    }
    drawn: list[Path] = []
    missing: dict[str, list[str]] = {}  # by what was missing, the pictures that need it
    for name, make in figures.items():
        try:
            figure = make()
        except MissingDependencyError as error:
            missing.setdefault(str(error), []).append(name)
            continue
        drawn += [pictures.save(figure, out / f"{name}{suffix}") for suffix in (".png", ".svg")]
    return drawn, [f"Not drawn: {', '.join(names)}. {why[0].upper()}{why[1:]}" for why, names in missing.items()]


def count_parts(model: nn.Module) -> list[Count]:
    """Count embeddings, then by stack attention, feed-forward and norms; the counts sum to all parameters."""
    encoder, decoder = _stacks(model)
    counts = [Count("", "embeddings and output", n_parameters(model) - n_parameters(encoder) - n_parameters(decoder))]
    for name, stack in (("encoder", encoder), ("decoder", decoder)):
        for part in ("self-attention", "cross-attention", "feed-forward"):
            wraps: list[Any] = [getattr(layer, part.replace("-", "_"), None) for layer in stack.layers]
            if wraps[0] is not None:
                counts.append(Count(name, part, sum(n_parameters(wrap.sublayer) for wrap in wraps)))
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
