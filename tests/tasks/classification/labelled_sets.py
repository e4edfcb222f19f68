"""Made-up reviews with a class each, and runs so small that they take seconds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from heedful.tasks.classification.task import ClassificationConfig

GOOD, BAD = ["great", "lovely", "fine", "happy", "좋다", "최고"], ["awful", "sad", "poor", "ugly", "싫다", "최악"]
REST = ["the", "film", "was", "a", "story", "of", "one", "man", "and", "his", "dog", "in", "town"]
SIZE = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 1, "max_length": 32}
TRAINING = {"epochs": 8, "learning_rate": 3e-3, "warmup_steps": 10, "batch_tokens": 512, "device": "cpu"}


def reviews(count: int, seed: int = 0) -> list[tuple[str, str]]:
    """Texts with one telling word somewhere, and their class, in turn."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        tokens = [draw.choice(REST) for _ in range(draw.randint(3, 12))]
        tokens.insert(draw.randint(0, len(tokens)), draw.choice((BAD, GOOD)[number % 2]))
        rows.append((" ".join(tokens), ("neg", "pos")[number % 2]))
    return rows


def write_tsv(path: Path, rows: list[tuple[str, str]]) -> str:
    """With a header and a further column, as such files often come."""
    lines = ["id\tdocument\tlabel", *(f"{number}\t{text}\t{label}" for number, (text, label) in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def small_config(training: dict[str, Any] | None = None, **changes: Any) -> ClassificationConfig:
    """One layer of 32: enough to find a telling word."""
    defaults = {"tokenizer": {"vocab_size": 400, "max_unknown": 0.0}, "model": SIZE} if "base" not in changes else {}
    settings = {**TRAINING, "validate_every": 0, **(training or {})}
    return ClassificationConfig.from_dict({**defaults, **changes, "training": settings})
