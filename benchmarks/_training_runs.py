"""Whole runs by their shell command, each in a fresh process: from the command to the bundle, and how good it is."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import heedful
from _measure import table
from _training_setup import Bench, PartError, verdict
from heedful.tasks.run import Files
from heedful.tasks.scoring import corpus_scores
from heedful.tasks.translation.data import read_set

TRANSLATORS = ("multi30k-en-de-tiny", "multi30k-en-de-small")
CHARACTERS = "tinyshakespeare"
SHOWN = 3000  # characters of what a failed command said
Row = dict[str, Any]


def multi30k(bench: Bench) -> Row:
    """BLEU on test_2016, which is translated once, after the time has been taken."""
    files = bench.pairs()
    data = ["--data", *files.train, "--valid", *files.valid]
    test = read_set(Files(bench.multi30k("test_2016_flickr")), "en", "de")
    references = [pair.target for pair in test]
    rows = []
    for recipe in TRANSLATORS:
        for seed in range(bench.seeds):
            out, row = train(bench, "translation", recipe, data, seed)
            began = time.perf_counter()
            outputs = heedful.load(out).predict([pair.source for pair in test])
            row["seconds_to_translate"] = time.perf_counter() - began
            row["bleu_lower_cased"] = _bleu([text.lower() for text in outputs], [text.lower() for text in references])
            row["bleu"] = _bleu(outputs, references)
            row["val_bleu"] = row.pop("scores")["bleu"]
            rows.append(_told(row))
    show = {"bleu_lower_cased": ".2f", "bleu": ".2f", "val_bleu": ".2f", "seconds": ".1f", "seconds_to_bundle": ".1f"}
    print(_table(rows, TRANSLATORS, show))
    goals = [("floor", 40.5, 60.0), ("reach", 41.0, 30.0), ("reach", 42.0, 60.0)]
    checks = [_check(rows, recipe, "bleu_lower_cased", *goal, higher=True) for recipe in TRANSLATORS for goal in goals]
    return {"test_pairs": len(test), "rows": rows, "checks": checks}


def tinyshakespeare(bench: Bench) -> Row:
    """The loss over the whole validation text: windows side by side, as nanoGPT's, and overlapping."""
    rows = []
    for seed in range(bench.seeds):
        _, row = train(bench, "language-model", CHARACTERS, ["--data", bench.tinyshakespeare()], seed)
        scores = row.pop("scores")
        rows.append(_told(row | {"loss": scores["loss_side_by_side"], "loss_overlapping": scores["loss"]}))
    print(
        _table(
            rows, [CHARACTERS], {"loss": ".4f", "loss_overlapping": ".4f", "seconds": ".1f", "seconds_to_bundle": ".1f"}
        )
    )
    goals = [("floor", 1.4697, 40.0), ("reach", 1.4697, 20.0)]
    return {"rows": rows, "checks": [_check(rows, CHARACTERS, "loss", *goal, higher=False) for goal in goals]}


def train(bench: Bench, task: str, recipe: str, data: Sequence[str], seed: int) -> tuple[Path, Row]:
    """Run `heedful train`; the time is from before its process starts until it has ended."""
    out, log = bench.folder() / "run", bench.folder() / "said.txt"
    settings = [f"training.seed={seed}", *bench.changes(recipe)]
    command = [sys.executable, "-m", "heedful", "train", task, "--config", str(bench.recipe(recipe)), *data]
    command += ["--out", str(out), *(word for setting in settings for word in ("--set", setting))]
    source = str(Path(heedful.__file__).parent.parent)
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    with log.open("w", encoding="utf-8") as said:
        began = time.time()
        ended = subprocess.run(
            command, stdout=said, stderr=subprocess.STDOUT, env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        )
        seconds = time.time() - began
    if ended.returncode:
        raise PartError(f"{' '.join(command)}\nended with {ended.returncode}:\n{log.read_text('utf-8')[-SHOWN:]}")
    metrics = json.loads((out / "metrics.json").read_text("utf-8"))
    rows = [json.loads(line) for line in (out / "log.jsonl").read_text("utf-8").splitlines()]
    return out, {
        "recipe": recipe,
        "seed": seed,
        "seconds": seconds,
        "seconds_to_bundle": (out / "config.json").stat().st_mtime - began,
        "seconds_to_first_log": rows[0]["time"] - began,
        "steps": metrics["training"]["steps"],
        "parameters": metrics["parameters"],
        "scores": {name: score["value"] for name, score in metrics["validation"]["scores"].items()},
    }


def _bleu(outputs: Sequence[str], references: Sequence[str]) -> float:
    return corpus_scores(outputs, references, "de")["bleu"].value


def _told(row: Row) -> Row:
    """Say how a run went while the others still run."""
    figures = {name: value for name, value in row.items() if name not in ("recipe", "seed")}
    said = ", ".join(f"{name} {value:.4g}" for name, value in figures.items())
    print(f"{row['recipe']}, seed {row['seed']}: {said}", flush=True)
    return row


def _table(rows: Sequence[Row], recipes: Sequence[str], show: Mapping[str, str]) -> str:
    """Mean over the seeds, lowest to highest, and the standard deviation."""
    lines = []
    for recipe in recipes:
        for name, digits in show.items():
            values = [row[name] for row in rows if row["recipe"] == recipe]
            deviation = statistics.stdev(values) if len(values) > 1 else 0.0
            lines.append(
                [
                    recipe,
                    name.replace("_", " "),
                    f"{statistics.mean(values):{digits}}",
                    f"{min(values):{digits}} to {max(values):{digits}}",
                    f"{deviation:{digits}}",
                    str(len(values)),
                ]
            )
    return "\n" + table(["recipe", "figure", "mean", "lowest to highest", "sd", "seeds"], lines, n_left=2)


def _check(
    rows: Sequence[Row], recipe: str, name: str, kind: str, goal: float, within: float, *, higher: bool
) -> dict[str, Any]:
    """Whether the mean score reaches a goal, and the slowest run its bundle in time."""
    own = [row for row in rows if row["recipe"] == recipe]
    mean, slowest = statistics.mean(row[name] for row in own), max(row["seconds_to_bundle"] for row in own)
    holds = (mean >= goal if higher else mean <= goal) and slowest <= within
    sign = "≥" if higher else "≤"
    print(
        f"{recipe}: {kind} {sign} {goal} within {within:.0f} s: {mean:.4f} in {slowest:.1f} s at most: {verdict(holds)}"
    )
    return {"recipe": recipe, "kind": kind, "goal": goal, "within": within, "holds": holds}
