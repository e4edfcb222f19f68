"""Small runs that really train, for the tests of this folder."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.tasks.run import Files
from heedful.tasks.translation.task import TranslationConfig

Symbols = list[str]


def small_config(training: dict[str, Any] | None = None, **changes: Any) -> TranslationConfig:
    """Two layers of 64, no dropout, greedy: learns to rearrange symbols in a few hundred steps."""
    values: dict[str, Any] = {
        "source": "xa",
        "target": "xb",
        "data": {"drop_duplicates": False},
        "model": {
            "preset": "tiny",
            "d_model": 64,
            "d_ff": 128,
            "n_encoder_layers": 2,
            "n_decoder_layers": 2,
            "dropout": 0.0,
        },
        "tokenizer": {"vocab_size": 400},
        "generation": {"beam": 1},
        **changes,
    }
    values["training"] = {
        "steps": 300,
        "validate_every": 0,
        "batch_tokens": 512,
        "learning_rate": 5e-3,
        "schedule": "cosine",
        "warmup_steps": 40,
        "ema_decay": 0.98,
        "save_every": 0,
        **(training or {}),
    }
    return TranslationConfig.from_dict(values)


def write_rows(path: Path, count: int, rearrange: Callable[[Symbols], Symbols], seed: int) -> str:
    """Random symbols and what becomes of them, tab-separated."""
    draw = random.Random(seed)
    rows = []
    for _ in range(count):
        symbols = [draw.choice("abcdefghij") for _ in range(draw.randint(2, 6))]
        rows.append(f"{' '.join(symbols)}\t{' '.join(rearrange(symbols))}\n")
    path.write_text("".join(rows), encoding="utf-8")
    return str(path)


def symbol_files(
    folder: Path,
    rearrange: Callable[[Symbols], Symbols] = lambda row: row[::-1],
    *,
    train: int = 6000,
    valid: int = 200,
) -> Files:
    """Files of random symbols, reversed unless told otherwise."""
    return Files(
        (write_rows(folder / "train.tsv", train, rearrange, seed=1),),
        (write_rows(folder / "valid.tsv", valid, rearrange, seed=2),),
    )
