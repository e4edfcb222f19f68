"""`heedful.train`: what data it takes, and that a run from memory is the same as one from files."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.data.image_sets import image_sources
from heedful.data.in_memory import data_files
from heedful.data.labeled_texts import read_labeled_texts
from heedful.data.questions import read_questions
from heedful.data.readers import read_pairs
from heedful.data.series.tables import read_series
from heedful.data.tagged import read_tagged
from heedful.errors import ConfigError, DataError, HeedfulError
from heedful.families.weights import weights_of

WORDS = ["sun", "rain", "wind", "snow", "fog", "hail", "heat", "frost", "cloud", "storm"]
REVIEWS = [(f"{a} and {b}", "good" if a < b else "bad") for a in WORDS for b in WORDS]
PAIRS = [(f"the {a} follows the {b}", f"der {b.upper()} vor dem {a.upper()}") for a in WORDS for b in WORDS]
SMALL: dict[str, Any] = {"preset": "tiny", "device": "cpu", "progress": False, "training": {"steps": 3}}


class Frame(SimpleNamespace):
    """As much of a data frame as is used."""

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def frame(**values: Any) -> Frame:
    return Frame(columns=list(values), values=values)


def assert_same_weights(one: Any, other: Any) -> None:
    ours, theirs = weights_of(one.module), weights_of(other.module)
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name].numpy(), theirs[name].numpy()) for name in ours)


def test_classifiers_from_memory_and_from_a_file_have_the_same_weights(tmp_path: Path) -> None:
    file = tmp_path / "reviews.tsv"
    file.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in REVIEWS), encoding="utf-8")
    from_file = heedful.train("classification", file, out=tmp_path / "file", **SMALL)
    from_tuples = heedful.train("classification", iter(REVIEWS), **SMALL)
    assert_same_weights(from_tuples, from_file)
    assert from_tuples.predict(["sun and rain"]) == heedful.load(tmp_path / "file").predict(["sun and rain"])
    texts, labels = zip(*REVIEWS, strict=True)
    table = frame(stars=np.array(labels), review=np.array(texts))
    assert_same_weights(heedful.train("classification", table, columns=("review", "stars"), **SMALL), from_file)


def test_translators_from_memory_and_from_a_file_have_the_same_weights(tmp_path: Path) -> None:
    lines = [f"{source}\t{target}\n" for source, target in PAIRS]
    train, valid = tmp_path / "train.tsv", tmp_path / "valid.tsv"
    train.write_text("".join(lines[:90]), encoding="utf-8")
    valid.write_text("".join(lines[90:]), encoding="utf-8")
    settings: dict[str, Any] = {"source": "en", "target": "de", **SMALL, "generation.beam": 1}
    from_file = heedful.train("translation", [str(train)], valid=[valid], **settings)
    dicts = [{"de": target, "en": source} for source, target in PAIRS[:90]]
    from_memory = heedful.train("translation", dicts, valid=PAIRS[90:], out=tmp_path / "run", **settings)
    assert_same_weights(from_memory, from_file)
    assert from_memory.settings.generation.beam == 1
    resumed = heedful.train("translation", dicts, valid=PAIRS[90:], out=tmp_path / "run", resume=True, **settings)
    assert_same_weights(resumed, from_file)


def test_a_run_is_replaced_only_if_asked(tmp_path: Path) -> None:
    heedful.train("classification", REVIEWS, out=tmp_path, **SMALL)
    inputs = (tmp_path / "inputs/train.jsonl").read_bytes()
    with pytest.raises(HeedfulError, match="holds a run already"):
        heedful.train("classification", REVIEWS[:50], out=tmp_path, **SMALL)
    assert (tmp_path / "inputs/train.jsonl").read_bytes() == inputs
    heedful.train("classification", REVIEWS[:50], out=tmp_path, overwrite=True, **SMALL)
    assert (tmp_path / "inputs/train.jsonl").read_bytes() != inputs


def test_progress_is_printed_unless_it_is_turned_off(capsys: pytest.CaptureFixture[str]) -> None:
    heedful.train("classification", REVIEWS, **SMALL)
    assert capsys.readouterr().out == ""
    heedful.train("classification", REVIEWS, **(SMALL | {"progress": True}))
    shown = capsys.readouterr().out
    assert "Training data" in shown
    assert "Validation" in shown
    assert "The model is in" not in shown, "the folder is gone"


def in_memory(task: str, data: Any, folder: Path) -> str:
    (path,) = data_files(task, data, folder, "train")
    return path


def test_every_task_reads_its_items(tmp_path: Path) -> None:
    def read(task: str, data: Any) -> str:
        return in_memory(task, data, tmp_path / task)

    (pair,) = read_pairs(read("translation", [("하나\n둘", "one two")]), "ko", "en")
    assert pair.texts == ("하나\n둘", "one two")
    (labeled,) = read_labeled_texts(read("classification", [("a", "b", 3)]))
    assert (labeled.texts, labeled.label) == (("a", "b"), "3")
    (question,) = read_questions([read("question-answering", [("Who?", "Bo, Al", "Al", 4)])])
    assert (question.question, question.answers[0].start) == ("Who?", 4)
    (tagged,) = read_tagged([read("tagging", [(["Al", "sings"], ("B-PER", "O"))])])
    assert (tagged.tokens, tagged.tags) == (["Al", "sings"], ("B-PER", "O"))
    texts = Path(read("masked-lm", {"text": ["one", "둘"]})).read_text(encoding="utf-8")
    assert [json.loads(line) for line in texts.splitlines()] == [{"text": "one"}, {"text": "둘"}]
    assert data_files("language-model", [Path("a.txt")], tmp_path, "train") == ("a.txt",)
    assert data_files("translation", ["a.tsv", "b.tsv"], tmp_path, "train") == ("a.tsv", "b.tsv")


def test_images_keep_their_pixels(tmp_path: Path) -> None:
    gray, fractions = np.arange(12, dtype=np.uint8).reshape(3, 4), np.full((3, 4), 0.2)
    color = np.arange(27, dtype=np.uint8).reshape(3, 3, 3)
    paths = data_files("images", [(gray, "a"), (color, 1), (fractions, np.int64(2))], tmp_path, "train")
    images = [image for source in image_sources(paths) for image in source.images()]
    assert [image.label for image in images] == ["a", "2", "1"]
    for image, pixels in zip(images, (gray, np.full((3, 4), 51), color), strict=True):
        assert np.array_equal(np.asarray(image.image), pixels)


def test_series_keep_every_digit(tmp_path: Path) -> None:
    days = np.arange("2024-01-01", "2024-01-05", dtype="datetime64[D]").astype("datetime64[ns]")
    prices = [0.1 + 0.2, float("nan"), 1e-300, 3]
    table = Frame(columns=["price"], values={"price": np.array(prices)}, index=days)
    path = in_memory("forecasting", table, tmp_path)
    (series,) = read_series([Path(path)])
    np.testing.assert_array_equal(series.values[:, 0], prices)
    assert series.times is not None
    assert np.array_equal(series.times, days)
    with Path(path).open(encoding="utf-8") as file:
        assert next(csv.reader(file)) == ["date", "price"]


@pytest.mark.parametrize(
    ("task", "data", "message"),
    [
        ("classification", [("a", "b"), ("a",)], r"item 1 of the data is a tuple of 1; .*\(text, label\)"),
        ("tagging", [3], r"item 0 of the data is a int; for tagging, items are \(tokens, tags\)"),
        ("forecasting", [1.0, 2.0], r"give a mapping such as"),
    ],
)
def test_items_of_another_form_are_named(task: str, data: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=message):
        data_files(task, data, tmp_path, "train")


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("clasification", {}, r"unknown task 'clasification' \(did you mean 'classification'"),
        ("classification", {"preste": "tiny"}, r"unknown key 'preste'"),
        ("classification", {"training": {"setps": 3}}, r"unknown key 'setps' \(did you mean 'steps'"),
        ("translation", {"source": "en"}, "target is missing"),
        ("forecasting", {"valid": {"price": [1.0]}}, "leave out valid"),
    ],
)
def test_settings_that_do_not_exist_are_refused(task: Any, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        heedful.train(task, REVIEWS, progress=False, **settings)
