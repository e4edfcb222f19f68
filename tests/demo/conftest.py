from __future__ import annotations

import pytest

from heedful.demo import Grammar, ParallelExample

Samples = dict[str, list[ParallelExample]]


@pytest.fixture(scope="session")
def training() -> Samples:
    """A training sample of each level, of half the size the demo trains on."""
    return {"demo": list(Grammar("demo").sample(30_000)), "full": list(Grammar("full").sample(30_000))}


@pytest.fixture(scope="session")
def held_out() -> dict[str, Samples]:
    """Each held-out set of each level."""
    sizes = {"valid": 200, "T1": 200, "T2": 100, "T3": 100, "T4": 60, "T5": 100, "T6": 60}
    return {
        level: {split: list(Grammar(level).sample(n, split)) for split, n in sizes.items()}  # type: ignore[arg-type]
        for level in ("demo", "full")
    }
