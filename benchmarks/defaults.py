"""The defaults on data nobody chose: train and score from the shell, with no options but the files.

    python benchmarks/defaults.py                                   # the tasks with rules, which need no data
    python benchmarks/defaults.py --data DATA                       # and those whose corpora are in the folder DATA
    python benchmarks/defaults.py --only commands etth1-96 --seeds 1

DATA may hold `questions` and `polarity` (train.tsv and test.tsv: text, label), `nsmc` (train.tsv.gz, dev.tsv.gz),
`ett` (ETTh1.csv.gz, ETTm1.csv.gz), `mnist` (idx files), `multi30k`, `enko_gettext` and `tinyshakespeare`. A set whose
files are absent is skipped with one line, and so are the recipes that want a GPU where there is none.

The runs with a time limit are meant for two quiet cores; on a shared machine, `--minutes` gives them what corresponds.
CPU seconds are those of training and scoring together. Rivals of classifiers are scored on the validation data, and a
floor that depends on a rival is for the model's score there.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

from _default_sets import SETS, DefaultSet, MissingDataError
from _measure import machine, table, write_json

RESULT = Path(__file__).parent / "results" / "defaults.json"


def main() -> None:
    """Run the sets that were chosen, one after the other; write the result after each."""
    options = _options()
    rows: list[dict[str, Any]] = []
    for each in (each for each in SETS if not options.only or each.name in options.only):
        folder = options.out / each.name
        folder.mkdir(parents=True, exist_ok=True)
        try:
            if each.needs_gpu and not torch.cuda.is_available():
                raise MissingDataError("it needs a GPU")
            files = each.files(options.data, folder)
        except MissingDataError as reason:
            print(f"{each.name}: skipped, {reason}", flush=True)
            continue
        runs = [_run(each, files, folder, seed, options) for seed in range(options.seeds)]
        rows.append(_row(each, [run for run in runs if run is not None]))
        write_json(options.result, {"benchmark": "defaults", "machine": machine(), "rows": rows})
    print(f"\n{_table(rows)}")
    if failed := [row["set"] for row in rows if row["holds"] is False]:
        sys.exit(f"below the floor: {', '.join(failed)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [each.name for each in SETS]
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"some of: {', '.join(names)}")
    parser.add_argument("--data", type=Path, default=Path("data"), help="the folder of the corpora")
    parser.add_argument("--seeds", type=int, default=3, help="the number of runs of each set")
    parser.add_argument("--minutes", type=float, default=5.0, help="of the runs with a time limit")
    parser.add_argument("--out", type=Path, default=Path("runs") / "defaults", help="the folder of data and runs")
    parser.add_argument("--result", type=Path, default=RESULT, help="where the JSON goes")
    return parser.parse_args()


def _run(
    each: DefaultSet, files: dict[str, list[str]], folder: Path, seed: int, options: argparse.Namespace
) -> dict[str, Any] | None:
    """Train with one seed and score; None where a command failed, whose output is in the folder."""
    out, scores = folder / f"seed-{seed}", folder / f"seed-{seed}.json"
    limit = ["--set", f"training.max_minutes={options.minutes}"] if each.is_limited else []
    train = ["train", each.task, *files["train"], *each.options, *limit]
    began, cpu_began = time.monotonic(), _cpu_seconds()
    log = folder / f"seed-{seed}.log"
    log.write_text("")
    print(f"{each.name}, seed {seed}: heedful {' '.join(train)}", flush=True)
    try:
        _heedful([*train, "--seed", str(seed), "--out", str(out), "--overwrite"], log)
        trained = time.monotonic() - began
        if "test" in files:
            _heedful(["evaluate", str(out), *files["test"], "--out", str(scores)], log)
        else:  # a forecaster scores the test part of its file itself
            (result,) = json.loads((out / "metrics.json").read_text())["sets"].values()
            scores.write_text(json.dumps(result))
    except subprocess.CalledProcessError as error:
        print(f"{each.name}, seed {seed}: ended with {error.returncode}; see {log}", flush=True)
        return None
    values = json.loads(scores.read_text())["scores"]
    metrics = json.loads((out / "metrics.json").read_text())
    beside = values if each.rival in values else metrics["validation"]["scores"]  # both on the same examples
    run = {
        "seed": seed,
        "value": values[each.metric]["value"],
        "value_beside_rival": beside[each.metric]["value"],
        "rival": beside.get(each.rival, {}).get("value"),
        "steps": metrics["training"]["steps"],
        "seconds": round(time.monotonic() - began, 1),
        "seconds_to_train": round(trained, 1),
        "cpu_seconds": round(_cpu_seconds() - cpu_began, 1),
    }
    print(f"  {run}", flush=True)
    return run


def _heedful(arguments: list[str], log: Path) -> None:
    with log.open("a") as file:
        subprocess.run(
            [sys.executable, "-m", "heedful", *arguments], stdout=file, stderr=file, check=True, env=dict(os.environ)
        )


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _row(each: DefaultSet, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row of the table; the floor counts for the mean over the seeds."""

    def mean_of(key: str) -> float | None:
        values = [run[key] for run in runs if run[key] is not None]
        return sum(values) / len(values) if values else None

    mean, rival = mean_of("value"), mean_of("rival")
    floor, reached = each.floor, mean
    if each.margin is not None:
        floor, reached = None if rival is None else each.margin(rival), mean_of("value_beside_rival")
    holds = None
    if floor is not None:
        holds = reached is not None and (reached <= floor if each.lower_is_better else reached >= floor)
    elif not runs:
        holds = False
    return {
        "set": each.name, "task": each.task, "metric": each.metric, "floor": floor, "holds": holds, "mean": mean,
        "rival": rival, "rival_name": each.rival or None, "published": each.published, "runs": runs,
    }  # fmt: skip


def _table(rows: list[dict[str, Any]]) -> str:
    def figure(value: float | None) -> str:
        return "" if value is None else f"{value:.4f}" if abs(value) < 2 else f"{value:.1f}"

    header = ("set", "task", "metric", "floor", "each seed", "mean", "rival", "published", "seconds", "CPU seconds")
    return table(
        header,
        [
            (
                *(row["set"], row["task"], row["metric"]),
                figure(row["floor"]) + ("" if row["holds"] is not False else " ✗"),
                " ".join(figure(run["value"]) for run in row["runs"]) or "failed",
                *(figure(row["mean"]), figure(row["rival"]), row["published"]),
                " ".join(f"{run['seconds']:.0f}" for run in row["runs"]),
                " ".join(f"{run['cpu_seconds']:.0f}" for run in row["runs"]),
            )
            for row in rows
        ],
        n_left=3,
    )


if __name__ == "__main__":
    main()
