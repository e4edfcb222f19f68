"""gettext catalogs: which messages count, in which direction, and the same reading as another library's."""

from __future__ import annotations

import struct
from pathlib import Path

import polib
import pytest
from bad_files import bomb, little_memory, refused
from corpus_writers import catalog, texts_of, write, write_mo

from heedful.data.readers import read_pairs
from heedful.data.report import PairReport
from heedful.errors import DataError


def test_gettext_drops_what_nobody_finished(tmp_path: Path) -> None:
    po = catalog([("Open", "열기"), ("Close", "")])
    po.append(polib.POEntry(msgid="Save", msgstr="저장", flags=["fuzzy", "c-format"]))
    po.append(polib.POEntry(msgid="Old", msgstr="옛것", obsolete=True))
    po.append(polib.POEntry(msgid="Print", msgstr="인쇄", msgctxt="menu", previous_msgid="Prints", comment="msgid"))
    po.save(str(tmp_path / "app.po"))
    reading = PairReport()
    pairs = [(pair.source, pair.target) for pair in read_pairs(tmp_path / "app.po", "en", "ko", reading=reading)]
    assert pairs == [("Open", "열기"), ("Print", "인쇄")]
    assert {reason: tally.count for reason, tally in reading.dropped.items()} == {
        "untranslated": 1,
        "fuzzy": 1,
        "obsolete": 1,
    }
    assert reading.total == 5


@pytest.mark.parametrize("ending", ["po", "mo"])
def test_gettext_plurals(ending: str, tmp_path: Path) -> None:
    po = catalog([])
    po.metadata["Language"] = "ru"
    po.append(polib.POEntry(msgid="%d day", msgid_plural="%d days", msgstr_plural={0: "день", 1: "дня", 2: "дней"}))
    po.append(polib.POEntry(msgid="item", msgid_plural="items", msgctxt="x", msgstr_plural={0: "вещи"}))
    path = tmp_path / f"app.{ending}"
    po.save(str(path)) if ending == "po" else po.save_as_mofile(str(path))
    assert sorted(texts_of(path, "en", "ru")) == [
        ("%d day", "день"),
        ("%d days", "дней"),
        ("item", "вещи"),
        ("items", "вещи"),
    ]


def test_gettext_half_translated_plurals_are_untranslated(tmp_path: Path) -> None:
    po = catalog([])
    po.append(polib.POEntry(msgid="a", msgid_plural="b", msgstr_plural={0: "c", 1: ""}))
    po.save(str(tmp_path / "a.po"))
    assert texts_of(tmp_path / "a.po") == []


HEADER = 'msgid ""\nmsgstr "{}\\n"\n\n'
BODY = 'msgid "Open"\nmsgstr "열기"\n'


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("x.po", "Language: ko"),
        ("de.po", "Language: ko_KR.UTF-8"),
        ("ko.po", "MIME-Version: 1.0"),
        ("app.ko_KR.po", "MIME-Version: 1.0"),
        ("app-ko.po", "MIME-Version: 1.0"),
        ("ko/LC_MESSAGES/app.po", "MIME-Version: 1.0"),
    ],
)
def test_gettext_language_by_header_name_and_folder(name: str, header: str, tmp_path: Path) -> None:
    path = write(tmp_path / name, HEADER.format(header) + BODY)
    assert texts_of(path) == [("Open", "열기")]
    assert texts_of(path, "ko", "en") == [("열기", "Open")]


@pytest.mark.parametrize(("name", "header"), [("ko.po", "Language: de"), ("ko/de.po", "X: y"), ("a.po", "X: y")])
def test_gettext_of_another_language_is_refused(name: str, header: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"from en to de, not of en and ko|cannot tell its language"):
        texts_of(write(tmp_path / name, HEADER.format(header) + BODY))


def test_gettext_originals_in_another_language(tmp_path: Path) -> None:
    path = write(tmp_path / "ko.po", HEADER.format("X-Source-Language: de") + BODY)
    assert texts_of(path, "de", "ko") == [("Open", "열기")]
    with pytest.raises(DataError, match="from de to ko"):
        texts_of(path)


def test_gettext_in_the_encoding_it_names(tmp_path: Path) -> None:
    content = HEADER.format("Content-Type: text/plain; charset=EUC-KR") + BODY
    (tmp_path / "ko.po").write_bytes(content.encode("euc-kr"))
    assert texts_of(tmp_path / "ko.po") == [("Open", "열기")]


def test_gettext_reads_as_polib_does(tmp_path: Path) -> None:
    """Layouts that a writer never makes: joined lines, escapes, comments in between, no empty lines."""
    content = (
        '# top\nmsgid ""\nmsgstr ""\n"Language: ko\\n"\n"X: y\\n"\n#: a.c:1\nmsgid "a\\tb\\"c\\\\n"\n"d\u2028e"\n'
        'msgstr "f\\n"\n\n"g"\n#, c-format\nmsgctxt "m"\nmsgid   "h"\n# why\nmsgstr\t"i"\n#~ msgid "old"\n'
        '#~ msgstr "gone"\n'
        '#~| msgid "older"\n#~ msgid "old2"\n#~ msgstr "gone2"\n'
    )
    path = write(tmp_path / "a.po", content)
    oracle = [(entry.msgid, entry.msgstr) for entry in polib.pofile(str(path)) if not entry.obsolete]
    assert texts_of(path) == oracle == [('a\tb"c\\nd\u2028e', "f\ng"), ("h", "i")]


# ── bad ones


HEAD = 'msgid ""\nmsgstr "Language: ko\\n"\n\n'
PAIRS = [("Good morning.", "안녕하세요."), ("Where is it?", "어디예요?")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('msgid "a"\nmsgstr "b\n', r"ko\.po:5: not a line of a gettext catalog"),
        ('msgid "a"\nmsgstr "b"c"\n', r":5: not a line"),
        ("msgid a\nmsgstr b\n", r":4: not a line"),
        ('msgid "a"\nmsgstr "b\\"\n', r":5: not a line"),
        ('msgid "a"\nmsgid "b"\nmsgstr "c"\n', r":5: msgid is out of place"),
        ('msgstr "c"\n', r":4: msgstr is out of place"),
        ('msgctxt "c"\nmsgid_plural "x"\n', r":5: msgid_plural is out of place"),
        ('msgid "a"\nmsgstr "b"\nmsgid "c"\n', r":6: the file ends before the msgstr"),
        ('# hm\n"c"\n', r":5: a text without msgid or msgstr"),
        ("<<<<<<< HEAD\n", r":4: not a line"),
    ],
)
def test_broken_po(content: str, message: str, tmp_path: Path) -> None:
    refused(write(tmp_path / "ko.po", HEAD + content), message)


def test_an_encoding_nobody_knows(tmp_path: Path) -> None:
    for name in ("klingon", "hex", "utf-16"):
        header = f'msgid ""\nmsgstr "Content-Type: text/plain; charset={name}\\n"\n'
        refused(write(tmp_path / "ko.po", header), f"names the encoding {name}, which cannot be read")


def test_broken_mo(tmp_path: Path) -> None:
    whole = write_mo(tmp_path, PAIRS).read_bytes()
    path = tmp_path / "ko.mo"
    for size in range(5, len(whole) - 1):  # the last byte is the NUL after the last text
        path.write_bytes(whole[:size])
        refused(path, "the catalog is cut short")
    path.write_bytes(b"\0\0\0\0" + whole[4:])
    refused(path, "magic number is wrong")
    path.write_bytes(whole[:4] + struct.pack("<I", 7 << 16) + whole[8:])
    refused(path, "revision 7")
    path.write_bytes(whole.replace("안".encode(), b"\xff\xff\xff"))
    refused(path, r"ko\.mo:2: the text is not UTF-8")


def test_mo_of_the_other_byte_order(tmp_path: Path) -> None:
    texts = [b"", b"Open"], [b"Language: ko\nContent-Type: text/plain; charset=UTF-8\n", "열기".encode()]
    offset, tables, strings = 28 + 4 * 8, [], b""
    for side in texts:
        for text in side:
            tables.append(struct.pack(">2I", len(text), offset + len(strings)))
            strings += text + b"\0"
    head = struct.pack(">7I", 0x950412DE, 0, 2, 28, 28 + 16, 0, 0)
    (tmp_path / "a.mo").write_bytes(head + b"".join(tables) + strings)
    assert texts_of(tmp_path / "a.mo") == [("Open", "열기")]


@pytest.mark.parametrize("ending", ["po", "mo"])
def test_catalogs_of_200_mb_are_refused_in_little_memory(ending: str, tmp_path: Path) -> None:
    path = tmp_path / f"ko.{ending}.gz"
    if ending == "po":
        bomb(path, HEAD + 'msgid "a"\nmsgstr ""\n', "", filler=b'"xxxxxxxxxxxxx"\n')
        with little_memory():
            refused(path, "over 1 MiB")
    else:
        bomb(path, "", "", filler=b"\xde\x12\x04\x95", megabytes=80)
        with little_memory(200 << 20):
            refused(path, "more than 64 MiB")


def test_overlapping_texts_of_an_mo_file_are_refused_in_little_memory(tmp_path: Path) -> None:
    count, size = 1000, 500_000
    texts = b"Content-Type: text/plain; charset=UTF-8\nLanguage: ko\n".ljust(100) + b"a" * size
    begin = 28 + 16 * count
    originals = [(0, begin), *[(size, begin + 100)] * (count - 1)]
    translations = [(100, begin), *[(size, begin + 100)] * (count - 1)]
    tables = b"".join(struct.pack("<2I", *span) for span in (*originals, *translations))
    head = struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0)
    (tmp_path / "ko.mo").write_bytes(head + tables + texts)
    with little_memory(200 << 20):
        refused(tmp_path / "ko.mo", "overlap")


@pytest.mark.parametrize(
    ("flag", "original", "translation", "is_kept"),
    [
        ("c-format", "open %s", "%s 열기", True),
        ("c-format", "open %s", "열기", False),
        ("c-format", "open %s", "%d 열기", False),
        ("c-format", "%s of %d", "%2$d 중 %1$s", True),
        ("c-format", "%5.2f %%", "%5.2f%%", True),
        ("c-format", "100%% of %s", "%s의 100%%", True),
        ("python-format", "%(name)s is %(age)d", "%(age)d살 %(name)s", True),
        ("python-format", "%(name)s", "%(nome)s", False),
        ("python-brace-format", "{name} of {0}", "{0}의 {name}", True),
        ("python-brace-format", "{name}", "name", False),
        ("no-c-format", "100 %s", "백", True),
        ("range: 0..10", "100 %s", "백", True),
    ],
)
def test_messages_whose_placeholders_differ_are_dropped(
    flag: str, original: str, translation: str, is_kept: bool, tmp_path: Path
) -> None:
    po = catalog([("Open", "열기")])
    po.append(polib.POEntry(msgid=original, msgstr=translation, flags=[flag]))
    po.save(str(tmp_path / "ko.po"))
    reading = PairReport()
    pairs = [(pair.source, pair.target) for pair in read_pairs(tmp_path / "ko.po", "en", "ko", reading=reading)]
    assert pairs == [("Open", "열기"), (original, translation)][: 1 + is_kept]
    assert {reason: tally.count for reason, tally in reading.dropped.items()} == (
        {} if is_kept else {"other placeholders": 1}
    )


def test_a_singular_may_leave_out_its_number(tmp_path: Path) -> None:
    po = catalog([])
    forms = {0: "파일 %d개"}
    po.append(polib.POEntry(msgid="one file", msgid_plural="%d files", msgstr_plural=forms, flags=["c-format"]))
    po.save(str(tmp_path / "ko.po"))
    assert texts_of(tmp_path / "ko.po") == [("one file", "파일 %d개"), ("%d files", "파일 %d개")]
