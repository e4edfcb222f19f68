from __future__ import annotations

import pytest

from heedful.data.grammar import Example, Grammar

Samples = dict[str, list[Example]]


@pytest.fixture(scope="session")
def training() -> Samples:
    """A training sample of each level, of the size the demo trains on."""
    return {"demo": list(Grammar("demo").sample(60_000)), "full": list(Grammar("full").sample(60_000))}


@pytest.fixture(scope="session")
def held_out() -> dict[str, Samples]:
    """Each held-out set of each level."""
    sizes = {"valid": 500, "T1": 500, "T2": 300, "T3": 300, "T4": 150, "T5": 300, "T6": 150}
    return {
        level: {split: list(Grammar(level).sample(n, split)) for split, n in sizes.items()}  # type: ignore[arg-type]
        for level in ("demo", "full")
    }
