"""Files as they are found in the world: each mistake is one line with the file and, where there is one, the line."""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from shell import Done, heedful, quick_train

pytest_plugins = ["quick_model"]

KOREAN = "나는 학생이다.\tI am a student.\n"
BOMB = """<?xml version="1.0"?><!DOCTYPE t [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<tmx version="1.4"><body><tu><tuv xml:lang="ko"><seg>&b;</seg></tuv></tu></body></tmx>"""
BROKEN_PO = 'msgid ""\nmsgstr "Language: ko\\n"\n\nmsgid "a"\nmsgstr "b\n'

FAULTS = {
    "CP949": ("pairs.tsv", (KOREAN * 3).encode("cp949"), ":1: byte 0xb3", "iconv -f CP949 -t UTF-8"),
    "not text": ("pairs.tsv", KOREAN.encode() + b"\xff\xfe\x00\tx\n", ":2: byte 0xff", "convert the file to UTF-8"),
    "UTF-16": ("pairs.tsv", KOREAN.encode("utf-16"), ": the text is UTF-16", "iconv -f UTF-16"),
    "unequal": ("pairs.ko", "하나\n둘\n".encode(), "pairs.ko has 2 lines", "pairs.en has 1"),
    "no partner": ("alone.ko", "하나\n".encode(), "one side of a pair", "alone.en"),
    "empty": ("pairs.tsv", b"", ": the file is empty", ""),
    "one column": ("pairs.tsv", b"one\ntwo\n", ":1: one column", "tabs"),
    "wrong way round": (
        "pairs.tsv",
        b"I am here.\t" + "나는 여기 있다.\n".encode(),
        "wrong way round",
        "--columns en,ko",
    ),
    "entity bomb": ("pairs.tmx", BOMB.encode(), "pairs.tmx", "entit"),
    "broken XML": ("pairs.tmx", b'<tmx version="1.4"><body><tu>', "pairs.tmx", ""),
    "broken .po": ("ko.po", BROKEN_PO.encode(), "ko.po:5", ""),
    "broken JSON": ("pairs.jsonl", b'{"ko": "a", "en": "b"}\n{"ko": \n', "pairs.jsonl:2", ""),
    "cut-off gzip": ("pairs.tsv.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03KL", "ends too early", ""),
    "all useless": ("pairs.tsv", b"\ta\n\tb\n", "no sentence pair is left", "pairs.tsv:1"),
}


def korean(run: Path, *files: Path) -> Done:
    task = ("train", "translation", "--source", "ko", "--target", "en", "--out", run)
    return heedful(*task, "--data", *files, "--preset", "tiny", "--set", "training.steps=1")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_bad_file_is_named_in_one_line(fault: str, tmp_path: Path) -> None:
    name, content, *words = FAULTS[fault]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "pairs.en").write_text("one\n")
    done = korean(tmp_path / "run", tmp_path / name)
    assert done.code == 1, done.out
    (line,) = done.err.splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def test_a_missing_file_and_a_folder_without_data_are_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "picture.png").write_bytes(b"\x89PNG")
    for name, words in (("nowhere.tsv", "No such file"), ("folder", "no file of ko and en")):
        done = korean(tmp_path / "run", tmp_path / name)
        assert done.code == 1
        (line,) = done.err.splitlines()
        assert name in line
        assert words in line


def test_odd_lines_do_not_shift_the_others(tmp_path: Path) -> None:
    """A BOM, CRLF, NUL, U+2028 inside, a carriage return inside, a line of a megabyte, NFD, no end at the end."""
    good = [f"a b {n}\tb a {n}" for n in range(60)]
    odd = [
        "u\u2028v w\tw v u",
        "nul \0 here\there nul",
        "old\rmac\tmac old",
        "x" * 1_100_000 + "\tlong",
        "학\tdecomposed",
    ]
    data = tmp_path / "pairs.tsv"
    data.write_bytes(codecs.BOM_UTF8 + "\r\n".join([*good, *odd, "last one\tone last"]).encode())
    done = quick_train(tmp_path / "run", [data])
    assert done.code == 0, done.err
    table = " ".join(done.out.split())
    for words in (
        "pairs.tsv 66 ",
        "dropped: control character 1 pairs.tsv:62",
        "dropped: carriage return inside 1 pairs.tsv:63",
        "dropped: too long 1 pairs.tsv:64",
        "kept 63 ",
    ):
        assert words in table


def test_file_names_may_hold_anything_a_file_name_may(corpus: Path, tmp_path: Path) -> None:
    data = tmp_path / "two\nlines\t[red]x.tsv"
    data.write_bytes((corpus / "train.tsv").read_bytes())
    done = quick_train(tmp_path / "run", [data])
    assert done.code == 0, done.err
    assert "[red]x.tsv" in done.out


def test_files_of_a_folder_are_all_read_and_too_many_are_summed_up(corpus: Path, tmp_path: Path) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    rows = (corpus / "train.tsv").read_text().splitlines(keepends=True)
    for number in range(12):
        (folder / f"{number:02}.tsv").write_text("".join(rows[number::12]))
    done = quick_train(tmp_path / "run", [folder])
    assert done.code == 0, done.err
    table = " ".join(done.out.split())
    assert "07.tsv 25 tab-separated text 4 more files 100" in table
