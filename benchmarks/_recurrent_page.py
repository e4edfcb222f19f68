"""What benchmarks/recurrent.py shows: its tables, its sentences and its picture, all from the measured figures."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

from _measure import machine_in_words, table, write

Result = dict[str, Any]

GRU, ADDITIVE = "GRU", "GRU with additive attention"
FUSED, KEPT, LAYER = "attention, fused kernel", "attention, weights kept", "encoder layer"
REFERENCE = 512  # tokens, where the models are compared in detail

# Colours from Okabe and Ito's set, which stay apart for every kind of colour vision.
LOOKS = {
    GRU: ("GRU", "#D55E00", "o"),
    ADDITIVE: ("GRU with\nadditive attention", "#CC79A7", "v"),
    FUSED: ("attention, fused", "#0072B2", "s"),
    KEPT: ("attention,\nweights kept", "#000000", "D"),
    LAYER: ("encoder layer", "#009E73", "^"),
}


def series(result: Result, model: str, figure: str) -> dict[int, float]:
    """A model's figure by length."""
    return {row["length"]: row[figure] for row in result["rows"] if row["model"] == model}


def per_token_and_pair(kept: dict[int, float]) -> tuple[float, float]:
    """The bytes of a·n + b·n² that go through the first and the last length: a, b."""
    first, last = min(kept), max(kept)
    per_pair = (kept[last] / last - kept[first] / first) / (last - first)
    return kept[first] / first - per_pair * first, per_pair


def crossings(ours: dict[int, float], theirs: dict[int, float]) -> list[float]:
    """The lengths where one passes the other, on the straight lines between points of the log-log picture."""
    lengths = sorted(ours.keys() & theirs.keys())
    gaps = [math.log(ours[n] / theirs[n]) for n in lengths]
    found = []
    for (n, gap), (following, new_gap) in pairwise(zip(lengths, gaps, strict=True)):
        if (gap > 0) != (new_gap > 0):
            found.append(n * (following / n) ** (gap / (gap - new_gap)))
    return found


def tables(result: Result) -> dict[str, str]:
    """All figures for people, by name."""
    return {
        "reference": _reference_table(result),
        "time": _growth_table(result, "milliseconds", lambda ms: f"{ms:,.1f}" if ms < 100 else f"{ms:,.0f}"),
        "memory": _growth_table(result, "kept_bytes", lambda kept: f"{kept / 1e6:,.1f}"),
        "crossings": _crossing_table(result),
        "batches": _batch_table(result),
    }


def _reference_table(result: Result) -> str:
    def cells(row: dict[str, Any]) -> list[str]:
        per_token, per_pair = per_token_and_pair(series(result, row["model"], "kept_bytes"))
        return [
            row["model"],
            f"{row['milliseconds']:,.1f}",
            f"{row['kept_bytes'] / 1e6:,.1f}",
            f"{per_token:,.0f}",
            f"{per_pair:,.0f}",
            f"{row['steps']:,}",
            f"{row['chain']:,}",
        ]

    header = [
        "model",
        "ms",
        "kept MB",
        "bytes per token",
        "bytes per pair",
        "sequential steps",
        "sequential operations",
    ]
    return table(header, [cells(row) for row in result["rows"] if row["length"] == REFERENCE])


def _growth_table(result: Result, figure: str, show: Callable[[float], str]) -> str:
    columns = [series(result, model, figure) for model in LOOKS]
    lengths = sorted(set().union(*columns))
    rows = [[f"{n:,}", *(show(column[n]) if n in column else "–" for column in columns)] for n in lengths]
    return table(["n", *LOOKS], rows)


def _crossing_table(result: Result) -> str:
    asked = [
        ("time", "milliseconds", FUSED, GRU),
        ("time", "milliseconds", LAYER, GRU),
        ("time", "milliseconds", FUSED, KEPT),
        ("memory", "kept_bytes", FUSED, GRU),
        ("memory", "kept_bytes", KEPT, GRU),
        ("memory", "kept_bytes", ADDITIVE, KEPT),
    ]
    rows = [
        [what, model, beside, _crossing_in_words(series(result, model, figure), series(result, beside, figure))]
        for what, figure, model, beside in asked
    ]
    return table(["figure", "model", "compared with", "crossing"], rows, n_left=4)


def _crossing_in_words(ours: dict[int, float], theirs: dict[int, float]) -> str:
    lengths = sorted(ours.keys() & theirs.keys())
    short, long = ("more" if ours[n] > theirs[n] else "less" for n in (lengths[0], lengths[-1]))
    match [_rounded(n) for n in crossings(ours, theirs)]:
        case []:
            return f"{long} at every length measured, {lengths[0]:,} to {lengths[-1]:,}"
        case [n]:
            return f"{short} up to about n = {n}, {long} beyond"
        case [first, *_, last]:
            return f"{short} up to about n = {first}, varying up to {last}, {long} beyond"
    raise AssertionError


def _rounded(n: float) -> str:
    """Two digits: more would pretend."""
    return f"{float(f'{n:.2g}'):,.0f}"


def _batch_table(result: Result) -> str:
    def per_sequence(model: str, batch: int) -> float:
        [row] = [row for row in result["batches"] if (row["model"], row["batch"]) == (model, batch)]
        return row["milliseconds"] / batch

    rows = []
    for batch in sorted({row["batch"] for row in result["batches"]}):
        gru, fused = per_sequence(GRU, batch), per_sequence(FUSED, batch)
        rows.append([str(batch), f"{gru:,.1f}", f"{fused:,.1f}", f"{gru / fused:.1f}"])
    return table(["batch size", f"{GRU}, ms each", f"{FUSED}, ms each", "GRU : attention"], rows)


def write_page(result: Result, docs: Path) -> None:
    """The page and its picture."""
    picture = docs / "pictures" / "recurrent-versus-attention.svg"
    draw(result, picture)
    write(docs / "recurrent-versus-attention.md", page(result, picture.relative_to(docs)))


def page(result: Result, picture: Path) -> str:
    """The text. Every figure in it is taken from the result."""
    shown = tables(result)
    d_model = result["d_model"]
    ms = {model: series(result, model, "milliseconds")[REFERENCE] for model in LOOKS}
    kept = {model: series(result, model, "kept_bytes")[REFERENCE] for model in LOOKS}
    return f"""# Recurrent versus attention

A recurrent layer processes a sequence token by token: each step waits for the previous one. Attention compares all
pairs of tokens at once: more work for a long sequence, but no waiting. For n tokens of width d, one layer needs:

| layer | work | kept for the backward pass | sequential steps |
|---|---|---|---|
| recurrent (GRU) | O(n·d²) | O(n·d) | O(n) |
| recurrent decoder with additive attention | O(n·d² + n²·d) | O(n²·d): a vector for every pair of tokens | O(n) |
| attention, weights kept | O(n·d² + n²·d) | O(n² + n·d) | O(1) |
| attention, fused kernel | O(n·d² + n²·d) | O(n·d) | O(1) |

Comparing the pairs takes O(n²·d); attention's four projections take O(n·d²). The memory of attention is not O(n²·d):
the weights are one number per pair and head, and a fused kernel recomputes them in the backward pass instead of keeping
them.

## At n = {REFERENCE}, d = {d_model}

{shown["reference"]}

- The GRU takes {ms[GRU] / ms[FUSED]:.1f} times as long as self-attention with the fused kernel,
  and {ms[GRU] / ms[LAYER]:.1f} times as long as a whole encoder layer.
- The GRU keeps {kept[GRU] / kept[FUSED]:.1f} times as much memory as self-attention with the fused kernel,
  and {kept[GRU] / kept[KEPT]:.1f} times as much memory as self-attention that keeps its weights.
- The recurrent encoder-decoder with additive attention, which reads n tokens and writes n,
  keeps {kept[ADDITIVE] / kept[FUSED]:,.0f} times as much memory as self-attention with the fused kernel.

The columns:

- *kept MB*: the distinct tensors kept for the backward pass, without parameters (1 MB = 10⁶ bytes).
- *bytes per token* and *per pair*: a and b of a·n + b·n², from the shortest and the longest sequence measured.
- *sequential steps*, by definition: n for a recurrence (the encoder-decoder reads n, then writes n), 1 for attention.
- *sequential operations*, counted: the longest chain of dependent operations in the recorded graph of the forward pass.

## As n grows

![Time and memory of forward and backward by sequence length]({picture.as_posix()})

Milliseconds, forward and backward:

{shown["time"]}

Megabytes kept for the backward pass:

{shown["memory"]}

A dash: the model would have needed too much memory, so it was not measured. Where the lines cross:

{shown["crossings"]}

## Batches

A GRU that processes one sequence multiplies matrices by vectors. With a batch, it multiplies matrices by matrices,
which is far more efficient; attention does that already for one sequence. At n = {REFERENCE}:

{shown["batches"]}

## How it was measured

On {machine_in_words(result["machine"])}: a GRU's steps are too small to divide among threads,
while attention would gain from every further core. d_model {d_model}, {result["n_heads"]} heads, float32, one sequence
unless stated otherwise, medians of {result["rounds"]} interleaved rounds. The GRU is `torch.nn.GRU`, one layer, one
direction; all else is `heedful.core`. `python benchmarks/recurrent.py --docs` writes this page and its picture.
"""


def draw(result: Result, path: Path) -> None:
    """Time and memory by length, both logarithmic, every line with its name at its end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    style = {"axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "heedful"}
    with plt.rc_context(style):
        figure, (time, memory) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
        _panel(time, result, "milliseconds", 1.0, "milliseconds, forward and backward", "Time")
        _panel(memory, result, "kept_bytes", 1e-6, "megabytes kept for the backward pass", "Memory")
        for where in crossings(series(result, FUSED, "milliseconds"), series(result, GRU, "milliseconds"))[-1:]:
            time.axvline(where, color="#999999", linewidth=0.8, linestyle=":", zorder=0)
            time.annotate(
                f"fused attention as\nslow as the GRU:\nn ≈ {_rounded(where)}",
                (where, time.get_ylim()[0]),
                xytext=(-4, 6),
                textcoords="offset points",
                ha="right",
                fontsize=9,
                color="#555555",
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
    print(f"wrote {path}")


def _panel(axes: Any, result: Result, figure: str, unit: float, label: str, title: str) -> None:
    lines = {model: {n: unit * value for n, value in sorted(series(result, model, figure).items())} for model in LOOKS}
    lengths = sorted(set().union(*lines.values()))
    for model, (_, colour, marker) in LOOKS.items():
        axes.plot(*zip(*lines[model].items(), strict=True), color=colour, marker=marker, markersize=4, linewidth=1.6)
    axes.set(xlabel="n, tokens in the sequence", ylabel=label)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(lengths[::2])
    axes.margins(y=0.13)  # room for the names
    axes.xaxis.set_major_formatter(lambda n, _: f"{n:,.0f}")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.grid(color="#e5e5e5", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(title, loc="left", fontweight="bold")
    lowest = 0.0
    for model in sorted(LOOKS, key=lambda model: max(lines[model].values())):
        name, colour, _ = LOOKS[model]
        end, value = max(lines[model].items())
        place: dict[str, Any] = {"xytext": (-6, 2), "ha": "right", "va": "bottom"}  # a line that ends early
        if end == lengths[-1]:
            value = lowest = max(value, 1.7 * lowest)  # labels at the edge stand apart
            place = {"xytext": (7, 0), "va": "center"}
        axes.annotate(name, (end, value), textcoords="offset points", color=colour, fontsize=9, **place)
