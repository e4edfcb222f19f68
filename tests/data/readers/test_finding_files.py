"""Which files are read: by content, by name, once each, out of folders too."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_writers import WRITERS, packed, texts_of, write, write_tmx, write_xliff

from heedful.data.readers import read_pairs
from heedful.data.report import PairReport
from heedful.errors import DataError

PAIRS = [("Good morning.", "안녕하세요."), ("Where is it?", "어디예요?")]
CERTAIN = sorted(set(WRITERS) - {"tab-separated text", "comma-separated text", "parallel text"})


def po(language: str, text: str) -> str:
    return f'msgid ""\nmsgstr "Language: {language}\\n"\n\nmsgid "{text}"\nmsgstr "나"\n'


@pytest.mark.parametrize("name", CERTAIN)
@pytest.mark.parametrize("paths", ["x", "x.tsv", "x.txt", "x.po", "x.mo.gz", "x.en", "x.tmx", "x.csv"])
def test_certain_content_wins_over_the_name(name: str, paths: str, tmp_path: Path) -> None:
    path = WRITERS[name](tmp_path, PAIRS).rename(tmp_path / paths)
    reading = PairReport()
    files = [(pair.source, pair.target) for pair in read_pairs(path, "en", "ko", reading=reading)]
    assert files == PAIRS
    assert reading.files[0].format == name


@pytest.mark.parametrize("paths", ["x", "x.txt", "x.csv", "ko.txt", "x.tab", "x.tsv.gz"])
def test_tabs_are_recognized_under_other_names(paths: str, tmp_path: Path) -> None:
    assert texts_of(write(tmp_path / paths, "a\t가\nb\t나\n")) == [("a", "가"), ("b", "나")]


@pytest.mark.parametrize(
    ("paths", "by_name"),
    [("x.po", "gettext catalog"), ("x.tmx", "TMX"), ("x.en", "parallel text"), ("x.jsonl", "JSON lines")],
)
def test_doubtful_content_against_the_name_is_an_error(paths: str, by_name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"by its name this is {by_name}, by its content tab-separated text"):
        texts_of(write(tmp_path / paths, "a\t가\nb\t나\n"))


def test_nothing_recognized(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.txt: not a file of sentence pairs.*\.tsv"):
        texts_of(write(tmp_path / "a.txt", "Hello\n"))


def test_a_folder_gives_every_recognized_file_sorted(tmp_path: Path) -> None:
    write(tmp_path / "b" / "z.tsv", "z\t하\n")
    write(tmp_path / "b" / "a.tsv", "a\t가\n")
    write(tmp_path / "c.en", "c\n")
    packed(write(tmp_path / "c.ko", "다\n"))
    write(tmp_path / "po" / "ko.po", po("ko", "p"))
    write(tmp_path / "po" / "de.po", po("de", "d"))
    write(tmp_path / "README.md", "Read me\n")
    write(tmp_path / "tool.c", "\tint main\n\t{}\n")
    write(tmp_path / ".hidden.tsv", "h\t히\n")
    write_tmx(tmp_path, [("t", "타")])
    (tmp_path / "again.tsv").symlink_to(tmp_path / "b" / "a.tsv")
    (tmp_path / "lost.tsv").symlink_to(tmp_path / "nowhere.tsv")
    french = write_xliff(tmp_path, [("a", "b"), ("c", "")])
    write(french, french.read_text().replace('"ko"', '"fr"'))
    reading = PairReport()
    files = [pair.source for pair in read_pairs(tmp_path, "en", "ko", reading=reading)]
    assert files == ["a", "c", "t", "z", "p"]
    assert {
        reason: sorted(Path(place).name for place in tally.places) for reason, tally in reading.skipped.items()
    } == {
        "not recognized": ["README.md", "tool.c"],
        "read already": ["a.tsv"],
        "neither a file nor a folder": ["lost.tsv"],
        "other languages": ["de.po", "exchange.xlf"],
    }
    assert len(reading.files) == 5
    assert reading.dropped == {}


def test_what_another_language_dropped_is_forgotten(tmp_path: Path) -> None:
    write(tmp_path / "a.jsonl", '{"en": "a", "ko": null}\n{"en": "b", "ko": "나"}\n')
    write_tmx(tmp_path, [("t", "타")] * 3)
    memory = tmp_path / "memory.tmx"
    memory.write_text(memory.read_text("utf-16").replace("ko-KR", "fr"), "utf-16")
    reading = PairReport()
    assert len(list(read_pairs(tmp_path, "en", "ko", reading=reading))) == 1
    assert reading.dropped["untranslated"].to_dict() == {"count": 1, "first": [f"{tmp_path / 'a.jsonl'}:1"]}


def test_a_folder_without_anything_says_what_it_saw(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the folder is empty"):
        texts_of(tmp_path)
    write(tmp_path / "notes.md", "Read me\n")
    write(tmp_path / "de.po", po("de", "d"))
    with pytest.raises(
        DataError, match=r"no file of en and ko .*not recognized: 1 .*notes\.md.*other languages: 1 .*de\.po"
    ):
        texts_of(tmp_path)


def test_a_file_given_twice(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tsv", "a\t가\n")
    (tmp_path / "b.tsv").symlink_to(path)
    for twice in ([path, path], [path, tmp_path / "b.tsv"], [tmp_path, path]):
        with pytest.raises(DataError, match=r"\.tsv: the file is given twice"):
            texts_of(twice)
    sides = [write(tmp_path / "c.en", "a\n"), write(tmp_path / "c.ko", "가\n")]
    assert texts_of(sides) == [("a", "가")]
    with pytest.raises(DataError, match=r"c\.ko: the file is given twice"):
        texts_of([*sides, sides[1]])


def test_files_are_looked_at_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        read_pairs([write(tmp_path / "a.tsv", "a\t가\n"), tmp_path / "missing.tsv"], "en", "ko")
