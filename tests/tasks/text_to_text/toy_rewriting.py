"""Two tasks for one model, told apart by what stands before a text; and runs so small that they take seconds."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from heedful.tasks.text_to_text.data import TextToTextConfig

WORDS = ["ant", "bee", "cat", "dog", "elk", "물", "책", "집"]
SIZE: dict[str, Any] = {"preset": "t5-tiny", "d_model": 64, "n_heads": 4, "d_head": 16, "d_ff": 128, "dropout": 0.0}
SIZE |= {"n_encoder_layers": 2, "n_decoder_layers": 2}
TRAINING = {"learning_rate": 5e-3, "warmup_steps": 50, "ema_decay": 0.99, "batch_tokens": 512, "device": "cpu"}
TRAINING |= {"validate_every": 0}


def toy_rows(count: int, seed: int = 0) -> list[tuple[str, str, str]]:
    """Prefix, source and target: words turned round, or the first of them."""
    draw = random.Random(seed)
    rows = []
    for number in range(count):
        words = [draw.choice(WORDS) for _ in range(draw.randint(2, 4))]
        reverse = number % 2 == 0
        target = " ".join(words[::-1]) if reverse else words[0]
        rows.append(("reverse:" if reverse else "first:", " ".join(words), target))
    return rows


def write_tsv(path: Path, rows: list[tuple[str, str, str]]) -> str:
    """With a header that says where the prefix is."""
    lines = ["id\ttask\tsource\ttarget", *("\t".join((str(number), *row)) for number, row in enumerate(rows))]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def write_jsonl(path: Path, rows: list[dict[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def small_config(training: dict[str, Any] | None = None, **changes: Any) -> TextToTextConfig:
    """Two layers of 64 on each side: enough to turn four words round."""
    usual = {"tokenizer": {"vocab_size": 400, "kind": "bpe"}, "model": SIZE} if "base" not in changes else {}
    return TextToTextConfig.from_dict({**usual, **changes, "training": {**TRAINING, **(training or {})}})
