"""Masked words from plain text to filled gaps."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.config import read_mapping
from heedful.data.report import TextReport
from heedful.tasks.masked.data import read_texts
from heedful.tasks.masked.task import MaskedConfig, MaskedTask
from heedful.tasks.run import Files, TooLittleDataError, train
from heedful.training.errors import Interrupted

VOCABULARY = ["하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟"]
SIZE = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_layers": 1, "max_length": 16, "dropout": 0.0}


def config(training: dict[str, Any] | None = None, **changes: Any) -> MaskedConfig:
    defaults = {"warmup_steps": 20, "batch_tokens": 1024, "device": "cpu", "validate_every": 0, "weight_decay": 0.0}
    values = {"tokenizer": {"vocab_size": 400}, "model": SIZE, **changes}
    return MaskedConfig.from_dict(
        {**values, "training": {**defaults, "steps": 150, "learning_rate": 5e-3, **(training or {})}}
    )


def configured() -> MaskedTask:
    task = MaskedTask()
    task.config = config()
    return task


def counting(path: Path, count: int, seed: int = 0) -> str:
    """One word again and again: which one a gap hides, the others say."""
    draw = random.Random(seed)
    path.write_text("".join(f"{' '.join([draw.choice(VOCABULARY)] * draw.randint(4, 8))}\n" for _ in range(count)))
    return str(path)


def test_a_certain_pattern_is_learned(tmp_path: Path) -> None:
    """Which word is behind a gap, the others say."""
    longer = tmp_path / "b.txt"  # than any in training, which else would be in validation too
    longer.write_text("".join(f"{' '.join([word] * 9)}\n" for word in VOCABULARY))
    files = Files((counting(tmp_path / "a.txt", 1000),), (str(longer),))
    train(MaskedTask(), config(), files, tmp_path / "run")
    validation = read_mapping(tmp_path / "run/metrics.json")["validation"]
    scores = {name: score["value"] for name, score in validation["scores"].items()}
    assert scores["accuracy"] >= 95
    assert scores["perplexity"] == pytest.approx(math.exp(scores["loss"]))
    assert scores["perplexity"] < 1.5
    assert 6 < scores["frequency_perplexity"] < 10  # eight words, equally frequent
    assert validation["n"] == 8
    model = heedful.load(tmp_path / "run", "masked-lm")
    assert model.predict(["둘 둘 <mask> 둘 둘", "<mask> 셋 셋 셋 셋"]) == ["둘 둘 둘 둘 둘", "셋 셋 셋 셋 셋"]
    assert "<mask>" in (tmp_path / "run/README.md").read_text()
    again = MaskedTask().evaluate(model, Files((str(longer),)))
    assert (again["n"], again["masked"]) == (8, validation["masked"])
    assert again["scores"]["loss"]["value"] == pytest.approx(scores["loss"], abs=1e-5)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    with pytest.raises(heedful.errors.DataError, match="no text to evaluate on"):
        MaskedTask().evaluate(model, Files((str(empty),)))


def test_the_loss_is_over_all_gaps_of_the_whole_text(tmp_path: Path) -> None:
    task, settings = MaskedTask(), config()
    (tmp_path / "data").mkdir()
    data, _ = task.prepare(settings, Files((counting(tmp_path / "a.txt", 200),)), tmp_path / "data", keep=False)
    job = task.bind(settings, data)
    module = job.module.eval()
    losses, rows = [], 0
    for batch in job.validation.fixed():
        rows += len(batch.rows)
        logits = module(batch.ids, batch.keep).flatten(0, 1).log_softmax(dim=-1)
        for place, target, is_real in zip(batch.places, batch.targets, batch.is_real, strict=True):
            if is_real:
                losses.append(-logits[place, target].item())
    assert rows == len(data.valid)
    assert job.validate(module)["loss"] == pytest.approx(np.mean(losses), abs=1e-5)


def test_a_run_that_is_stopped_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    files, settings = (
        Files((counting(tmp_path / "a.txt", 300),)),
        config({"steps": 12, "save_every": 3, "log_every": 1}),
    )

    def stop_at_seven(job: Any) -> list[Any]:
        def observer(event: Any) -> None:
            if getattr(event, "step", 0) == 7:
                raise Interrupted("stopped", 1)

        return [observer]

    train(MaskedTask(), settings, files, tmp_path / "whole")
    with pytest.raises(Interrupted):
        train(MaskedTask(), settings, files, tmp_path / "parts", watch=stop_at_seven)
    train(MaskedTask(), settings, files, tmp_path / "parts", resume=True)
    whole, parts = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "parts"))
    assert whole == parts


def test_texts_are_lines_or_paragraphs(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n\n  \nthree\n\nfour\nfive")
    (tmp_path / "b.txt").write_text("six\n")
    files = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    lines = [(text.text, text.line) for text in read_texts(files, "line", TextReport())]
    assert lines == [("one", 1), ("two", 2), ("three", 5), ("four", 7), ("five", 8), ("six", 1)]
    paragraphs = [(text.text, text.line) for text in read_texts(files, "paragraph", TextReport())]
    assert paragraphs == [("one\ntwo", 1), ("three", 5), ("four\nfive", 7), ("six", 1)]


def test_a_long_text_is_read_in_parts_to_its_end(tmp_path: Path) -> None:
    long = " ".join(VOCABULARY * 10)
    (tmp_path / "a.txt").write_text("".join(f"{word} {word}\n" for word in VOCABULARY * 10))
    (tmp_path / "b.txt").write_text(f"{long}\n")
    (tmp_path / "data").mkdir()
    files = Files((str(tmp_path / "a.txt"),), (str(tmp_path / "b.txt"),))
    data, _ = MaskedTask().prepare(config(), files, tmp_path / "data", keep=False)
    rows = [data.valid[row][0].tolist() for row in range(len(data.valid))]
    assert len(rows) > 5
    assert max(map(len, rows)) <= 16
    assert {(row[0], row[-1]) for row in rows} == {(1, 2)}
    ids = [index for row in rows for index in row[1:-1]]
    assert [1, *ids, 2] == data.tokenizer.encode(long)


def test_no_text_is_on_both_sides(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("".join(f"text {number % 100}\n" for number in range(300)))
    split, readings = configured().split(Files((str(tmp_path / "a.txt"),)))
    train_texts, valid_texts = ([text.text for text in part()] for part in (split.train, split.valid))
    assert len(train_texts) + len(valid_texts) == 300
    assert not set(train_texts) & set(valid_texts)
    assert len(valid_texts) > 0
    (tmp_path / "data").mkdir()
    _, readings = MaskedTask().prepare(config(), Files((str(tmp_path / "a.txt"),)), tmp_path / "data")
    assert readings.held_out == len(valid_texts)
    (tmp_path / "b.txt").write_text("text 3\nnew\n")
    split, readings = configured().split(Files((str(tmp_path / "a.txt"),), (str(tmp_path / "b.txt"),)))
    assert readings.train.dropped["also in validation"].count == 3
    assert [text.text for text in split.valid()] == ["text 3", "new"]


def test_a_small_corpus_always_has_something_to_validate_on(tmp_path: Path) -> None:
    for corpus in range(50):
        (tmp_path / "a.txt").write_text("".join(f"line {corpus} {number}\n" for number in range(25)))
        _, readings = configured().split(Files((str(tmp_path / "a.txt"),)))
        assert readings.held_out == 2  # a tenth at most


def test_too_few_texts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("alone\n\n")
    with pytest.raises(TooLittleDataError, match="1 texts are too few"):
        configured().split(Files((str(tmp_path / "a.txt"),)))
