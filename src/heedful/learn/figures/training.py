"""The figure of training: the toy translator under three settings, with its translations along the way."""

from collections.abc import Callable
from functools import cache
from typing import Any

from ...core import EncoderDecoder
from ...generation import generate
from ...training import TrainingConfig
from ...training.optimizers import schedule
from ..toy import toy_ids, toy_pairs, toy_text, train_toy
from . import figure

STEPS, WARMUP, D_MODEL = 100, 40, 64
PEAK = (D_MODEL * WARMUP) ** -0.5  # of the paper's schedule
SNAPSHOTS = (1, 5, 10, 15, 20, 30, 40, 60, 80, 100)
SENTENCES = ("I like money", "you love music", "we like movies")


def paper_rate(warmup: int) -> Callable[[int], float]:
    """Return the paper's learning rate for d_model 64, by the schedule that `heedful train` uses."""
    peak = (D_MODEL * warmup) ** -0.5
    config = TrainingConfig(schedule="inverse_sqrt", warmup_steps=warmup, learning_rate=peak, steps=4 * STEPS)
    return schedule(config, STEPS)


RUNS: dict[str, dict[str, Any]] = {
    "warmup": {"rate": paper_rate(WARMUP)},
    "none": {"rate": lambda step: PEAK},
    "smoothing": {"rate": paper_rate(WARMUP), "label_smoothing": 0.1},
}


@cache
def run_of(name: str) -> dict[str, Any]:
    """Train with the settings of a run; return its losses, its rates and its translations at the steps of SNAPSHOTS."""
    settings = RUNS[name]
    losses: list[float] = []
    translations: list[list[str]] = []

    def on_step(step: int, model: EncoderDecoder, loss: float) -> None:
        losses.append(round(loss, 3))
        if step in SNAPSHOTS:
            answers = generate(model, [toy_ids(sentence) for sentence in SENTENCES], max_new_tokens=8)
            translations.append([toy_text(best.tokens) for best, *_ in answers])

    train_toy(STEPS, on_step=on_step, **settings)
    rates = [round(settings["rate"](step), 5) for step in range(1, STEPS + 1)]
    return {"losses": losses, "rates": rates, "translations": translations}


@figure("training-run")
def training_run(language: str) -> dict[str, Any]:
    """Return the three runs, the sentences with their right translations, and which of them was never trained on."""
    trained = {pair.source for pair in toy_pairs()}
    pairs = toy_pairs() + toy_pairs(held_out=True)
    return {
        "steps": SNAPSHOTS,
        "sentences": [
            {
                "source": sentence,
                "right": [pair.target for pair in pairs if pair.source == sentence],
                "trained": sentence in trained,
            }
            for sentence in SENTENCES
        ],
        "runs": {name: run_of(name) for name in RUNS},
    }
