"""Training at the speed of the hardware: whole runs by their command, steps beside the peers', what engines learn.

    python benchmarks/training.py --data FOLDER                          # everything; about 25 minutes on one GPU
    python benchmarks/training.py --data FOLDER --parts multi30k,cpu     # some of it
    python benchmarks/training.py --data FOLDER --small                  # every part in seconds, to see that it runs

The folder holds multi30k/ and tinyshakespeare/ (or ts/). The parts:

    multi30k         each recipe from the shell command to its bundle, BLEU on test_2016
    throughput       target tokens/s of the loop, beside transformers' Marian on the same batches
    tinyshakespeare  the recipe from the shell command to its bundle, loss over the whole validation text
    gpt2             GPT-2 124M, tokens/s and share of the matrix peak, beside transformers
    curves           captured and compiled runs learn what the eager one does
    cost             time and memory of a step as length, width, depth and vocabulary grow, with a picture
    cpu              throughput on two threads of the CPU; the only part that needs no GPU
    picture          the picture of `cost` again, from the JSON alone

Each part prints its table and takes its place in the JSON; what other parts have left there stays.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from _measure import write_json
from _training_cost import cost, draw
from _training_curves import curves
from _training_gpt2 import gpt2
from _training_runs import multi30k, tinyshakespeare
from _training_setup import ENGINES, Bench, PartError, facts
from _training_throughput import cpu, throughput
from heedful.errors import HeedfulError

ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "training.json"
PICTURE = "training-cost.svg"
PARTS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "multi30k": multi30k,
    "throughput": throughput,
    "tinyshakespeare": tinyshakespeare,
    "gpt2": gpt2,
    "curves": curves,
    "cost": cost,
    "cpu": cpu,
}


def main() -> None:
    """Measure part by part; a part that cannot run here says why, and the others run."""
    options = _options()
    # What was measured with --small means nothing, and is kept only where someone asks for it.
    target: Path | None = options.result or (None if options.small else RESULT)
    failed = []
    with tempfile.TemporaryDirectory(prefix="training-") as scratch:
        bench = Bench(
            data=options.data,
            recipes=options.recipes,
            scratch=Path(scratch),
            engines=options.engines,
            seeds=options.seeds,
            rounds=options.rounds,
            small=options.small,
        )
        if options.small and not torch.cuda.is_available():
            print("no CUDA GPU: everything runs eagerly on the CPU; the part cpu compiles too")
        for name in options.parts:
            print(f"\n== {name}", flush=True)
            began = time.perf_counter()
            try:
                if name == "picture":
                    _draw(_kept(target), target)
                    continue
                if name != "cpu":
                    bench.need_device()
                found = PARTS[name](bench)
            except (PartError, HeedfulError) as error:
                failed.append(name)
                print(f"{name}: {error}", flush=True)
                continue
            print(f"{name}: {time.perf_counter() - began:.0f} s", flush=True)
            if target is not None:
                kept = _kept(target)
                kept["parts"][name] = {"machine": facts(), **found}
                write_json(target, kept)
                if name == "cost":
                    _draw(kept, target)
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="the folder that holds multi30k/ and tinyshakespeare/ or ts/")
    parser.add_argument("--parts", type=_among(*PARTS, "picture"), default=tuple(PARTS), help="some, with commas")
    parser.add_argument("--engines", type=_among(*ENGINES), default=ENGINES, help="some, with commas")
    parser.add_argument("--seeds", type=int, default=3, help="how many runs of a recipe")
    parser.add_argument("--rounds", type=int, default=5, help="how often loops are timed in turn")
    parser.add_argument("--recipes", type=Path, default=ROOT / "recipes", help="the folder of the recipes")
    parser.add_argument("--result", type=Path, help=f"the JSON; {RESULT.relative_to(ROOT)} unless --small")
    parser.add_argument("--small", action="store_true", help="tiny sizes, on a CPU too: says only that all runs")
    return parser.parse_args()


def _among(*allowed: str) -> Callable[[str], tuple[str, ...]]:
    """Names between commas."""

    def names(text: str) -> tuple[str, ...]:
        given = tuple(name.strip() for name in text.split(","))
        for name in given:
            if name not in allowed:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(allowed)}")
        return given

    return names


def _kept(path: Path | None) -> dict[str, Any]:
    """What earlier calls have measured."""
    if path is None or not path.exists():
        return {"benchmark": "training", "parts": {}}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def _draw(kept: dict[str, Any], target: Path | None) -> None:
    """Into the docs, or beside a JSON that is elsewhere."""
    if "cost" not in kept["parts"]:
        raise PartError("there is nothing to draw: run the part cost first, or give its JSON with --result")
    if find_spec("matplotlib") is None:
        print("matplotlib is not installed: the picture is left out; --parts picture draws it where it is")
        return
    folder = ROOT / "docs" / "pictures" if target in (None, RESULT) else target.parent
    draw(kept["parts"]["cost"], folder / PICTURE)


if __name__ == "__main__":
    main()
