"""Experiments on trained models: calibration, the patches of prices, and the shipped translator without parts."""

import math
from collections.abc import Sequence
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import core
from ..demo import Grammar
from ..lens import ablate, record
from ..tasks import load
from .experiments import Arm, Measurement, experiment, scaled
from .models import N_SYMBOLS, encoder, shifted, symbols, train, transformer

N_SENTENCES = 100
N_FIXED, NOISE, LENGTH, BATCH = 256, 0.2, 8, 32
CONTEXT, HORIZON, PATCH, STRIDE = 30, 5, 6, 3
WIDTH = 32


@experiment("label-smoothing")
def label_smoothing(seed: int, effort: float) -> Measurement:
    """Learn few noisy sources by heart, with hard and with smoothed labels."""
    arms = {}
    for name, amount in {"hard": 0.0, "smoothed": 0.1}.items():
        torch.manual_seed(seed)
        model, draws = transformer(), torch.Generator().manual_seed(seed)
        sources = noisy(symbols(N_FIXED, LENGTH, draws), draws)

        def loss(step: int, model: Any = model, sources: Any = sources, amount: float = amount) -> Tensor:
            rows = torch.arange((step - 1) * BATCH, step * BATCH) % N_FIXED
            source, target = (each[rows] for each in sources)
            logits = model(source, shifted(target)).flatten(0, 1)
            return F.cross_entropy(logits, target.flatten(), label_smoothing=amount)

        curve = train(model, loss, scaled(400, effort))
        test = torch.Generator().manual_seed(1_000 + seed)
        arms[name] = Arm(calibration(model, *noisy(symbols(256, LENGTH, test), test)), curve)
    return arms


def noisy(source: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return sources and targets; a fifth of the target symbols are drawn anew, so that no model can be sure."""
    target = source.flip(1)
    drawn = torch.randint(N_SYMBOLS, target.shape, generator=generator)
    return source, torch.where(torch.rand(target.shape, generator=generator) < NOISE, drawn, target)


@torch.no_grad()
def calibration(model: nn.Module, source: Tensor, target: Tensor) -> dict[str, float]:
    """Return accuracy, mean confidence, and the expected calibration error over ten bins of confidence."""
    confidence, answers = model(source, shifted(target)).softmax(dim=-1).flatten(0, 1).max(dim=-1)
    return {
        "accuracy": float((right := (answers == target.flatten()).float()).mean()),
        "confidence": float(confidence.mean()),
        "calibration_error": calibration_error(confidence, right),
    }


def calibration_error(confidence: Tensor, right: Tensor, n_bins: int = 10) -> float:
    """Return the mean difference of confidence and accuracy in bins of equal width, weighted by their sizes."""
    bins = (confidence * n_bins).long().clamp(max=n_bins - 1)
    gaps = torch.zeros(n_bins).index_add(0, bins, confidence - right)
    return float(gaps.abs().sum() / len(confidence))


@experiment("patches", x="patch", y="share")
def patches(seed: int, effort: float) -> Measurement:
    """Forecast prices from nine patches; compare attention to each with the harm of hiding it."""
    torch.manual_seed(seed)
    model = core.EncoderOnly(
        embedding=core.SeriesEmbedding(WIDTH, patch_length=PATCH, stride=STRIDE),
        encoder=encoder(WIDTH, n_layers=2),
        head=core.ForecastHead(core.MeanPool(), WIDTH, horizon=HORIZON),
    )
    draws, test = torch.Generator().manual_seed(seed), torch.Generator().manual_seed(1_000 + seed)
    train(model, lambda _: forecast_error(model, prices(64, draws)), scaled(400, effort))
    series = prices(512, test)
    with torch.no_grad(), record(model) as recording:
        error = float(forecast_error(model, series))
    weights = torch.stack(list(recording.encoder.values()))  # (layers, B, H, P, P)
    looked = weights.mean(dim=(0, 1, 2, 3))
    n_patches = len(looked)
    with torch.no_grad():
        harm = torch.tensor([float(forecast_error(model, series, hidden)) - error for hidden in range(n_patches)])
    places = torch.arange(n_patches).float()
    reach = (weights * (places - places[:, None]).abs()).sum(dim=-1).mean(dim=(1, 3)).flatten()  # a number each head
    shares = {"attention": looked, "masking": harm.clamp(min=0) / harm.clamp(min=0).sum().clamp(min=1e-9)}
    scores = {
        "attention": {"error": error, "nearest_head": float(reach.min()), "farthest_head": float(reach.max())},
        "masking": {"agreement": rank_correlation(looked, harm)},
        "chance": {"agreement": 0.0},
    }
    return {name: Arm(values, shares[name].tolist() if name in shares else ()) for name, values in scores.items()}


def prices(batch: int, generator: torch.Generator) -> Tensor:
    """Draw the changes of prices (B, CONTEXT + HORIZON, 1): a trend that turns, a cycle of ten days, and noise."""
    days = torch.arange(CONTEXT + HORIZON).float()
    phase = 2 * math.pi * torch.rand(batch, 1, generator=generator)
    trend = torch.randn(batch, len(days), generator=generator).cumsum(dim=1) / 4
    noise = torch.randn(batch, len(days), generator=generator) / 4
    return (trend + torch.sin(2 * math.pi * days / 10 + phase) + noise)[..., None]


def forecast_error(model: core.EncoderOnly, series: Tensor, hidden: int | None = None) -> Tensor:
    """Return the mean squared error of the forecasts; no token sees the patch `hidden`."""
    x, _ = model.embedding(series[:, :CONTEXT])
    real = torch.ones(x.shape[:2], dtype=torch.bool)
    if hidden is not None:
        real[:, hidden] = False
    keep, positions = core.padding(real), torch.arange(x.shape[1])
    forecast = model.head(model.encoder(x, keep, positions=positions), keep)
    return F.mse_loss(forecast, series[:, CONTEXT:])


def rank_correlation(first: Tensor, second: Tensor) -> float:
    """Return Spearman's rank correlation."""
    ranks = torch.stack([values.argsort().argsort().double() for values in (first, second)])
    return float(torch.corrcoef(ranks)[0, 1])


@experiment("feed-forward")
def feed_forward(seed: int, effort: float) -> Measurement:
    """The shipped translator with and without its feed-forwards."""
    return ablated(load("ko-en"), seed, scaled(N_SENTENCES, effort))


def ablated(translator: Any, seed: int, n_sentences: int) -> Measurement:
    """Return the share of exact translations with all feed-forwards, without one of each stack, and without any."""
    examples = list(islice(Grammar("demo", seed).sample(n_sentences, "T1"), n_sentences))
    sources = [example.korean for example in examples]
    last = [f"{stack}.{len(getattr(translator.module, stack).layers) - 1}" for stack in ("encoder", "decoder")]
    names: dict[str, Sequence[str]] = {
        "intact": [], "no-last-feed-forward": last, "no-feed-forward": ["encoder", "decoder"]
    }  # fmt: skip
    arms = {}
    for name, parts in names.items():
        with ablate(translator, feed_forward=parts):
            answers = translator.predict(sources)
        right = [answer in example.accepted for answer, example in zip(answers, examples, strict=True)]
        arms[name] = Arm({"exact": sum(right) / len(right)})
    return arms
