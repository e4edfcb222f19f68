"""Tiny runs of several tasks on data made here, whose losses are kept in reference_losses.json.

A change of data, sampling, initial weights, masks, losses, optimizers or schedules changes them. A change that is meant
to do that writes them again:

    python tests/training/reference_runs.py
"""

from __future__ import annotations

import json
import math
import platform
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch

import heedful

LOSSES = Path(__file__).with_name("reference_losses.json")
STEPS = 5
SETTINGS: dict[str, Any] = {"device": "cpu", "progress": False, "training": {"steps": STEPS, "log_every": 1, "seed": 7}}


ACTORS = {"고양이가": "the cat", "개가": "the dog", "아이가": "the child", "선생님이": "the teacher"}
OBJECTS = {"책을": "a book", "물을": "water", "노래를": "a song", "사진을": "a picture"}
EVENTS = {"봤어요.": "saw {}.", "찾았어요.": "found {}.", "좋아해요?": "likes {}?", "가져왔어요.": "brought {}."}


def sentences() -> list[tuple[str, str]]:
    """Return 64 Korean sentences and their translations."""
    parts = product(ACTORS.items(), OBJECTS.items(), EVENTS.items())
    return [(f"{a} {b} {c}", f"{actor} {event.format(item)}") for (a, actor), (b, item), (c, event) in parts]


def series() -> dict[str, list[float]]:
    """Return two channels: waves with a trend, and with a weekly pattern."""
    steps = range(400)
    return {
        "wave": [math.sin(step / 5) + step / 200 for step in steps],
        "week": [float(step % 7) - 0.5 * (step % 2) for step in steps],
    }


def images() -> list[tuple[Any, str]]:
    """Return gray images with a bright row or a bright column."""
    random = np.random.default_rng(3)
    items = []
    for number in range(80):
        pixels = random.integers(0, 60, (12, 12), dtype=np.uint8)
        place = int(random.integers(12))
        (pixels if number % 2 else pixels.T)[place] += 180
        items.append((pixels, "row" if number % 2 else "column"))
    return items


def translator(out: Path) -> None:
    tokenizer = {"vocab_size": 500}
    heedful.train(
        "translation", sentences(), out=out, source="ko", target="en", preset="tiny", tokenizer=tokenizer, **SETTINGS
    )


def language_model(out: Path) -> None:
    heedful.train("language-model", [english for _, english in sentences()] * 4, out=out, preset="tiny", **SETTINGS)


def classifier(out: Path) -> None:
    items = [(english, "question" if english.endswith("?") else "statement") for _, english in sentences()]
    heedful.train("classification", items, out=out, preset="tiny", **SETTINGS)


def image_classifier(out: Path) -> None:
    heedful.train("images", images(), out=out, **SETTINGS)


def forecaster(out: Path) -> None:
    heedful.train("forecasting", series(), out=out, horizon=7, **SETTINGS)


RUNS: dict[str, Callable[[Path], None]] = {
    "translator": translator,
    "language model": language_model,
    "classifier": classifier,
    "image classifier": image_classifier,
    "forecaster": forecaster,
}


def losses(name: str, out: Path) -> list[float]:
    """Train a model, with one thread, and return the loss of each step."""
    RUNS[name](out)
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    return [row["loss"] for row in rows if "loss" in row and "step" in row][:STEPS]


def machine() -> dict[str, str]:
    """Return what decides the order in which numbers are added: torch, and the processor that its kernels suit."""
    names = ("vendor_id", "cpu family", "model\t")
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    processor = [
        next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "") for name in names
    ]
    return {
        "torch": torch.__version__,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "processor": " ".join([platform.machine(), *processor]),
    }


def main() -> None:
    """Write the losses of all runs on this machine."""
    torch.set_num_threads(1)
    values: dict[str, Any] = {"machine": machine(), "losses": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name in RUNS:
            values["losses"][name] = losses(name, Path(folder) / name)
    LOSSES.write_text(json.dumps(values, indent=1) + "\n")


if __name__ == "__main__":
    main()
