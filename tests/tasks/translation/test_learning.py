"""The whole way, from a file to exact answers: tiny models must learn what a tiny model can."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from small_runs import Symbols, small_config, symbol_files

import heedful
from heedful.config import read_mapping
from heedful.tasks.translation.task import train

ONE_LAYER = {"d_model": 64, "d_ff": 128, "n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0.0}


@pytest.mark.parametrize("rearrange", [lambda row: row[::-1], sorted], ids=["reverse", "sort"])
def test_symbols_are_rearranged_to_the_letter(rearrange: Callable[[Symbols], Symbols], tmp_path: Path) -> None:
    train(small_config(model={"preset": "tiny", **ONE_LAYER}), symbol_files(tmp_path, rearrange), tmp_path / "run")
    translator = heedful.load(tmp_path / "run", "translation")
    draw = random.Random(3)
    rows = [[draw.choice("abcdefghij") for _ in range(draw.randint(2, 6))] for _ in range(200)]
    outputs = translator.predict([" ".join(row) for row in rows])
    right = sum(output == " ".join(rearrange(row)) for row, output in zip(rows, outputs, strict=True))
    assert right >= 198


@pytest.mark.parametrize("attention", ["additive", "none"])
def test_both_recurrent_models_learn_with_the_same_call(attention: str, tmp_path: Path) -> None:
    model = {"preset": "recurrent", "d_model": 64, "dropout": 0.0, "attention": attention}
    config = small_config({"steps": 150, "validate_every": 75, "batch_tokens": 256}, model=model)
    translator = train(config, symbol_files(tmp_path, lambda row: row), tmp_path / "run")
    validation = read_mapping(tmp_path / "run" / "metrics.json")["validation"]
    assert validation["scores"]["exact"]["value"] > (95 if attention == "additive" else 30)
    assert translator.predict(["a b c"]) == heedful.load(tmp_path / "run", "translation").predict(["a b c"])
