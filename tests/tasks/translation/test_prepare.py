"""What happens to pairs between the files and the stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_runs import small_config, symbol_files

from heedful.data.pairs import Pair
from heedful.data.readers import files_of
from heedful.data.report import PairReport
from heedful.errors import DataError
from heedful.tasks.run import Files
from heedful.tasks.translation.data import validation_texts
from heedful.tasks.translation.task import TranslationTask


def test_a_pair_dropped_after_all_leaves_no_trace_but_the_count() -> None:
    short, long = Pair("a b", "c", "f", 1), Pair("a b c d", "e f", "f", 2)
    reading, other = PairReport(), PairReport()
    for pair in (short, long, short):
        reading.keep(*pair.texts)
    reading.drop_kept("too many tokens", long.place, *long.texts)
    other.keep(*short.texts)
    other.keep(*short.texts)
    actual, expected = reading.to_dict(), other.to_dict()
    for key in ("kept", "words", "characters"):
        assert actual[key] == expected[key]
    assert actual["dropped"] == {"too many tokens": {"count": 1, "first": ["f:2"]}}


def test_no_source_is_on_both_sides_of_what_is_held_out(tmp_path: Path) -> None:
    files = symbol_files(tmp_path, train=2000)
    config = small_config()
    prepared, readings = TranslationTask().prepare(config, Files(files.train), tmp_path / "data")
    sides = [{tuple(store[row][0]) for row in range(len(store))} for store in (prepared.train, prepared.valid)]
    assert not sides[0] & sides[1]
    assert readings.held_out == len(prepared.valid)
    assert readings.train.kept == len(prepared.train) + len(prepared.valid)
    again = TranslationTask().open(config, tmp_path / "data")
    assert again.identity() == prepared.identity()
    assert validation_texts(again) == validation_texts(prepared)


def test_validation_never_holds_a_training_pair(tmp_path: Path) -> None:
    files = symbol_files(tmp_path, train=500)
    prepared, readings = TranslationTask().prepare(small_config(), files, tmp_path / "data")
    pairs = [
        {(tuple(store[row][0]), tuple(store[row][1])) for row in range(len(store))}
        for store in (prepared.train, prepared.valid)
    ]
    assert not pairs[0] & pairs[1]
    reading = readings.train
    assert reading.dropped["also in validation"].count > 10  # rows of two symbols come again and again
    assert reading.total == reading.kept + sum(tally.count for tally in reading.dropped.values())
    with pytest.raises(DataError, match="no pairs are left to use; all 200 are dropped or also in validation"):
        TranslationTask().prepare(small_config(), Files(files.valid, files.valid), tmp_path / "data")


def test_every_file_that_is_read_is_known(tmp_path: Path) -> None:
    for name in ("a.tsv", "folder/train.ko", "folder/train.en", "folder/notes.md", "other.en", "other.ko"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("하나\tone\n" if name == "a.tsv" else "x\n")
    actual = files_of([tmp_path / "a.tsv", tmp_path / "folder", tmp_path / "other.en"], "ko", "en")
    expected = ("a.tsv", "folder/train.en", "folder/train.ko", "other.en", "other.ko")
    assert sorted(actual) == sorted(tmp_path / name for name in expected)
