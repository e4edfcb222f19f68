"""`heedful serve` beside a server that takes one request at a time and one of CTranslate2, the same API and model.

    python benchmarks/serving.py                     speed, overload and memory; keeps the figures as JSON
    python benchmarks/serving.py --small             the same with a small model, in two minutes: for a look
    python benchmarks/serving.py --model runs/en-ko --texts input.txt

A base translator (6 + 6 layers, d 512, vocabulary 16,000) of random weights answers sentences of 8 to 40 tokens with 25
tokens each, through POST /translate, from 1, 8 and 64 clients that ask again as soon as they are answered. Servers and
clients are processes of their own on the same cores. CTranslate2 has a batcher before it, and of several ways to run it
the one that was quickest for the largest crowd.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

import heedful
from _measure import machine, table, write_json
from _serving_model import sentences, with_beam, write_model
from _serving_speed import Work, speeds
from _serving_stress import memory, overload
from generation import CONFIG
from heedful.tasks.ctranslate2_export import export_ctranslate2

RESULT = Path(__file__).parent / "results" / "serving.json"
SMALL = {**CONFIG, "vocab_size": 2_000, "d_model": 64, "d_ff": 128, "n_heads": 2}
CROWDS = (1, 8, 64)


@contextmanager
def models(options: argparse.Namespace) -> Iterator[dict[str, Work]]:
    """The work by its name: each beam and precision."""
    with tempfile.TemporaryDirectory() as scratch:
        here = Path(scratch)
        config = SMALL if options.small else CONFIG
        if options.model is None:
            write_model(here / "base", config)
            folders = {f"beam {beam}": with_beam(here / "base", beam, here / f"beam{beam}") for beam in options.beam}
            texts = sentences(int(str(config["vocab_size"])), 256)
        else:
            folders = {"its own beam": options.model}
            texts = options.texts.read_text(encoding="utf-8").splitlines()
        first = next(iter(folders.values()))
        exported = here / "exported" if find_spec("ctranslate2") else None
        if exported is not None:
            export_ctranslate2(first, exported)
        languages = heedful.load(first).settings
        bodies = [json.dumps({"q": text, "source": languages.source, "target": languages.target}) for text in texts]
        common = Work(first, exported, "float32", bodies, options.threads, options.seconds)
        yield {
            f"{beam}, {precision}": replace(common, folder=folder, precision=precision)
            for beam, folder in folders.items()
            for precision in options.precision
        }


def middle(rounds: list[dict[str, float]]) -> dict[str, float]:
    """Medians over the rounds."""
    return {key: statistics.median(one[key] for one in rounds) for key in rounds[0]}


def show_speed(name: str, result: Mapping[str, Any]) -> None:
    """A table of one kind of work."""
    header = ("server", "clients", "requests/s", "median, ms", "99th, ms", "ours / it")
    rows = []
    for server, crowds in result["servers"].items():
        for clients, rounds in crowds.items():
            one, ratio = middle(rounds), result["ratios"].get(server, {}).get(clients)
            figures = [f"{one[key]:.1f}" for key in ("requests_per_second", "median_ms", "p99_ms")]
            rows.append([server, str(clients), *figures, "" if ratio is None else f"{ratio:.2f}"])
    print(f"\n{name}\n{table(header, rows)}")
    print("the same answers as ours:", result["same_answers"])


def show_overload(result: Mapping[str, Any]) -> None:
    """In words."""
    health, refusal = result["health"], result["refusal_ms"]
    before, after = result["one_client_before"], result["one_client_after"]
    print(f"\nten times capacity: {result['sent_per_second']:.0f} requests/s for {result['capacity_per_second']:.0f}")
    print(f"  refused: {result['share_refused']:.1%}, in {refusal['median']:.1f} ms, 99th {refusal['p99']:.1f}")
    print(f"  answered: {result['answered_per_second']:.0f} a second; statuses: {result['statuses']}")
    print(f"  /health: {health['answered']} of {health['asked']}, in {health['median_ms']:.1f} ms, ", end="")
    print(f"99th {health['p99_ms']:.1f}, at most {health['max_ms']:.1f}")
    print(f"  one client: {before['median_ms']:.1f} ms before, {after['median_ms']:.1f} ms after", end="")
    print(f", the first in {result['first_answer_after_ms']:.0f} ms")


def main() -> None:
    """Measure, print, keep as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=6.0, help="of each measurement")
    parser.add_argument("--threads", type=int, default=2, help="of each server's model")
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 5])
    parser.add_argument("--precision", nargs="+", default=["float32", "int8"])
    parser.add_argument("--requests", type=int, help="while memory is watched (20,000)")
    parser.add_argument("--small", action="store_true", help="a small model, one round, few requests")
    parser.add_argument("--model", type=Path, help="a translator of your own; needs --texts")
    parser.add_argument("--texts", type=Path, help="a file with a sentence on each line")
    parser.add_argument("--only", nargs="+", choices=("speed", "overload", "memory"), help="leave out the others")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    if (options.model is None) != (options.texts is None):
        parser.error("--model and --texts go together")
    if options.small:
        options.rounds, options.seconds = 1, 1.0
        options.beam, options.precision = options.beam[:1], options.precision[:1]
    requests = options.requests or (800 if options.small else 20_000)
    asked = options.only or ("speed", "overload", "memory")
    torch.set_num_threads(options.threads)
    result: dict[str, Any] = {"machine": machine(), "load_before": os.getloadavg(), "small": options.small}
    with models(options) as every:
        quick = every[list(every)[len(options.precision) - 1]]  # the most requests a second: the hardest to refuse
        if "speed" in asked:
            result["speed"] = {}
            for name, work in every.items():
                result["speed"][name] = speeds(work, CROWDS, options.rounds)
                show_speed(name, result["speed"][name])
        if "overload" in asked:
            result["overload"] = overload(quick, CROWDS[-1], 2 * options.seconds)
            show_overload(result["overload"])
        if "memory" in asked:
            result["memory"] = memory(quick, CROWDS[-1], requests, max(100, requests // 20))
            print(f"memory grows by {result['memory']['slope_mib_per_1000']:.3f} MiB in 1,000 requests")
    result["load_after"] = os.getloadavg()
    if not options.small or options.out != RESULT:
        write_json(options.out, result)


if __name__ == "__main__":
    main()
