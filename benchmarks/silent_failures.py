"""Twelve errors that tutorials make, run on torch.nn.Transformer and on Heedful with the same weights.

python benchmarks/silent_failures.py          prints the table; fails where Heedful is wrong
python benchmarks/silent_failures.py --docs   rewrites docs/silent-failures.md too
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import torch

from _measure import write
from _probes_of_masks import (
    batches,
    causal_with_a_cache,
    fully_masked_row,
    memory,
    nan_in_padding,
    source_padding,
    training_and_evaluation,
)
from _probes_of_parts import both_directions, final_norm, long_input, odd_width, sinusoid_exponent
from _probing import Finding
from _silent_failures_page import page, print_table

PAGE = Path(__file__).resolve().parents[1] / "docs" / "silent-failures.md"
PROBES: list[Callable[[], Finding]] = [
    sinusoid_exponent,
    odd_width,
    fully_masked_row,
    source_padding,
    causal_with_a_cache,
    both_directions,
    training_and_evaluation,
    batches,
    nan_in_padding,
    final_norm,
    memory,
    long_input,
]


def main() -> None:
    """Probe, print, write."""
    parser = argparse.ArgumentParser(description="Twelve silent failures, in torch.nn.Transformer and in Heedful.")
    parser.add_argument("--docs", action="store_true", help=f"rewrite {PAGE.parent.name}/{PAGE.name} too")
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    findings = []
    for probe in PROBES:
        torch.manual_seed(0)
        with warnings.catch_warnings(action="ignore"):
            findings.append(probe())
    print_table(findings)
    if args.docs:
        write(PAGE, page(findings))
    sys.exit(any(not outcome.right for finding in findings for outcome in finding.ours))


if __name__ == "__main__":
    main()
