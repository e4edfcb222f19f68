"""Experiments that take one part out of an encoder-decoder, which then learns to reverse eight symbols."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from .. import core
from .experiments import Arm, Measurement, experiment, numbered, scaled
from .models import (
    BareSublayer,
    Rate,
    reversing_loss,
    symbols,
    teacher_forced_accuracy,
    train,
    transformer,
    warm_up,
    without_positions,
    written_accuracy,
)

LENGTH, BATCH, TEST, STEPS = 8, 32, 256, 400
DEPTHS = (6, 24, 48)
CAT_CAUGHT_MOUSE, MOUSE_CAUGHT_CAT = [0, 1, 2, 0, 3], [0, 3, 2, 0, 1]  # the cat caught the mouse: five words as ids

Options = Mapping[str, Any]  # of `transformer`
Arms = Mapping[str, Options]


def reversing(seed: int, steps: int, options: Options, rate: Rate | None = None) -> tuple[core.EncoderDecoder, Arm]:
    """Train a model to reverse; return it with its scores on new sources. The seed decides weights and data."""
    torch.manual_seed(seed)
    model = transformer(**options)
    draws, test = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(1_000 + seed)
    curve = train(model, lambda _: reversing_loss(model, symbols(BATCH, LENGTH, draws)), steps, rate)
    sources = symbols(TEST, LENGTH, test)
    scores = {"teacher_forced": teacher_forced_accuracy(model, sources), "written": written_accuracy(model, sources)}
    return model, Arm(scores, curve)


REVERSING: dict[str, Arms] = {  # experiments that train every arm from the same seed on the same data
    "no-causal-mask": {"intact": {}, "no-mask": {"mask": core.everything()}},
    "no-residual": {"intact": {}, "no-residual": {"residual": BareSublayer}},
    "no-cross-attention": {"intact": {}, "no-cross": {"has_cross_attention": False}},
    "spare-parts": {
        "intact": {},
        "no-norm": {"norm": nn.Identity},
        "no-scale": {"scale": 1.0},
        "no-feed-forward": {"has_feed_forward": False},
    },
    "heads": {"eight-heads": {"n_heads": 8}, "head": {"n_heads": 1}},
}


def reverse_all(arms: Arms, seed: int, effort: float) -> Measurement:
    """Train every arm to reverse."""
    return {arm: reversing(seed, scaled(STEPS, effort), options)[1] for arm, options in arms.items()}


for name, arms in REVERSING.items():
    experiment(name)(partial(reverse_all, arms))


@experiment("no-positions")
def no_positions(seed: int, effort: float) -> Measurement:
    """Attention without positions, and two word orders of one sentence."""
    arms = {}
    for name, options in {"intact": {}, "no-positions": {"positions": without_positions}}.items():
        model, arm = reversing(seed, scaled(STEPS, effort), options)
        arms[name] = Arm({**arm.scores, "word_order": word_order(model)}, arm.curve)
    return arms


@torch.no_grad()
def word_order(model: core.EncoderDecoder) -> float:
    """Return how far apart the encoder's mean vectors of two word orders are, relative to their length."""
    first, second = model.encode(torch.tensor([CAT_CAUGHT_MOUSE, MOUSE_CAUGHT_CAT])).mean(dim=1)
    return float((first - second).norm() / first.norm())


@experiment("warm-up")
def high_rate(seed: int, effort: float) -> Measurement:
    """Four and four layers at a high learning rate: pre-norm, post-norm, post-norm with warm-up."""
    kinds = {"pre-norm": (core.PreNorm, 0), "post-norm": (core.PostNorm, 0), "post-norm-warm-up": (core.PostNorm, 100)}
    return {
        name: reversing(seed, scaled(300, effort), {"n_layers": 4, "residual": residual}, warm_up(4e-3, steps))[1]
        for name, (residual, steps) in kinds.items()
    }


@experiment("depth", x="layer", y="gradient")
def depth(seed: int, effort: float) -> Measurement:
    """The gradient that reaches each layer of an untrained encoder."""
    kinds: Arms = {
        "pre-norm": {"residual": core.PreNorm},
        "post-norm": {"residual": core.PostNorm},
        "no-residual": {"residual": BareSublayer},
        "bare": {"residual": BareSublayer, "norm": nn.Identity},
    }
    arms = {}
    for name, options in kinds.items():
        curves = [gradients(seed, n_layers, options) for n_layers in DEPTHS]
        scores = numbered("gradient", DEPTHS, (curve[0] for curve in curves))
        arms[name] = Arm({**scores, "tilt_48": curves[-1][0] - curves[-1][-1]}, curves[-1])
    return arms


def gradients(seed: int, n_layers: int, options: Options) -> list[float]:
    """Return the decimal logarithm of the gradient's norm at each encoder layer of an untrained model."""
    torch.manual_seed(seed)
    model = transformer(n_layers=n_layers, **options)
    reversing_loss(model, symbols(BATCH, LENGTH, torch.Generator().manual_seed(seed))).backward()
    layers: Any = model.encoder.layers
    norms: list[Tensor] = [layer.feed_forward.sublayer.up_proj.weight.grad.norm() for layer in layers]
    return [float(norm.clamp(min=1e-30).log10()) for norm in norms]


@experiment("batch-norm")
def batch_norm(seed: int, effort: float) -> Measurement:
    """LayerNorm and BatchNorm: accuracy, and what the rest of the batch does to a source."""
    arms = {}
    norms: dict[str, Any] = {"layer-norm": core.LayerNorm, "batch-norm": core.BatchNorm}
    for name, norm in norms.items():
        torch.manual_seed(seed)
        changes = {f"change_{batch}": company(transformer(norm=norm), batch) for batch in (64, 8, 2)}
        arm = reversing(seed, scaled(STEPS, effort), {"norm": norm})[1]
        arms[name] = Arm({**arm.scores, **changes}, arm.curve)
    return arms


@torch.no_grad()
def company(model: core.EncoderDecoder, batch: int) -> float:
    """Return how much the vectors of one source change with the other sources of its batch, in training mode."""
    rows = symbols(2 * batch - 1, LENGTH, torch.Generator().manual_seed(0))
    batches = rows[:batch], torch.cat([rows[:1], rows[batch:]])
    first, second = (model.train().encode(sources)[0] for sources in batches)
    return float((first - second).norm() / first.norm())
