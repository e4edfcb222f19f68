"""Every kind of bad input has its answer: an error that says file, line and what to do, or a counted skip."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from bad_files import bomb, drops, little_memory, refused
from corpus_writers import WRITERS, packed, texts_of, write
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.errors import DataError

PAIRS = [("Good morning.", "안녕하세요."), ("Where is it?", "어디예요?")]


# ── bytes that are not the text they should be


def test_cp949_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes("Hi\tok\nHello\t안녕하세요\n".encode("cp949"))
    refused(path, r"a\.tsv:2: byte 0xbe at 7 is not UTF-8; the line reads as CP949 .*iconv -f CP949 -t UTF-8")


@pytest.mark.parametrize("name", ["a.tsv", "train.ko", "a.jsonl"])
def test_invalid_utf8_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    write(tmp_path / "train.en", "a\nb\n")
    path = tmp_path / name
    path.write_bytes(
        b'{"en": "a", "ko": "b"}\n\xff\t\n'
        if name == "a.jsonl"
        else b"a\tb\n\xff\xfe\n".replace(b"\t", b" " if "train" in name else b"\t")
    )
    refused(path, r":2: byte 0xff at 1 is not UTF-8; convert the file to UTF-8")


def test_utf16_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes("Hello\t안녕\n".encode("utf-16"))
    refused(path, "the text is UTF-16; convert it: iconv -f UTF-16 -t UTF-8")


def test_bom_and_line_ends_and_separators_within_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "\ufeffHello\t안녕\r\nA\u2028B\u0085C\x0bD\t나\x1c\n")
    assert texts_of(path) == [("Hello", "안녕"), ("A\u2028B\u0085C\x0bD", "나\x1c")]


@pytest.mark.parametrize("name", ["a.tsv", "a.en"])
def test_a_carriage_return_inside_is_dropped(name: str, tmp_path: Path) -> None:
    """A file with the line ends of old would otherwise be one pair made of many."""
    write(tmp_path / "a.ko", "가\n나\n")
    path = write(tmp_path / name, "a\t가\rb\t나\r\nc\t다\n" if name == "a.tsv" else "a\rb\r\nc\n")
    assert drops(path) == (1, {"carriage return inside": ["1"]})


def test_surrogates_and_nul_pass_to_the_cleaner(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", json.dumps({"en": "a\0", "ko": "\ud800"}))
    assert texts_of(path) == [("a\0", "\ud800")]


# ── lines, columns, counts


def test_unequal_line_counts(tmp_path: Path) -> None:
    write(tmp_path / "a.en", "a\nb\nc\nd\n")
    write(tmp_path / "a.ko", "가\n나\n")
    refused(tmp_path / "a.en", r"a\.en has 4 lines, but .*a\.ko has 2")


def test_no_partner(tmp_path: Path) -> None:
    refused(write(tmp_path / "a.en.gz", "a\n"), r"neither a\.ko\.gz nor a\.ko beside it")


def test_one_column(tmp_path: Path) -> None:
    refused(write(tmp_path / "a.tsv", "\nHello there\nx\ty\n"), r"a\.tsv:2: one column; two or more were expected")
    path = write(tmp_path / "b.tsv", "a\t가\nb\n\nc\t다\n")
    assert drops(path) == (2, {"too few columns": ["2"], "empty": ["3"]})


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.po", "a.mo", "a.jsonl", "a.tmx", "a.xlf", "a.en", "a.xyz"])
@pytest.mark.parametrize("pack", [False, True])
def test_an_empty_file(name: str, pack: bool, tmp_path: Path) -> None:
    path = write(tmp_path / name, "")
    refused(packed(path) if pack else path, "the file is empty")


def test_missing_and_unreadable_and_odd_files(tmp_path: Path) -> None:
    refused(tmp_path / "no.tsv", "No such file")
    os.mkfifo(tmp_path / "pipe.tsv")
    refused(tmp_path / "pipe.tsv", "neither a file nor a folder")
    with pytest.raises(DataError, match="no file was given"):
        texts_of([])


def test_an_unreadable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write(tmp_path / "a.tsv", "a\tb\n")
    monkeypatch.setattr(Path, "open", denied)
    refused(path, "Permission denied")


@pytest.mark.parametrize("codes", [("en", "EN"), ("pt", "pt-BR"), ("", "ko"), ("../x", "ko"), ("en", "korean!")])
def test_bad_language_codes(codes: tuple[str, str], tmp_path: Path) -> None:
    with pytest.raises(DataError, match="language"):
        texts_of(write(tmp_path / "a.tsv", "a\tb\n"), *codes)


def test_a_message_does_not_repeat_a_whole_file(tmp_path: Path) -> None:
    long = "x" * 70_000
    tmx = f'<tmx version="1.4"><tu><tuv xml:lang="{long}"><seg>a</seg></tuv></tu></tmx>'
    po = f'msgid ""\nmsgstr "Language: {long}\\n"\n\nmsgid "a"\nmsgstr "b"\n'
    for name, content in (("a.tmx", tmx), ("a.po", po), ("a.jsonl", f'{{"{long}": 1}}\n')):
        with pytest.raises(DataError, match="xxx … xxx") as caught:
            texts_of(write(tmp_path / name, content))
        assert str(caught.value).startswith(str(tmp_path / name))
        assert len(str(caught.value)) < 4100


def test_columns_without_the_languages(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"columns en,de do not name both languages; say for example en,ko"):
        texts_of(write(tmp_path / "a.tsv", "a\tb\n"), columns=("en", "de"))


# ── much of it


@pytest.mark.parametrize("name", ["a.tsv.gz", "a.jsonl.gz", "a.en.gz"])
def test_a_line_of_200_mb_is_skipped_in_little_memory(name: str, tmp_path: Path) -> None:
    write(tmp_path / "a.ko", "가\n나\n다\n")
    fine = {"a.tsv.gz": "a\t가\n", "a.jsonl.gz": '{"en": "a", "ko": "b"}\n', "a.en.gz": "a\n"}[name]
    path = bomb(tmp_path / name, fine, "\n" + fine)
    with little_memory():
        assert drops(path) == (2, {"too long": ["2"]})


def test_the_longest_line_that_is_read(tmp_path: Path) -> None:
    edge = (1 << 20) - len("\ta\n")
    path = write(tmp_path / "a.tsv", f"x\ty\n{'b' * edge}\ta\n{'b' * (edge + 1)}\ta\nc\td\n")
    assert drops(path) == (3, {"too long": ["3"]})


# ── broken containers


def test_truncated_and_damaged_gz(tmp_path: Path) -> None:
    whole = gzip.compress("".join(f"sentence {n}\t문장 {n * n}\n" for n in range(50_000)).encode())
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "the compressed file ends too early")
    path.write_bytes(whole[:-8] + b"\0" * 4 + whole[-4:])  # the checksum
    refused(path, "the compressed file is damaged")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"en": "a", "ko": "b"}\n{"en": "a"', r":2: not JSON"),
        ('{"en": "a", "ko": "b"}\n["a", "b"]', r":2: a JSON object was expected, not list"),
        ('{"en": "a", "ko": "b"}\n{"en": "a", "ko": 3}', r":2: text was expected, not int"),
        ('{"en": "a", "de": "b"}\n', r":1: no key for en and ko; the keys are en, de"),
        ('{"en": "a", "ko": "b"}\n' + "[" * 200_000, r":2: the JSON is nested too deeply"),
        ('{"en": "a", "ko": "b"}\n{"x": ' + "9" * 5000 + "}", r":2: not JSON"),
    ],
)
def test_bad_json(content: str, message: str, tmp_path: Path) -> None:
    refused(write(tmp_path / "a.jsonl", content), message)


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_damage_anywhere_is_an_answer_and_no_crash(name: str, data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = WRITERS[name](Path(folder), [("Good morning.", "안녕하세요."), ("Where is it?", "어디예요?")])
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 4))):
            start = data.draw(st.integers(0, len(content)))
            cut = data.draw(st.integers(0, 9))
            content[start : start + cut] = data.draw(st.binary(max_size=9))
        path.write_bytes(content)
        with suppress(DataError):
            texts_of(path)
