"""Running text: what is read, what is refused, and that no cut changes a character."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

from heedful.data import corpus
from heedful.data.corpus import Corpus, text_files
from heedful.data.report import CorpusReport
from heedful.errors import DataError


def whole(*files: Path, start: int = 0, stop: int | None = None) -> str:
    return "".join(passage.text for passage in Corpus(files, start, stop))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def test_files_folders_packed_text_and_json_lines_are_documents(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.txt", "one\ntwo\n")
    write(tmp_path / "b" / "c.md", "# three")
    (tmp_path / "b" / "d.txt.gz").write_bytes(gzip.compress("넷\n".encode()))
    write(tmp_path / "b" / "e.jsonl", '{"text": "five", "id": 1}\n\n{"text": "s\\nix"}\n')
    write(tmp_path / "b" / ".hidden.txt", "no")
    write(tmp_path / "b" / "picture.png", "no")
    reading = CorpusReport()
    files = text_files([plain, tmp_path / "b"], reading)
    text = Corpus(tuple(files))
    text.survey(reading)
    passages = [(passage.text, Path(passage.file).name, passage.line, passage.begins) for passage in text]
    assert passages == [
        ("one\ntwo\n", "a.txt", 1, True),
        ("# three", "c.md", 1, True),
        ("넷\n", "d.txt.gz", 1, True),
        ("five", "e.jsonl", 1, True),
        ("s\nix", "e.jsonl", 3, True),
    ]
    assert [text for _, text in text.documents()] == [row[0] for row in passages]
    assert (reading.total, reading.characters) == (5, 8 + 7 + 2 + 4 + 4)
    assert {reason: tally.count for reason, tally in reading.skipped.items()} == {"not recognized": 1}
    assert json.loads(json.dumps(reading.to_dict()))["different_characters"] == len(
        set("one\ntwo\n# three넷\nfives\nix")
    )


def test_a_file_that_is_named_is_text_whatever_its_ending(tmp_path: Path) -> None:
    assert whole(*text_files([write(tmp_path / "input", "to be")])) == "to be"


def test_line_ends_a_mark_and_taken_apart_characters_are_put_right(tmp_path: Path) -> None:
    assert whole(write(tmp_path / "a.txt", "\ufeff\u1112\u1161\u11ab\r\nb\rc")) == "한\nb\rc"


@pytest.mark.parametrize(
    "text", ["word " * 400, "line\n" * 400, "ab" * 3000, "가 나\n\n  다\r\n" * 200, "x" + "é" * 900]
)
def test_passages_are_the_text_wherever_it_is_cut(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.txt", text)
    expected = text.replace("\r\n", "\n")
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(corpus, "PASSAGE", size)
        passages = list(Corpus((path,)))
        assert "".join(passage.text for passage in passages) == expected
        assert list(Corpus((path, path)).documents()) == [(f"{path}:1", expected)] * 2
        assert [passage.begins for passage in passages] == [True] + [False] * (len(passages) - 1)
        read = ""
        for passage in passages:
            assert passage.line == read.count("\n") + 1
            read += passage.text


def test_a_cut_corpus_is_a_slice_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "PASSAGE", 50)
    files = (
        write(tmp_path / "a.txt", "line one\n" * 20),
        write(tmp_path / "b.txt", ""),
        write(tmp_path / "c.txt", "end"),
    )
    text = whole(*files)
    draw = random.Random(0)
    for _ in range(50):
        start, stop = sorted(draw.randint(0, len(text) + 2) for _ in range(2))
        assert whole(*files, start=start, stop=stop) == text[start:stop]
        if start < len(text):
            first = next(iter(Corpus(files, start)))
            assert (first.begins, first.line) == (start in (0, 180), text[:start].count("\n") + 1 if start < 180 else 1)


@pytest.mark.parametrize(
    ("name", "raw", "why"),
    [
        ("a.txt", b"one\ntw\xff\n", r"a\.txt:2: byte 0xff at 3 is not UTF-8"),
        ("a.txt", "가나\n다".encode("cp949"), r"a\.txt:1: .*CP949"),
        ("a.txt", "one".encode("utf-16"), "UTF-16; convert it"),
        ("a.txt", b"one \xed\x95", r"a\.txt:1: byte 0xed"),
        ("a.txt", b"x" * (1 << 20) + b"\xff", "byte 0xff is not UTF-8"),
        ("a.txt.gz", gzip.compress(b"one" * 100, mtime=0)[:20], "ends too early"),
        ("a.jsonl", b'{"text": 3}', r'a\.jsonl:1: an object with a text under "text" .* the keys text'),
        ("a.jsonl", b'\n{"body": "x", "id": 1}', r"a\.jsonl:2: .*the keys body, id"),
        ("a.jsonl", b"[1]", r"not \[1\]"),
        ("a.jsonl", b"{", "not JSON"),
        ("a.jsonl", b'{"text": "\\ud800"}', "half a surrogate pair"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl:1: (the JSON is nested|not JSON)"),
        ("a.txt", b"", "there is no text to learn from"),
        ("a.txt", b" \n\t\n", "only white space"),
        ("a.jsonl", b'{"text": ""}\n', "there is no text"),
    ],
)
def test_what_is_no_text_is_refused_with_its_place(name: str, raw: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=why):
        Corpus((tmp_path / name,)).survey(CorpusReport())


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.txt: no such file"):
        text_files([tmp_path / "none.txt"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="the folder is empty"):
        text_files([tmp_path / "empty"])
    write(tmp_path / "empty" / "a.py", "x")
    with pytest.raises(DataError, match=r"not recognized: 1 .*a\.py"):
        text_files([tmp_path / "empty"])
    path = write(tmp_path / "a.txt", "x")
    with pytest.raises(DataError, match="given twice"):
        text_files([path, path])
    with pytest.raises(DataError, match="no file was given"):
        text_files([])


def test_an_empty_document_among_others_is_counted_and_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"text": "a"}\n{"text": ""}\n{"text": "b"}\n')
    reading, text = CorpusReport(), Corpus((path,))
    text.survey(reading)
    assert [passage.text for passage in text] == ["a", "b"]
    assert reading.total == 2
    assert str(reading.skipped["empty"]) == f"1 ({path}:2)"
