"""Those probes of benchmarks/silent_failures.py that ask the parts: positions, recurrent models, norms."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from _probing import (
    COMMON,
    EXACT,
    D,
    Finding,
    H,
    Outcome,
    V,
    common_loop,
    common_table,
    refusal,
    same,
    transformers,
    translator,
)
from heedful import core


def sinusoid_exponent() -> Finding:
    """Error 1."""

    def outcome(who: str, value: Tensor) -> Outcome:
        return Outcome(who, abs(value.item() - math.sin(0.1)) < EXACT, f"{value.item():.5f}")

    return Finding(
        "A sinusoid's exponent applied twice",
        f"position 1, dimension 2 of 8: {math.sin(0.1):.5f} by the formula",
        [
            outcome(f"{COMMON} (a loop)", common_loop(1, 8)[2]),
            outcome("common code (a table)", common_table(2, 8)[1, 2]),
        ],
        [outcome("Sinusoidal", core.Sinusoidal(8).table(2)[1, 2])],
    )


def odd_width() -> Finding:
    """Error 2."""

    def outcome(who: str, make: Callable[[], Tensor]) -> Outcome:
        failed = refusal(make)
        return Outcome(who, not failed, failed or f"a table of {tuple(make().shape)}")

    return Finding(
        "An odd d_model",
        "a sinusoid table of 4 positions, d_model 7",
        [outcome(COMMON, lambda: common_table(4, 7))],
        [outcome("Sinusoidal", lambda: core.Sinusoidal(7).table(4))],
    )


def both_directions() -> Finding:
    """Error 6."""
    x, tokens = torch.randn(1, 5, D), torch.randint(V, (1, 5))
    encoder = nn.GRU(D, D, batch_first=True, bidirectional=True)
    decoder = nn.GRU(D, 2 * D, batch_first=True)
    failed = refusal(lambda: decoder(x, encoder(x)[1]))

    model = translator("recurrent", attention="none")
    logits = model(tokens, tokens)
    logits[:, 0].square().sum().backward()
    there, back = (
        sum(weight.grad.abs().sum().item() for weight in grus.parameters())
        for grus in (model.encoder.forwards, model.encoder.backwards)
    )
    words = f"logits {tuple(logits.shape)}, gradients of {there:.2g} and {back:.2g} in the two directions"
    return Finding(
        "A bidirectional encoder's last state in a decoder of twice the width",
        "the state handed on, and one step of the decoder",
        [Outcome(COMMON, not failed, failed)],
        [Outcome("recurrent family", min(there, back) > 0, words)],
    )


def final_norm() -> Finding:
    """Error 10."""
    x = 3 * torch.randn(2, 5, D)

    def outcome(who: str, encoder: nn.Module) -> Outcome:
        variance = encoder(x).var(dim=-1, unbiased=False)
        norms = sum(isinstance(module, nn.LayerNorm | core.LayerNorm) for module in encoder.modules())
        words = f"variance {variance.min():.2f} to {variance.max():.2f}, {norms} norms in 2 layers"
        return Outcome(who, bool(((variance - 1).abs() < 0.01).all()), words)

    layer = nn.TransformerEncoderLayer(D, H, 32, dropout=0.0, batch_first=True, norm_first=True)
    return Finding(
        "Pre-norm without its final norm",
        "the variance over the features of an encoder's output, which a norm makes 1",
        [
            outcome(
                "nn.TransformerEncoder, norm_first, no norm handed in",
                nn.TransformerEncoder(layer, 2, enable_nested_tensor=False),
            ),
            outcome("nn.Transformer, norm_first", transformers(norm_first=True)[0].encoder),
            outcome("nn.Transformer, default (post)", transformers()[0].encoder),
        ],
        [
            outcome('norm="pre"', translator(norm="pre").encoder),
            outcome("default (post)", translator().encoder),
        ],
    )


def long_input() -> Finding:
    """Error 12."""
    x, pos, exact = torch.zeros(1, 6000, D), torch.arange(6000), common_table(6000, D)
    sinusoidal, learned = common_table(5000, D), nn.Embedding(5000, D)

    def outcome(who: str, place: Callable[[], Tensor]) -> Outcome:
        """Right is to serve the formula's numbers, or to refuse on purpose and name both lengths."""
        if failed := refusal(place):
            return Outcome(who, all(word in failed for word in ("ValueError", "6000", "5000")), failed)
        return Outcome(who, *same((place()[0], exact)))

    return Finding(
        "Input longer than the position table",
        "6000 tokens, tables of 5000",
        [
            outcome(f"{COMMON} (sinusoidal)", lambda: x + sinusoidal[:6000]),
            outcome("common code (learned)", lambda: x + learned(pos)),
        ],
        [
            outcome("Sinusoidal", lambda: core.Encoder([], positions=core.Sinusoidal(D, 5000))(x)),
            outcome("Learned", lambda: core.Encoder([], positions=core.Learned(5000, D))(x)),
        ],
    )
