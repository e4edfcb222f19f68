"""Heedful's core beside torch.nn.Transformer and x-transformers: forward and backward, the same sizes.

    python benchmarks/core.py                 # about four minutes on two cores
    python benchmarks/core.py --layers 6      # the base model's full depth

Heedful's model is made from torch.nn's with its weights, and must give the same output and the same
gradient before anything is timed. Every row's ratio is the median over interleaved rounds; the exit
status is 1 if one of them is above the bar.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch

from _contenders import D_FF, D_MODEL, N_HEADS, OURS, PEERS, WHAT_DIFFERS, WIRINGS, Batch, Case, Contender, cases
from _measure import Spread, interleaved, machine, machine_in_words, ratio, table, write, write_json

BAR = 1.05
ROOT = Path(__file__).resolve().parent.parent
RESULT = ROOT / "benchmarks" / "results" / "core.json"
PAGE = ROOT / "docs" / "benchmarks" / "core.md"


def check_equal(batch: Batch, ours: Contender, theirs: Contender) -> None:
    """Stop unless both give the same output (where it counts) and the same gradient, dropout aside."""
    results = []
    for contender in (ours, theirs):
        contender.module.eval()
        out = contender.step(batch)
        results.append((out.detach() * batch.gradient, batch.source.grad))
        contender.module.train()
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-4)


def measure(case: Case, n_layers: int, rounds: int) -> dict[str, Any]:
    """One row: median milliseconds of each, and ours beside each peer's."""
    torch.manual_seed(0)
    batch = Batch(case)
    contenders = WIRINGS[case.wiring](case, n_layers, batch)
    check_equal(batch, contenders[OURS], contenders["torch.nn"])
    seconds = interleaved({name: partial(each.step, batch) for name, each in contenders.items()}, rounds)
    return {
        "case": case.name,
        "length": case.length,
        "batch": case.batch,
        "milliseconds": {name: 1000 * Spread.of(each).median for name, each in seconds.items()},
        "ratio": {peer: asdict(ratio(seconds[OURS], seconds[peer])) for peer in PEERS},
    }


def as_table(rows: list[dict[str, Any]]) -> str:
    """The rows for people."""

    def cells(row: dict[str, Any]) -> list[str]:
        times = [f"{row['milliseconds'][name]:.0f}" for name in (OURS, *PEERS)]
        ratios = ["{median:.3f} ({low:.2f}-{high:.2f})".format(**row["ratio"][peer]) for peer in PEERS]
        return [row["case"], str(row["length"]), str(row["batch"]), *times, *ratios]

    names = [f"{name} ms" for name in (OURS, *PEERS)]
    return table(
        ["model", "length", "batch", *names, *(f"ratio to {peer}" for peer in PEERS)], [cells(row) for row in rows]
    )


def above_the_bar(result: dict[str, Any]) -> list[str]:
    """The rows where the bar does not hold, in words."""
    return [
        f"{row['case']} at {row['length']}: {row['ratio'][peer]['median']:.3f} times {peer}"
        for row in result["rows"]
        for peer in PEERS
        if row["ratio"][peer]["median"] > result["bar"]
    ]


def verdict(result: dict[str, Any]) -> str:
    """Whether the bar holds."""
    if above := above_the_bar(result):
        return f"The bar of {result['bar']} does not hold: " + "; ".join(above) + "."
    slowest = {peer: max(row["ratio"][peer]["median"] for row in result["rows"]) for peer in PEERS}
    in_words = " and ".join(f"{value:.3f} times {peer}" for peer, value in slowest.items())
    return f"The bar of {result['bar']} holds: the slowest rows take {in_words}."


def page(result: dict[str, Any]) -> str:
    """The same for the documentation."""
    return f"""# The core beside its peers

Forward and backward of the base sizes (d_model {D_MODEL}, {N_HEADS} heads, d_ff {D_FF}), {result["layers"]} layers
(per stack), float32, in training mode, on {machine_in_words(result["machine"])}. A ratio below 1 means that
Heedful is faster; it is the median over {result["rounds"]} interleaved rounds, with its quartiles.

{as_table(result["rows"])}

{verdict(result)}

{WHAT_DIFFERS}

Made by `python benchmarks/core.py --layers {result["layers"]} --rounds {result["rounds"]} --docs`.
"""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description="Heedful's core beside torch.nn.Transformer and x-transformers.")
    parser.add_argument("--layers", type=int, default=2, help="layers of each stack (the base model has 6)")
    parser.add_argument("--lengths", type=int, nargs="+", default=[64, 512, 2048])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path, default=RESULT, help="where the JSON goes")
    parser.add_argument("--docs", action="store_true", help=f"rewrite {PAGE.relative_to(ROOT)} too")
    args = parser.parse_args()
    if importlib.util.find_spec("x_transformers") is None:
        sys.exit("x-transformers, a peer of this benchmark, is not installed; run: pip install -e '.[bench]'")

    torch.set_num_threads(args.threads)
    result: dict[str, Any] = {
        "machine": machine() | {"x-transformers": importlib.metadata.version("x-transformers")},
        "layers": args.layers,
        "rounds": args.rounds,
        "bar": BAR,
        "rows": [],
    }
    for case in cases(args.lengths):
        result["rows"].append(measure(case, args.layers, args.rounds))
        print(f"measured: {case.name} at {case.length}", flush=True)
    print(f"\n{as_table(result['rows'])}\n\n{verdict(result)}\n{WHAT_DIFFERS}\n")
    write_json(args.out, result)
    if args.docs:
        write(PAGE, page(result))
    sys.exit(1 if above_the_bar(result) else 0)


if __name__ == "__main__":
    main()
