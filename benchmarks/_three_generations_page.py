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

Three generations of the same idea, from one library, on the same data: an encoder-decoder that squeezes a sentence into
one vector (2014), the same with additive attention over all of the encoder's states (2015), and the Transformer (2017).
Each saw the same Korean-English sentence pairs of the built-in corpus, in batches of the same size, for
{result["steps"]:,} updates with the same optimizer, and was scored on sentences none of them had seen. Made by
`python benchmarks/three_generations.py --docs`, here on: {result["device"]}, torch {result["torch"].split("+")[0]}.

## What they cost

{found["models"]}

Tokens a second are target tokens while training. A recurrent layer must finish one word before it can begin the next;
attention sees all of them at once. [How that grows with the length](recurrent-versus-attention.md) is measured apart.

## How good they are

The share of translations that are exactly an accepted answer, in percent. [corpus.md](corpus.md) explains the sets.

{found["sets"]}

{_reading(result)}

## By the length of the sentence

chrF on new sentences (T1) and on sentences one clause deeper than any in training (T5), by the number of words in the
source.

{found["lengths"]}

## One sentence

{_quoted(result)}

{said}

{maps}
"""


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


def _reading(result: Result) -> str:
    """The order of the three, as it came out."""
    scores = {name: next(iter(row["sets"].values()))["exact"] for name, row in result["models"].items()}
    ranked = sorted(scores, key=lambda name: -scores[name])
    listed = ", then ".join(f"{name} ({scores[name]:.1f})" for name in ranked)
    return f"On new sentences the order is: {listed}."


def _slug(name: str) -> str:
    return "attention-" + name.lower().replace(",", "").replace(" ", "-")
