"""What any writer wrote is what every reader reads, and what each format has of its own."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from corpus_writers import WRITERS, packed, texts_of, write
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.readers import read_pairs
from heedful.data.report import PairReport
from heedful.errors import DataError

PAIRS = [
    ("Good morning.", "안녕하세요."),
    ("Where is the station?", "역이 어디예요?"),
    ("The file is open.", "파일이 열려 있어요."),
]


# A letter in front, so that no text is blank, a byte order mark or a header; a line format cannot hold line ends.
one_line = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=60).map("x".__add__)
any_text = st.text(st.characters(exclude_categories=["Cs", "Cc"], include_characters='\n\t\\"'), max_size=60).map(
    "x".__add__
)
LINE_FORMATS = ("tab-separated text", "parallel text")


@pytest.mark.parametrize("name", WRITERS)
@settings(max_examples=40, deadline=None)
@given(data=st.data(), pack=st.booleans())
def test_what_was_written_is_read(name: str, data: st.DataObject, pack: bool) -> None:
    text = one_line if name in LINE_FORMATS else any_text
    pairs = data.draw(st.lists(st.tuples(text, text), min_size=1, max_size=8, unique_by=lambda pair: pair[0]))
    with tempfile.TemporaryDirectory() as folder:
        path = WRITERS[name](Path(folder), pairs)
        reading = PairReport()
        actual = list(read_pairs(packed(path) if pack else path, "en", "ko", reading=reading))
    order = sorted(pairs) if name == "compiled gettext catalog" else pairs  # msgfmt sorts by bytes
    assert sorted((pair.source, pair.target) for pair in actual) == sorted(order)
    if name != "compiled gettext catalog":
        assert [(pair.source, pair.target) for pair in actual] == pairs
    assert [(file.format, file.count) for file in reading.files] == [(name, len(pairs))]


@pytest.mark.parametrize("name", sorted(set(WRITERS) - {"tab-separated text", "comma-separated text", "JSON lines"}))
def test_named_languages_are_read_in_the_other_direction(name: str, tmp_path: Path) -> None:
    path = WRITERS[name](tmp_path, PAIRS)
    assert sorted(texts_of(path, "ko", "en")) == sorted((target, source) for source, target in PAIRS)


def test_places_name_the_line_of_the_pair(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "\nHello\t안녕\r\n\nBye\t잘 가\n")
    assert [pair.place for pair in read_pairs(path, "en", "ko")] == [f"{path}:2", f"{path}:4"]
    memory = write(
        tmp_path / "m.tmx",
        '<?xml version="1.0"?>\n<tmx>\n\n<tu>\n<tuv lang="EN"><seg>a</seg></tuv>\n'
        '<tuv lang="ko"><seg>b</seg></tuv></tu></tmx>',
    )
    assert [pair.line for pair in read_pairs(memory, "en", "ko")] == [4]
    po = write(tmp_path / "ko.po", '# hello\nmsgid ""\n"a"\nmsgstr "b"\n\n#, c-format\nmsgid "c"\nmsgstr "d"\n')
    assert [pair.line for pair in read_pairs(po, "en", "ko")] == [2, 7]


# ── tab-separated


@pytest.mark.parametrize("header", ["ko\ten", "Korean\tEnglish", "한국어\t영어\tnote", "KO-KR\ten-US"])
def test_a_header_says_which_column_is_which(header: str, tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", f"{header}\n안녕\tHello\tby someone\n")
    assert texts_of(path) == [("Hello", "안녕")]


def test_columns_name_what_has_no_header(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "7\tHello\t안녕\tx\n")
    assert texts_of(path, columns=("id", "en", "ko")) == [("Hello", "안녕")]
    assert texts_of(path, "ko", "en", columns=("id", "en", "ko")) == [("안녕", "Hello")]
    assert texts_of(path, columns=("2", "3")) == [("Hello", "안녕")]
    assert texts_of(path) == [("Hello", "안녕")]  # a number is no text


def test_a_header_of_source_and_target_is_no_pair(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "target\tsource\n안녕\tHello\n")
    assert texts_of(path) == [("Hello", "안녕")]


def test_columns_against_the_header_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "ko\ten\n안녕\tHello\n")
    assert texts_of(path, columns=("ko", "en")) == [("Hello", "안녕")]
    with pytest.raises(DataError, match=r"a\.tsv:1: the header names the columns ko,en, but en,ko was asked for"):
        texts_of(path, columns=("en", "ko"))


# ── comma-separated


def test_a_table_as_spreadsheets_write_it(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv",
        '\ufeffid,Korean,English\r\n1,안녕,"Hello, you"\r\n\r\n2,"잘\r\n가","Say ""bye"""\r\n3,하나\r\n',
    )
    reading = PairReport()
    actual = list(read_pairs(path, "en", "ko", reading=reading))
    assert [(pair.source, pair.target, pair.line) for pair in actual] == [
        ("Hello, you", "안녕", 2),
        ('Say "bye"', "잘\n가", 4),
    ]
    assert {why: tally.places for why, tally in reading.dropped.items()} == {
        "empty": [f"{path}:3"],
        "too few columns": [f"{path}:6"],
    }


def test_two_columns_need_no_header_and_more_need_texts(tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / "a.csv", "Hello,안녕\n")) == [("Hello", "안녕")]
    three = write(tmp_path / "b.csv", "번호,원문,번역문\n1,안녕,Hello\n")
    for columns in (None, ("id", "ko", "en"), ("3", "2")):
        assert texts_of(three, columns=columns)[1:] == [("Hello", "안녕")]
    with pytest.raises(DataError, match=r"c\.csv:1: 3 columns, 1,2,3, .*--columns 1,2"):
        texts_of(write(tmp_path / "c.csv", "1,2,3\n4,5,6\n"))


def test_a_table_of_something_else_in_a_folder_is_left_aside(tmp_path: Path) -> None:
    write(tmp_path / "pairs.csv", "en,ko\nHello,안녕\n")
    write(tmp_path / "prices.csv", "day,open,close\n1,2,3\n")
    write(tmp_path / "settings.json", '[{"name": "x"}, {"name": "y"}]')
    reading = PairReport()
    assert len(list(read_pairs(tmp_path, "en", "ko", reading=reading))) == 1
    assert reading.skipped["other languages"].places == [str(tmp_path / "prices.csv"), str(tmp_path / "settings.json")]


@pytest.mark.parametrize(
    ("content", "place"),
    [('a,b\n"c,d\n', ":2: .*end"), ('a,b\n"c"d,e\n', ":2: "), ("one\n", ":1: one column.*commas"),
     ('a,"' + "b\n" * 99_999, ":1: .*limit")],
    ids=["open quote", "text behind a quote", "one column", "a quote open for long"],
)  # fmt: skip
def test_broken_commas_are_named(content: str, place: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=rf"a\.csv{place}"):
        texts_of(write(tmp_path / "a.csv", content))


# ── JSON lines


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
@pytest.mark.parametrize("content", ['[{"en": "a", "ko": "b"}]', '[\n  {"en": "a", "ko": "b"}\n]\n'])
def test_a_json_array_is_read_like_lines(name: str, content: str, tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / name, content)) == [("a", "b")]
    with pytest.raises(DataError, match=r"a\.json: not JSON"):
        texts_of(write(tmp_path / "a.json", content.rstrip("]\n")))


@pytest.mark.parametrize(
    "row",
    [
        '{"source": "a", "target": "b"}',
        '{"tgt": "b", "src": "a"}',
        '{"ko": "b", "id": 3, "en": "a"}',
        '{"id": "1", "translation": {"ko": "b", "en": "a"}}',
        '{"translation": {"ko_KR": "b", "en-GB": "a"}}',
    ],
)
def test_json_keys(row: str, tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / "a.jsonl", row)) == [("a", "b")]


def test_columns_say_what_json_source_and_target_are(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", '{"source": "a", "target": "b"}')
    assert texts_of(path, "ko", "en", columns=("en", "ko")) == [("b", "a")]


def test_null_is_untranslated(tmp_path: Path) -> None:
    reading = PairReport()
    path = write(tmp_path / "a.jsonl", '{"en": "a", "ko": null}\n{"en": "c", "ko": "d"}\n')
    assert len(list(read_pairs(path, "en", "ko", reading=reading))) == 1
    assert reading.dropped["untranslated"].places == [f"{path}:1"]
    assert reading.total == 2


# ── parallel text


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.en", "a.ko"),
        ("en.txt", "ko.txt"),
        ("a_en.txt", "a_ko.txt"),
        ("A.en-ko.EN", "A.en-ko.KO"),
        ("ko-en.en", "ko-en.ko"),
    ],
)
@pytest.mark.parametrize("pack", [(), (0,), (1,), (0, 1)])
def test_parallel_names(first: str, second: str, pack: tuple[int, ...], tmp_path: Path) -> None:
    paths = [write(tmp_path / first, "Hello\n\nBye"), write(tmp_path / second, "안녕\r\n\r\n잘 가\r\n")]
    paths = [packed(path) if place in pack else path for place, path in enumerate(paths)]
    wanted = [("Hello", "안녕"), ("", ""), ("Bye", "잘 가")]
    for given_paths in ([paths[0]], [paths[1]], paths, paths[::-1], [tmp_path]):
        assert texts_of(given_paths) == wanted


def test_a_name_for_both_languages_names_neither(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "Chinese\tnote\n你好\t您好\n")
    assert texts_of(path, "zh-CN", "zh-TW") == [("Chinese", "note"), ("你好", "您好")]
