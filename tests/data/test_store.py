"""A store gives back what was written, takes no memory, and is whole or not there."""

from __future__ import annotations

import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.pairs import Pair
from heedful.data.store import Encoded, TokenStore, encode_pairs
from heedful.data.tokenizer import Tokenizer
from heedful.errors import DataError

ROWS: list[Encoded] = [
    ([5, 6, 7], [8], ("a.tsv", 1)),
    ([9], [], ("자료/\udcffb.po", 70_000)),
    ([65_535], [3, 4], ("a.tsv", 3)),
]
ids = st.lists(st.integers(0, 99_999), max_size=6)


def contents(store: TokenStore) -> list[Encoded]:
    rows: list[Encoded] = []
    for row in range(len(store)):
        source, target = store[row]
        file, _, line = store.place(row).rpartition(":")
        rows.append((source.tolist(), target.tolist(), (file, int(line))))
    return rows


def test_what_was_written_is_read(tmp_path: Path) -> None:
    TokenStore.write(tmp_path / "new" / "train", iter(ROWS), vocab_size=65_536)
    store = TokenStore(tmp_path / "new" / "train")
    assert contents(store) == ROWS
    assert store.lengths.tolist() == [[3, 1], [1, 0], [1, 2]]
    assert store.lengths.dtype == np.int32
    assert store.place(1) == "자료/\udcffb.po:70000"  # a name that is not UTF-8, as Python reads it
    assert store[0][0].dtype == np.uint16
    for outside in (-1, 3):
        with pytest.raises(IndexError, match="rows 0 to 2"):
            store[outside]


@given(rows=st.lists(st.tuples(ids, ids, st.tuples(st.sampled_from("xyz"), st.integers(0, 9))), min_size=1))
def test_any_rows_are_kept_with_a_large_vocabulary(
    rows: list[Encoded], tmp_path_factory: pytest.TempPathFactory
) -> None:
    store = TokenStore.write(tmp_path_factory.mktemp("store"), rows, vocab_size=100_000)
    assert contents(store) == rows


def test_the_fingerprint_is_that_of_the_content(tmp_path: Path) -> None:
    prints = [
        TokenStore.write(tmp_path / str(index), rows, vocab_size=65_536).fingerprint
        for index, rows in enumerate([ROWS, ROWS, ROWS[:2], [ROWS[0], ROWS[1], ([65_535, 3], [4], ("a.tsv", 3))]])
    ]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3
    assert len(prints[0]) == 64


def test_writing_and_reading_take_no_memory(tmp_path: Path) -> None:
    def many() -> Iterator[Encoded]:
        for line in range(30_000):
            yield [line % 1000] * 40, [7] * 40, ("big.tsv", line)

    tracemalloc.start()
    store = TokenStore.write(tmp_path, many(), vocab_size=1000)
    assert sum(len(store[row][0]) for row in range(len(store))) == 30_000 * 40
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    size = (tmp_path / "tokens.bin").stat().st_size
    assert size == 30_000 * 80 * 2
    assert peak < size  # three write buffers of 1 MiB, and 8 bytes a row


@pytest.mark.parametrize("name", ["tokens.bin", "lengths.bin", "places.bin", "meta.json"])
@pytest.mark.parametrize("damage", ["cut", "longer", "altered", "emptied", "gone"])
def test_a_damaged_store_is_refused(tmp_path: Path, name: str, damage: str) -> None:
    TokenStore.write(tmp_path, ROWS, vocab_size=65_536)
    path = tmp_path / name
    raw = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        wrong = {"cut": raw[:-1], "longer": raw + b"\x00", "altered": bytes([raw[0] ^ 1]) + raw[1:], "emptied": b""}
        path.write_bytes(wrong[damage])
    with pytest.raises(DataError, match=r"delete the folder and build it again|build it \(again\)"):
        TokenStore(tmp_path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"format": 1', '"format": 2'),
        ('"rows": 3', '"rows": 2'),
        ('"rows": 3', '"rows": null'),
        ('"bits": 16', '"bits": 32'),
        ('"bits": 16', '"bits": 8'),
        ('"tokens.bin"', '"others.bin"'),
        ('"files"', '"flies"'),
        ("a.tsv", "c.tsv"),
    ],
)
def test_a_meta_file_that_disagrees_is_refused(tmp_path: Path, old: str, new: str) -> None:
    TokenStore.write(tmp_path, ROWS, vocab_size=65_536)
    meta = (tmp_path / "meta.json").read_text(encoding="utf-8")
    assert old in meta
    (tmp_path / "meta.json").write_text(meta.replace(old, new), encoding="utf-8")
    with pytest.raises(DataError, match="cannot be used"):
        TokenStore(tmp_path)


def test_a_failure_while_encoding_leaves_the_old_store(tmp_path: Path) -> None:
    def broken() -> Iterator[Encoded]:
        yield ROWS[0]
        raise KeyboardInterrupt

    TokenStore.write(tmp_path, ROWS, vocab_size=65_536)
    with pytest.raises(KeyboardInterrupt):
        TokenStore.write(tmp_path, broken(), vocab_size=65_536)
    assert contents(TokenStore(tmp_path)) == ROWS
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("moment", range(4))
def test_a_crash_between_the_renames_leaves_no_store_rather_than_a_mixed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    TokenStore.write(tmp_path, ROWS, vocab_size=65_536)
    really, calls = os.replace, 0

    def replace(source: Path, target: Path) -> None:
        nonlocal calls
        if calls == moment:
            raise OSError("the power went out")
        calls += 1
        really(source, target)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(OSError, match="power"):
        TokenStore.write(tmp_path, ROWS[:1], vocab_size=65_536)
    with pytest.raises(DataError, match="not finished"):
        TokenStore(tmp_path)
    monkeypatch.undo()
    assert contents(TokenStore.write(tmp_path, ROWS[:1], vocab_size=65_536)) == ROWS[:1]


def test_an_open_store_stays_as_it_was_while_a_new_one_takes_its_place(tmp_path: Path) -> None:
    old = TokenStore.write(tmp_path, ROWS, vocab_size=65_536)
    TokenStore.write(tmp_path, ROWS[:1], vocab_size=65_536)
    assert contents(old) == ROWS


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "no pair to store"),
        ([([5], [10], ("a.tsv", 4))], r"a\.tsv:4: an id is not in the vocabulary, which goes from 0 to 9"),
        ([([-1], [1], ("a.tsv", 4))], r"a\.tsv:4: an id"),
        ([([1], [1], ("a.tsv", -4))], r"the line -4"),
    ],
)
def test_rows_that_cannot_be_stored_are_refused(tmp_path: Path, rows: list[Encoded], words: str) -> None:
    with pytest.raises(DataError, match=words):
        TokenStore.write(tmp_path, rows, vocab_size=10)


def never(pair: Pair, tokens: int) -> None:
    pytest.fail(f"{pair} with {tokens} tokens is not too long")


class TestEncodePairs:
    korean = Tokenizer.train(["고양이가 쥐를 잡았다"] * 3)
    english = Tokenizer.train(["the cat caught the mouse"] * 3)
    pairs = tuple(Pair("고양이가 쥐를", "the cat" + " the" * index, "a.tsv", index + 1) for index in range(10))

    def test_each_side_has_its_tokenizer(self) -> None:
        rows = list(encode_pairs(self.pairs, self.korean, self.english, max_tokens=99, too_long=never, chunk=3))
        assert rows == [
            (self.korean.encode(pair.source), self.english.encode(pair.target), (pair.file, pair.line))
            for pair in self.pairs
        ]

    def test_what_is_too_long_is_told_and_left_out(self) -> None:
        dropped: list[tuple[int, int]] = []
        rows = encode_pairs(
            self.pairs,
            self.korean,
            self.english,
            max_tokens=5,
            too_long=lambda pair, tokens: dropped.append((pair.line, tokens)),
        )
        assert [line for _, _, (_, line) in rows] == [1, 2, 3]  # "the cat the the" and the end are 5 tokens
        assert dropped == [(line, line + 2) for line in range(4, 11)]

    def test_no_more_is_read_than_a_chunk(self) -> None:
        source = iter(self.pairs)
        next(encode_pairs(source, self.korean, self.english, max_tokens=99, too_long=never, chunk=4))
        assert next(source).line == 5

    def test_damaged_text_is_named_by_its_place(self) -> None:
        damaged = [*self.pairs[:2], Pair("고양이가", "the \udc00", "b.jsonl", 7)]
        with pytest.raises(DataError, match=r"b\.jsonl:7: half a surrogate pair, U\+DC00, is at character 4"):
            list(encode_pairs(damaged, self.korean, self.english, max_tokens=99, too_long=never))


def test_pairs_that_are_all_too_long_are_counted(tmp_path: Path) -> None:
    tokenizer = Tokenizer.train(["a b c d"], vocab_size=300)
    pairs = [Pair("a " * n, "b", "pairs.tsv", n) for n in (5, 9)]
    rows = encode_pairs(pairs, tokenizer, tokenizer, max_tokens=3, too_long=lambda pair, length: None)
    with pytest.raises(DataError, match=r"all 2 pairs are longer than data\.max_tokens=3; the shortest has \d+ tokens"):
        TokenStore.write(tmp_path, rows, vocab_size=300)
