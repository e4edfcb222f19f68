"""Time and memory of one training step of a decoder as length, width, depth and vocabulary grow, one at a time."""

from __future__ import annotations

import math
import statistics
import time
from pathlib import Path
from typing import Any

import torch

from _measure import table
from _training_loops import HeedfulLoop, random_text
from _training_setup import Bench

BATCH = 8
BASE = {"length": 1024, "width": 512, "depth": 6, "vocabulary": 16_384}
GROWN = {
    "length": [128 << i for i in range(7)],
    "width": [128 << i for i in range(5)],
    "depth": [2 << i for i in range(5)],
    "vocabulary": [1024 << i for i in range(8)],
}
SMALL = {"length": [16, 32], "width": [64, 128], "depth": [1, 2], "vocabulary": [256, 512]}
SMALL_BASE = {"length": 16, "width": 64, "depth": 1, "vocabulary": 256}
# Ways of a step: the engine, and whether the layers' activations are computed again instead of kept.
WAYS = {"graph": ("graph", False), "eager": ("eager", False), "eager, recomputed": ("eager", True)}
LOOKS = {"graph": ("#0072B2", "o"), "eager": ("#000000", "D"), "eager, recomputed": ("#D55E00", "s")}  # Okabe and Ito
FIGURES = {"milliseconds": "milliseconds", "gigabytes": "gigabytes at the peak"}
WARM_UP, STEPS = 5, 5


def cost(bench: Bench) -> dict[str, Any]:
    """A row for every size, in every way that the device has."""
    base, grown = (SMALL_BASE, SMALL) if bench.small else (BASE, GROWN)
    ways = {name: how for name, how in WAYS.items() if how[0] in bench.captured}
    rows = []
    for what, sizes in grown.items():
        for size in sizes:
            for name, (engine, recompute) in ways.items():
                row = {"what": what, "size": size, "name": name}
                rows.append(row | _measured(bench, base | {what: size}, engine, recompute=recompute))
        print(f"measured: {what}, {sizes[0]:,} to {sizes[-1]:,}", flush=True)
    result = {"base": base, "batch": BATCH, "precision": bench.precision, "rows": rows}
    result["exponents"] = _exponents(rows)
    _show(result)
    return result


def _measured(bench: Bench, sizes: dict[str, int], engine: str, *, recompute: bool) -> dict[str, Any]:
    """The median step, and the most of a GPU's memory that was in use; None where there was not enough."""
    width, on_gpu = sizes["width"], bench.device.type == "cuda"
    model = {
        "family": "gpt2",
        "vocab_size": sizes["vocabulary"],
        "d_model": width,
        "n_heads": max(1, width // 64),
        "d_ff": 4 * width,
        "n_layers": sizes["depth"],
        "max_length": sizes["length"],
        **dict.fromkeys(("dropout", "embedding_dropout", "attention_dropout"), 0.0),
    }
    training = {
        "engine": engine,
        "precision": bench.precision,
        "device": bench.device.type,
        "activation_checkpointing": recompute,
    }
    folder, loop = bench.folder(), None
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    try:
        loop = HeedfulLoop(*random_text(model, BATCH, folder, training), folder)
        loop.steps(WARM_UP)
        seconds = []
        for _ in range(STEPS):
            began = time.perf_counter()
            loop.steps(1)
            seconds.append(time.perf_counter() - began)
        peak = torch.cuda.max_memory_allocated() / 1e9 if on_gpu else None
    except torch.OutOfMemoryError:
        return {"milliseconds": None, "gigabytes": None}
    finally:
        if loop is not None:
            loop.close()
    return {"milliseconds": 1e3 * statistics.median(seconds), "gigabytes": peak}


def series(rows: list[dict[str, Any]], what: str, name: str, figure: str) -> dict[int, float]:
    """A figure by size, where it was measured."""
    own = [row for row in rows if (row["what"], row["name"]) == (what, name)]
    return {row["size"]: row[figure] for row in own if row[figure] is not None}


def exponent(points: dict[int, float]) -> float | None:
    """The slope of the straight line through the logarithms, by least squares."""
    if len(points) < 2:
        return None
    xs, ys = [math.log(size) for size in points], [math.log(value) for value in points.values()]
    return statistics.linear_regression(xs, ys).slope


def _exponents(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Over all sizes, and over the three largest, where what does not grow weighs least."""
    found = []
    for what in dict.fromkeys(row["what"] for row in rows):
        for name in dict.fromkeys(row["name"] for row in rows):
            for figure in FIGURES:
                points = series(rows, what, name, figure)
                end = dict(sorted(points.items())[-3:])
                found.append(
                    {"what": what, "name": name, "figure": figure, "all": exponent(points), "end": exponent(end)}
                )
    return found


def _show(result: dict[str, Any]) -> None:
    lines = []
    for row in result["rows"]:
        cells = ["too large" if row[figure] is None else f"{row[figure]:,.2f}" for figure in FIGURES]
        if row["milliseconds"] is not None and row["gigabytes"] is None:
            cells[1] = "needs a GPU"
        lines.append([row["what"], row["name"], f"{row['size']:,}", *cells])
    print("\n" + table(["what grows", "step", "size", "ms a step", "GB at the peak"], lines, n_left=2))
    lines = [
        [row["what"], row["name"], row["figure"], *("–" if row[k] is None else f"{row[k]:.2f}" for k in ("all", "end"))]
        for row in result["exponents"]
    ]
    print("\n" + table(["what grows", "step", "figure", "exponent", "of the three largest"], lines, n_left=3))


def draw(result: dict[str, Any], path: Path) -> None:
    """One picture: time above, memory below, a column for each thing that grows; both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows, columns = result["rows"], list(dict.fromkeys(row["what"] for row in result["rows"]))
    figures = [figure for figure in FIGURES if any(row[figure] is not None for row in rows)]
    style = {"axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "heedful"}
    with plt.rc_context(style):
        shape = {"figsize": (3.4 * len(columns), 3.1 * len(figures)), "layout": "constrained"}
        picture, panels = plt.subplots(len(figures), len(columns), sharey="row", squeeze=False, **shape)
        for line, figure in zip(panels, figures, strict=True):
            for axes, what in zip(line, columns, strict=True):
                _panel(axes, result, what, figure)
            line[0].set_ylabel(FIGURES[figure])
        panels[0][0].legend(frameon=False, fontsize=9)
        base = ", ".join(f"{what} {size:,}" for what, size in result["base"].items())
        picture.suptitle(
            f"One training step, {result['batch']} sequences. Elsewhere: {base}; exponents of the three largest",
            x=0.01,
            ha="left",
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        picture.savefig(path, metadata={"Date": None})
        plt.close(picture)
    print(f"wrote {path}")


def _panel(axes: Any, result: dict[str, Any], what: str, figure: str) -> None:
    slopes = []
    for name in dict.fromkeys(row["name"] for row in result["rows"]):
        colour, marker = LOOKS[name]
        points = series(result["rows"], what, name, figure)
        axes.plot(*zip(*points.items(), strict=True), color=colour, marker=marker, markersize=4, label=name)
        [row] = [r for r in result["exponents"] if (r["what"], r["name"], r["figure"]) == (what, name, figure)]
        slopes.append("–" if row["end"] is None else f"{row['end']:.2f}")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel(what)
    axes.set_title(f"exponents {', '.join(slopes)}", loc="left", fontsize=9, color="#555555")
    axes.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.yaxis.set_minor_formatter(lambda value, _: f"{value:,g}" if f"{value:e}"[0] in "25" else "")
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
