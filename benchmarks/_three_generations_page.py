"""What benchmarks/three_generations.py shows: its tables, its sentences and its pictures, from the measured figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from _measure import table
from heedful.lens.pictures import attention_map, save

Result = dict[str, Any]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "recurrent-versus-transformer.md"
PICTURES = ROOT / "docs" / "pictures"
RESULT = Path(__file__).parent / "results" / "three_generations.json"


def tables(result: Result) -> dict[str, str]:
    """All figures for people, by name."""
    return {"models": _models(result), "sets": _sets(result), "lengths": _lengths(result)}


def write_pictures(result: Result) -> None:
    """The map of each model that has attention, between words."""
    for name, row in result["models"].items():
        if row["attention"] is not None:
            seen = row["attention"]
            figure = attention_map(torch.tensor(seen["weights"]), seen["target"], seen["source"], title=name)
            save(figure, PICTURES / f"{_slug(name)}.png")


def page(result: Result) -> str:
    """The page, whose every number comes from the run."""
    found = tables(result)
    maps = "\n\n".join(
        f"![{name}: which Korean word each English word was written from](pictures/{_slug(name)}.png)"
        for name, row in result["models"].items()
        if row["attention"] is not None
    )
    said = "\n".join(f"- {name}: {row['translation']}" for name, row in result["models"].items())
    return f"""# Recurrent models and the Transformer, side by side

Three encoder-decoders trained on the same Korean-English pairs of the [built-in corpus](corpus.md), with batches of the
same size, {result["steps"]:,} updates and the same optimizer: one that compresses a sentence into one vector (2014),
one with additive attention over all encoder states (2015), and the Transformer (2017).
`python benchmarks/three_generations.py --docs` trains and scores them, and writes
[`benchmarks/results/three_generations.json`](../benchmarks/results/three_generations.json) and this page. One run each,
on: {result["device"]}, torch {result["torch"].split("+")[0]}.

## Cost

{found["models"]}

Tokens per second are target tokens in training. A recurrent layer processes one token after another; attention
processes all of them at once. [recurrent-versus-attention.md](recurrent-versus-attention.md) measures how both grow
with the length.

## Quality

Exact match with an accepted answer, in percent, on [held-out sets](corpus.md#held-out-sets):

{found["sets"]}

{_by_length(result)}

## Attention

{_quoted(result)}

{said}

{maps}
"""


def _by_length(result: Result) -> str:
    """chrF of the longest sources, new and one clause deeper, in the order of the tables."""
    sets = [row["sets"] for row in result["models"].values()]
    name = {key.split()[0]: key for key in sets[0]}
    groups = {key: [row[name[key]]["by_length"][-1] for row in sets] for key in ("T1", "T5")}
    scores = {key: " / ".join(f"{score:.1f}" for *_, score in group) for key, group in groups.items()}
    words = groups["T1"][0][0].replace("-", " to ")
    return (
        f"On sources of {words} words, in the same order, chrF is {scores['T1']} on new sentences (T1) "
        f"and {scores['T5']} one clause deeper (T5)."
    )


def _quoted(result: Result) -> str:
    seen = next(row["attention"] for row in result["models"].values() if row["attention"] is not None)
    return " ".join(seen["source"])


def _models(result: Result) -> str:
    rows = [
        [
            name,
            f"{row['parameters']:,}",
            f"{row['training_seconds']:,.0f}",
            f"{row['tokens_per_second']:,.0f}",
            f"{row['peak_megabytes']:,.0f}",
            "–" if row["alignment_error"] is None else f"{row['alignment_error']:.1f}",
        ]
        for name, row in result["models"].items()
    ]
    header = ["model", "parameters", "training, s", "tokens/s", "peak memory, MB", "alignment error, %"]
    return table(header, rows)


def _sets(result: Result) -> str:
    models = result["models"]
    names = list(next(iter(models.values()))["sets"])
    rows = [[name, *(f"{row['sets'][name]['exact']:.1f}" for row in models.values())] for name in names]
    return table(["set", *models], rows)


def _lengths(result: Result) -> str:
    models = result["models"]
    rows = []
    for name in next(iter(models.values()))["sets"]:
        if name.split()[0] in ("T1", "T5"):
            groups = next(iter(models.values()))["sets"][name]["by_length"]
            for place, (label, count, _) in enumerate(groups):
                scores = (row["sets"][name]["by_length"][place][2] for row in models.values())
                rows.append([f"{name}, {label} words", f"{count:,}", *(f"{score:.1f}" for score in scores)])
    return table(["set", "sentences", *models], rows)


def _slug(name: str) -> str:
    return "attention-" + name.lower().replace(",", "").replace(" ", "-")
