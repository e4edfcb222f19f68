"""Experiments that set recurrent models beside attention: recall over distance, and reversing by length."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import core
from .experiments import Arm, Measurement, experiment, numbered, scaled
from .models import N_SYMBOLS, Reader, encoder, recurrent, reversing_loss, symbols, train, transformer, written_accuracy

DISTANCES = (5, 20, 60)
LONGEST, LENGTHS = 12, (4, 8, 12)
WIDTH, BATCH = 32, 32


@experiment("distance", x="distance", y="recall", ticks=DISTANCES)
def distance(seed: int, effort: float) -> Measurement:
    """GRU, LSTM and one layer of attention recall the first symbol of a sequence."""
    readers: dict[str, Callable[[], nn.Module]] = {
        "gru": partial(nn.GRU, WIDTH, WIDTH, batch_first=True),
        "lstm": partial(nn.LSTM, WIDTH, WIDTH, batch_first=True),
        "attention": partial(encoder, WIDTH),
    }
    arms = {}
    for name, reader in readers.items():
        shares = [recall(reader, seed, length, scaled(300, effort)) for length in DISTANCES]
        arms[name] = Arm(numbered("recall", DISTANCES, shares), shares)
    return arms


def recall(reader: Callable[[], nn.Module], seed: int, length: int, steps: int) -> float:
    """Train a reader to recall the symbol that stands `length` symbols back; return the share of right answers."""
    torch.manual_seed(seed)
    model, draws = Reader(N_SYMBOLS, reader(), N_SYMBOLS, WIDTH, at=-1), torch.Generator().manual_seed(seed)

    def loss(_: int) -> Tensor:
        tokens = symbols(BATCH, length + 1, draws)
        return F.cross_entropy(model(tokens), tokens[:, 0])

    train(model, loss, steps)
    tokens = symbols(512, length + 1, torch.Generator().manual_seed(1_000 + seed))
    with torch.no_grad():
        return float((model(tokens).argmax(-1) == tokens[:, 0]).float().mean())


@experiment("length", x="length", y="written", ticks=LENGTHS)
def length(seed: int, effort: float) -> Measurement:
    """Three generations reverse sources of mixed lengths."""
    generations: dict[str, Callable[[], Any]] = {
        "one-vector": partial(recurrent, core.NoAttention()),
        "additive": recurrent,
        "transformer": transformer,
    }
    arms = {}
    for name, build in generations.items():
        torch.manual_seed(seed)
        model, draws = build(), torch.Generator().manual_seed(seed)

        def loss(step: int, model: Any = model, draws: Any = draws) -> Tensor:
            return reversing_loss(model, symbols(BATCH, 1 + 5 * (step - 1) % LONGEST, draws))

        train(model, loss, scaled(600, effort))
        shares = [
            written_accuracy(model, symbols(128, n, torch.Generator().manual_seed(1_000 + seed))) for n in LENGTHS
        ]
        arms[name] = Arm(numbered("length", LENGTHS, shares), shares)
    return arms
