"""A tiny model learns a source to its entropy, and cannot go below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_texts import Chain, small_config, write

import heedful
from heedful.config import read_mapping
from heedful.tasks.language_model.task import LanguageModelTask
from heedful.tasks.run import Files, train

LLAMA = {"preset": "llama-tiny", "d_model": 32, "n_heads": 2, "n_kv_heads": 1, "d_ff": 64, "n_layers": 1}


@pytest.mark.parametrize("model", [None, LLAMA | {"max_length": 16}], ids=["gpt2", "llama"])
def test_a_known_source_is_learned_to_its_entropy(model: dict[str, object] | None, tmp_path: Path) -> None:
    chain = Chain()
    text = chain.text(40_000, seed=1)
    train_part, valid_part = text[:36_000], text[36_000:]
    config = small_config({"steps": 300, "validate_every": 0}, **({} if model is None else {"model": model}))
    train(LanguageModelTask(), config, Files((write(tmp_path / "a.txt", text),)), tmp_path / "run")
    true = chain.nats(valid_part, before=train_part[-1]) / len(valid_part)
    validation = read_mapping(tmp_path / "run" / "metrics.json")["validation"]
    for name in ("loss", "loss_side_by_side"):
        assert 0.998 * true < validation["scores"][name]["value"] < 1.02 * true
    assert validation["n"] == len(valid_part)
    loaded = heedful.load(tmp_path / "run", "language-model")
    fresh = chain.text(3000, seed=5)
    (score,) = loaded.score([fresh])
    assert score.tokens == 3000
    assert score.nats == pytest.approx(chain.nats(fresh, before="\n"), rel=0.02)
    drawn = loaded.predict(["a"], temperature=1.0, max_new_tokens=2000)[0]  # far beyond its context of 16
    assert len(drawn) == 2000
    assert chain.nats(drawn, before="a") / 2000 == pytest.approx(true, rel=0.05)
