"""Small models of every kind, in float64, with no parameter left at a value that would hide a mistake.

Shapes: B batch, T tokens, D d_model, H heads, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from heedful import core

D, H, V = 16, 4, 23
Module = TypeVar("Module", bound=nn.Module)

SCHEMES: dict[str, Callable[[], core.Positions]] = {
    "none": core.Positions,
    "sinusoidal": lambda: core.Sinusoidal(D),
    "learned": lambda: core.Learned(32, D),
    "relative": lambda: core.Relative(H, n_buckets=8, max_distance=6, causal=True),
    "rotary": lambda: core.Rotary(D // H),
    "alibi": lambda: core.ALiBi(H),
}

# What stands where in three rows of eight tokens.
LAYOUTS: dict[str, list[list[int]]] = {
    "no padding": [[1] * 8] * 3,
    "left": [[1] * 8, [0, 0, 0, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1, 1, 1]],
    "right": [[1, 1, 1, 1, 1, 0, 0, 0], [1] * 8, [1, 1, 0, 0, 0, 0, 0, 0]],
    "prompts of 4, 2 and 3 that go on": [[1] * 8, [1, 1, 0, 0, 1, 1, 1, 1], [1, 1, 1, 0, 1, 1, 1, 1]],
}


def layout(name: str) -> Tensor:
    return torch.tensor(LAYOUTS[name], dtype=torch.bool)


def tokens(rows: int = 3, length: int = 8) -> Tensor:
    return torch.randint(0, V, (rows, length))


def shaken(module: Module) -> Module:
    """Biases start at zero and norms at one, where an error in them would not show."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return module.double().eval()


def encoder_layer(wrap: type[nn.Module] = core.PostNorm, **attention: Any) -> core.EncoderLayer:
    return core.EncoderLayer(
        wrap(core.MultiHeadAttention(D, H, **attention), core.LayerNorm(D)),
        wrap(core.FeedForward(D, 2 * D), core.LayerNorm(D)),
    )


def decoder_layer(wrap: type[nn.Module] = core.PostNorm) -> core.DecoderLayer:
    attention, cross = (wrap(core.MultiHeadAttention(D, H), core.LayerNorm(D)) for _ in range(2))
    return core.DecoderLayer(attention, cross, wrap(core.FeedForward(D, 2 * D), core.LayerNorm(D)))


def encoder_only(scheme: str = "sinusoidal", head: nn.Module | None = None) -> core.EncoderOnly:
    encoder = core.Encoder([encoder_layer() for _ in range(2)], positions=SCHEMES[scheme]())
    return shaken(core.EncoderOnly(embedding=core.TokenEmbedding(V, D), encoder=encoder, head=head or core.Hidden()))


def decoder_only(scheme: str = "sinusoidal", mask: core.Mask | None = None, n_kv_heads: int = 2) -> core.DecoderOnly:
    layers = [encoder_layer(n_kv_heads=n_kv_heads) for _ in range(2)]
    decoder = core.Decoder(layers, positions=SCHEMES[scheme](), mask=mask)
    return shaken(
        core.DecoderOnly(embedding=core.TokenEmbedding(V, D), decoder=decoder, head=core.VocabularyHead(D, V))
    )


def encoder_decoder(scheme: str = "sinusoidal") -> Any:
    return shaken(
        core.EncoderDecoder(
            source_embedding=core.TokenEmbedding(V, D),
            encoder=core.Encoder([encoder_layer() for _ in range(2)], positions=core.Sinusoidal(D)),
            target_embedding=core.TokenEmbedding(V, D),
            decoder=core.Decoder([decoder_layer() for _ in range(2)], positions=SCHEMES[scheme]()),
            head=core.VocabularyHead(D, V),
        )
    )


def recurrent(*, attention: bool = True, n_layers: int = 2) -> Any:
    reader = core.AdditiveAttention(D, 2 * D, 12) if attention else core.NoAttention()
    return shaken(
        core.EncoderDecoder(
            source_embedding=core.TokenEmbedding(V, D),
            encoder=core.RecurrentEncoder(D, n_layers=n_layers),
            target_embedding=core.TokenEmbedding(V, D),
            decoder=core.RecurrentDecoder(D, 2 * D, reader),
            head=core.VocabularyHead(D, V),
        )
    )


def close(got: Tensor, wanted: Tensor, tolerance: float = 1e-12) -> None:
    torch.testing.assert_close(got, wanted, rtol=tolerance, atol=tolerance)
