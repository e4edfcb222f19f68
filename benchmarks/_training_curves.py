"""Whether a captured or compiled run learns what the eager one does: loss by step, over a few seeds."""

from __future__ import annotations

import math
import statistics
from typing import Any

import torch

from _measure import table
from _training_loops import HeedfulLoop
from _training_setup import Bench
from heedful.tasks.language_model.task import LanguageModelTask
from heedful.tasks.run import AnyTask, Files
from heedful.tasks.translation.task import TranslationTask
from heedful.training import Event, Trained

STEPS, POINTS = 300, 6
EAGER = "eager"
Curves = dict[str, list[list[float]]]  # by engine, for each seed, the loss at each point


def curves(bench: Bench) -> dict[str, Any]:
    """Sentences in many shapes, eager and captured; text in one shape, which is quickly compiled, with every engine."""
    pairs, text = "multi30k-en-de-small", "tinyshakespeare"
    shown = {
        pairs: _curves(bench, TranslationTask(), pairs, bench.pairs(), leave_out=("compile",)),
        text: _curves(bench, LanguageModelTask(), text, Files((bench.tinyshakespeare(),))),
    }
    return {"steps": _steps(bench), "jobs": {name: _compared(name, bench, found) for name, found in shown.items()}}


def _steps(bench: Bench) -> int:
    return 2 * POINTS if bench.small else STEPS


def _curves(bench: Bench, task: AnyTask, recipe: str, files: Files, leave_out: tuple[str, ...] = ()) -> Curves:
    """The data is read once; every run begins anew."""
    steps = _steps(bench)
    changes = {"steps": steps, "epochs": None, "log_every": steps // POINTS, "device": bench.device.type}
    config = task.config_class.from_dict(bench.settings(recipe))
    data, _ = task.prepare(config, files, bench.folder())
    found: Curves = {}
    for engine in bench.captured:
        if engine in leave_out:
            continue
        for seed in range(bench.seeds):
            training = config.training.changed(**changes, engine=engine, seed=seed)
            losses: list[float] = []

            def note(event: Event, losses: list[float] = losses) -> None:
                if isinstance(event, Trained):
                    losses.append(event.nll)

            torch.manual_seed(seed)
            job = task.bind(config.changed(training=training), data)
            loop = HeedfulLoop(job, training, bench.folder(), [note])
            loop.steps(steps)
            loop.close()
            found.setdefault(engine, []).append(losses)
            print(f"{recipe}, {engine}, seed {seed}: {', '.join(f'{loss:.4f}' for loss in losses)}", flush=True)
    return found


def _compared(name: str, bench: Bench, found: Curves) -> dict[str, Any]:
    """Means over the seeds, and how far an engine's lies from the eager one's in standard deviations over seeds."""
    every = _steps(bench) // POINTS
    lines, rows = [], []
    for point in range(POINTS):
        at = {engine: [losses[point] for losses in seeds] for engine, seeds in found.items()}
        spread = math.sqrt(statistics.mean(_variance(values) for values in at.values()))
        for engine, values in at.items():
            mean = statistics.mean(values)
            apart = mean - statistics.mean(at[EAGER]) if EAGER in at else None
            row = {"step": every * (point + 1), "engine": engine, "losses": values, "mean": mean, "seed_spread": spread}
            cells = [str(row["step"]), engine, f"{mean:.4f}", f"{min(values):.4f} to {max(values):.4f}", "", ""]
            if apart is not None and engine != EAGER:
                row["apart"] = apart
                cells[4:] = [f"{apart:+.4f}", f"{apart / spread:+.2f}" if spread else "–"]
            rows.append(row)
            lines.append(cells)
    header = ["step", "engine", "mean loss", "lowest to highest", "from eager", "in sd over seeds"]
    print(f"\n{name}: loss per token over the {every} steps before, without smoothing, {bench.seeds} seeds")
    print(table(header, lines, n_left=2))
    return {"rows": rows}


def _variance(values: list[float]) -> float:
    return statistics.variance(values) if len(values) > 1 else 0.0
