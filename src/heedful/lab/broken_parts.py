"""Experiments that take one part out of an encoder-decoder, which then learns to reverse eight symbols."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from .. import core
from .experiments import Arm, Gap, Measurement, experiment, numbered, scaled
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


def reversing_experiment(name: str, arms: Arms, *gaps: Gap) -> None:
    """Register an experiment that trains every arm from the same seed on the same data."""

    @experiment(name, *gaps)
    def measure(seed: int, effort: float) -> Measurement:
        return {arm: reversing(seed, scaled(STEPS, effort), options)[1] for arm, options in arms.items()}


reversing_experiment(
    "no-causal-mask",
    {"intact": {}, "no-mask": {"mask": core.everything()}},
    Gap("no-mask.teacher_forced", "intact.written", -0.05),
    Gap("no-mask.teacher_forced", "no-mask.written", 0.3),
    Gap("intact.written", "no-mask.written", 0.3),
)
reversing_experiment(
    "no-residual",
    {"intact": {}, "no-residual": {"residual": BareSublayer}},
    Gap("intact.written", "no-residual.written", 0.3),
)
reversing_experiment(
    "no-cross-attention",
    {"intact": {}, "no-cross": {"has_cross_attention": False}},
    Gap("intact.written", "no-cross.written", 0.5),
)


@experiment(
    "no-positions",
    Gap("intact.written", "no-positions.written", 0.3),
    Gap("intact.word_order", "no-positions.word_order", 0.01),
)
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


reversing_experiment(
    "spare-parts",
    {
        "intact": {},
        "no-norm": {"norm": nn.Identity},
        "no-scale": {"scale": 1.0},
        "no-feed-forward": {"has_feed_forward": False},
    },
    Gap("intact.written", "no-norm.written", 0.1),
    Gap("intact.written", "no-scale.written", 0.1),
    Gap("intact.written", "no-feed-forward.written", 0.1),
)
reversing_experiment(
    "heads", {"eight-heads": {"n_heads": 8}, "head": {"n_heads": 1}}, Gap("eight-heads.written", "head.written", 0.05)
)


@experiment(
    "warm-up",
    Gap("pre-norm.written", "post-norm.written", 0.3),
    Gap("post-norm-warm-up.written", "post-norm.written", 0.2),
)
def high_rate(seed: int, effort: float) -> Measurement:
    """Four and four layers at a high learning rate: pre-norm, post-norm, post-norm with warm-up."""
    kinds = {"pre-norm": (core.PreNorm, 0), "post-norm": (core.PostNorm, 0), "post-norm-warm-up": (core.PostNorm, 100)}
    return {
        name: reversing(seed, scaled(300, effort), {"n_layers": 4, "residual": residual}, warm_up(4e-3, steps))[1]
        for name, (residual, steps) in kinds.items()
    }


@experiment(
    "depth",
    Gap("pre-norm.tilt_48", "post-norm.tilt_48", 0.5),
    Gap("pre-norm.gradient_48", "bare.gradient_48", 3.0),
    Gap("bare.gradient_6", "bare.gradient_48", 3.0),
    x="layer",
    y="gradient",
)
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


@experiment(
    "batch-norm",
    Gap("batch-norm.change_2", "layer-norm.change_2", 0.05),
    Gap("batch-norm.change_2", "batch-norm.change_64", 0.05),
)
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
    source, *others = symbols(1 + 2 * (batch - 1), LENGTH, torch.Generator().manual_seed(0)).split(
        [1, *[batch - 1] * 2]
    )
    first, second = (model.train().encode(torch.cat([source, other]))[0] for other in others)
    return float((first - second).norm() / first.norm())
