"""Texts whose source is known, and small runs on them, for the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from heedful.tasks.language_model.data import LanguageModelConfig

LETTERS = "abcde\n"


class Chain:
    """Letters of which each depends on the one before: what a text costs under its true source is known exactly."""

    def __init__(self, seed: int = 0) -> None:
        random = np.random.default_rng(seed)
        self.steps = random.dirichlet(np.full(len(LETTERS), 0.5), size=len(LETTERS))

    def text(self, length: int, seed: int) -> str:
        draws = np.random.default_rng(seed).random(length)
        edges, state, actual = self.steps.cumsum(axis=1), 0, []
        for draw in draws:
            state = min(int(np.searchsorted(edges[state], draw)), len(LETTERS) - 1)
            actual.append(LETTERS[state])
        return "".join(actual)

    def nats(self, text: str, before: str) -> float:
        """Minus the log-probability of a text that follows a letter."""
        places = [LETTERS.index(letter) for letter in before + text]
        return float(-np.log(self.steps[places[:-1], places[1:]]).sum())


def small_config(training: dict[str, Any] | None = None, **changes: Any) -> LanguageModelConfig:
    """One layer of 32 over characters, a context of 16."""
    values: dict[str, Any] = {
        "tokenizer": {"kind": "characters"},
        "model": {
            "preset": "gpt2-tiny",
            "d_model": 32,
            "n_heads": 2,
            "d_ff": 64,
            "n_layers": 1,
            "max_length": 16,
            "dropout": 0.0,
            "embedding_dropout": 0.0,
            "attention_dropout": 0.0,
        },
        "generation": {"max_new_tokens": 40},
        **changes,
    }
    values["training"] = {
        "steps": 20,
        "validate_every": 10,
        "save_every": 0,
        "batch_tokens": 256,
        "learning_rate": 1e-2,
        "warmup_steps": 10,
        "ema_decay": 0.9,
        "weight_decay": 0.0,
        **(training or {}),
    }
    return LanguageModelConfig.from_dict(values)


def write(path: Path, text: str) -> str:
    """A file, and its name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return str(path)
