"""Every model that Heedful reads beside the same model in transformers, with the same weights.

    python benchmarks/parity.py            # measures, prints tables, writes JSON; fails where a model is below the bar
    python benchmarks/parity.py --docs     # and rewrites docs/parity.md

Trained models are compared too where they are there: those of two packages, once they are installed, folders in
Hugging Face's layout given with --checkpoints, and a model of CTranslate2 in the folder given with --data.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
import transformers

from _measure import machine, write, write_json
from _parity_checkpoints import Trained, trained
from _parity_figures import BAR
from _parity_ledger import Entry, Row, ledger
from _parity_page import details, page, summary, tables, trained_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "parity.md"
RESULT = ROOT / "benchmarks" / "results" / "parity.json"


def measured() -> list[Entry]:
    """All models with random weights, one after another."""
    entries = []
    for entry in ledger():
        print(f"measured: {entry.model}{'' if entry.within_the_bar else ', which FAILS'}", flush=True)
        entries.append(entry)
    return entries


def as_json(entries: list[Entry], results: list[Trained], absent: list[str]) -> dict[str, Any]:
    """The figures, to two digits; where there are two figures, ours and theirs."""
    facts = machine()
    models = [
        asdict(entry) | {"rows": [_figures(row) for row in entry.rows], "holds": entry.within_the_bar}
        for entry in entries
    ]
    return {
        "versions": {"python": facts["python"], "torch": facts["torch"], "transformers": transformers.__version__},
        "bar": BAR,
        "models": _rounded(models),
        "trained": _rounded([asdict(result) | {"holds": result.within_the_bar} for result in results]),
        "absent": absent,
    }


def _figures(row: Row) -> dict[str, Any]:
    return {
        "size": row.size,
        "difference": row.beside.difference,
        "at": row.way,
        "positions": row.beside.positions,
        "agreeing": row.beside.agreeing,
        "from_truth": [row.heedful.difference, row.hf.difference],
        "bfloat16_typical": [row.heedful_half.typical, row.hf_half.typical],
        "bfloat16_largest": [row.heedful_half.difference, row.hf_half.difference],
        "bfloat16_agreeing": [row.heedful_half.agreeing, row.hf_half.agreeing],
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return float(f"{value:.1e}") if isinstance(value, float) else value


def main() -> None:
    """Measure all models, print the figures and write the page."""
    parser = argparse.ArgumentParser(description="Every model that Heedful reads beside the same in transformers.")
    parser.add_argument("--checkpoints", type=Path, nargs="+", default=[], help="folders in Hugging Face's layout")
    parser.add_argument("--data", type=Path, help="the folder that holds ct2-aren-transliteration")
    parser.add_argument("--out", type=Path, default=RESULT, help="where the JSON goes")
    parser.add_argument("--docs", action="store_true", help=f"rewrite {PAGE.relative_to(ROOT)} too")
    args = parser.parse_args()

    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with warnings.catch_warnings(action="ignore"):
        entries = measured()
        results, absent = trained(args.checkpoints, args.data)
    below = [entry for entry in entries if not entry.within_the_bar]
    sections = [tables(entries), details(below), trained_table(results, absent), summary(entries, results)]
    print("\n\n".join(["", *filter(None, sections), ""]))
    result = as_json(entries, results, absent)
    write_json(args.out, result)
    if args.docs:
        write(PAGE, page(entries, results, absent, result["versions"]))
    everything: list[Entry | Trained] = [*entries, *results]
    sys.exit(any(not item.within_the_bar for item in everything))


if __name__ == "__main__":
    main()
