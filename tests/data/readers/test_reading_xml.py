"""Translation memories and XLIFF: the words of a unit, in the languages wanted, from documents that mean no harm."""

from __future__ import annotations

from pathlib import Path

import pytest
from bad_files import bomb, drops, little_memory, refused
from corpus_writers import WRITERS, texts_of, write

from heedful.data.readers import read_pairs
from heedful.data.report import PairReport
from heedful.errors import DataError


def test_tmx_takes_words_and_leaves_codes(tmp_path: Path) -> None:
    path = write(
        tmp_path / "m.tmx",
        """<?xml version="1.0" encoding="utf-8"?><!-- <xliff> --><!DOCTYPE tmx SYSTEM "tmx14.dtd">
        <tmx version="1.4"><header srclang="en"><note>no</note></header><body>
        <tu><note>skip</note><tuv xml:lang="en"><prop>skip</prop>
        <seg>Open <bpt i="1">&lt;b <sub>x</sub>&gt;</bpt>the <hi>file</hi><ept i="1">&lt;/b&gt;</ept>
 &amp; go</seg></tuv><tuv xml:lang="de"><seg>nein</seg></tuv>
        <tuv xml:lang="KO-kr"><seg><![CDATA[파일 <열기>]]></seg></tuv></tu>
        <tu><tuv xml:lang="en"><seg>only</seg></tuv></tu>
        </body></tmx>""",
    )
    reading = PairReport()
    pairs = [(pair.source, pair.target) for pair in read_pairs(path, "en", "ko", reading=reading)]
    assert pairs == [("Open the file\n & go", "파일 <열기>")]
    assert reading.dropped["untranslated"].count == 1


def test_xliff_takes_finished_units_and_leaves_suggestions(tmp_path: Path) -> None:
    path = write(
        tmp_path / "e.xlf",
        """<x:xliff version="1.2" xmlns:x="urn:oasis:names:tc:xliff:document:1.2">
        <x:file source-language="en-US" target-language="ko-KR"><x:body><x:group>
        <x:trans-unit id="1"><x:source>Save <x:g id="1">all <x:x id="2"/>files</x:g></x:source>
          <x:seg-source>no</x:seg-source>
          <x:target state="final">모든 <x:mrk mtype="seg">파일</x:mrk><x:ph id="3">{0}</x:ph> 저장</x:target>
          <x:alt-trans><x:source>bad</x:source><x:target>나쁨</x:target></x:alt-trans></x:trans-unit>
        <x:trans-unit id="2"><x:source>a</x:source></x:trans-unit>
        <x:trans-unit id="3"><x:source>a</x:source><x:target/></x:trans-unit>
        <x:trans-unit id="4"><x:source>a</x:source><x:target state="new">a</x:target></x:trans-unit>
        <x:trans-unit id="5"><x:source>a</x:source>
          <x:target state="needs-review-translation">ㄱ</x:target></x:trans-unit>
        </x:group></x:body></x:file>
        <x:file source-language="en" target-language="de"><x:body>
          <x:trans-unit id="1"><x:source>a</x:source><x:target>b</x:target>
        </x:trans-unit></x:body></x:file></x:xliff>""",
    )
    reading = PairReport()
    pairs = [(pair.source, pair.target) for pair in read_pairs(path, "en", "ko", reading=reading)]
    assert pairs == [("Save all files", "모든 파일 저장")]
    assert {reason: tally.count for reason, tally in reading.dropped.items()} == {"untranslated": 3, "fuzzy": 1}


# ── documents that mean harm, or are broken


TMX = "<tmx><body>{}</body></tmx>"
UNIT = '<tu><tuv xml:lang="en"><seg>{}</seg></tuv><tuv xml:lang="ko"><seg>나</seg></tuv></tu>'
XLIFF = """<xliff version="1.2"><file source-language="en" target-language="ko"><trans-unit><source>{}</source>
</trans-unit></file></xliff>"""
PAIRS = [("Good morning.", "안녕하세요."), ("Where is it?", "어디예요?")]
LAUGHS = '<!DOCTYPE tmx [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.parametrize("name", ["a.tmx", "a.xlf"])
@pytest.mark.parametrize(
    ("prologue", "text", "message"),
    [
        (LAUGHS, "&b;", r":1: the entity 'a': entities of a file's own are not allowed"),
        ('<!DOCTYPE tmx [<!ENTITY x SYSTEM "file:///etc/passwd">]>', "&x;", "the entity 'x'"),
        ('<!DOCTYPE tmx [<!ENTITY % p SYSTEM "http://localhost:1/x"> %p;]>', "a", "the entity 'p'"),
        ('<!DOCTYPE tmx SYSTEM "http://localhost:1/tmx14.dtd">', "&nbsp;", "the entity 'nbsp'"),
        ("", "&nbsp;", "broken XML at column .*undefined entity"),
        ("\n", "<b>", r":2: broken XML at column \d+: mismatched tag"),
        ("", "<g>" * 5000 + "</g>" * 5000, "nested more than 100 deep"),
        ("", "\x01", "broken XML .*invalid token"),
    ],
)
def test_bad_xml(name: str, prologue: str, text: str, message: str, tmp_path: Path) -> None:
    document = TMX.format(UNIT) if name == "a.tmx" else XLIFF
    refused(write(tmp_path / name, prologue + document.format(text)), message)


def test_xml_that_ends_early(tmp_path: Path) -> None:
    refused(write(tmp_path / "a.tmx", "<tmx>\n" + UNIT.format("a") + "\n<tu>"), r":3: broken XML .*no element found")


def test_a_dtd_is_named_and_not_fetched(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tmx", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">' + TMX.format(UNIT.format("a")))
    assert texts_of(path) == [("a", "나")]


def test_odd_structure_is_no_crash(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.tmx", "<tmx><seg>a</seg><tu><seg>b</seg></tu></tu></tmx>".replace("</tu></tu>", "</tu>") + "\n"
    )
    refused(path, "the file has: none")
    path = write(tmp_path / "a.xlf", "<xliff><trans-unit/><target>a</target></xliff>")
    refused(path, "the file has: none")


@pytest.mark.parametrize("name", ["TMX", "XLIFF"])
def test_languages_that_are_not_there(name: str, tmp_path: Path) -> None:
    path = WRITERS[name](tmp_path, PAIRS)
    with pytest.raises(DataError, match=r"fr and ko were asked for; the file has: en(-US)?, ko"):
        texts_of(path, "fr", "ko")


def test_xliff_2(tmp_path: Path) -> None:
    refused(
        write(tmp_path / "a.xlf", '<xliff version="2.0" srcLang="en" trgLang="ko"/>'), "XLIFF 2.0; only 1.2 is read"
    )


def test_xml_of_200_mb_is_read_in_little_memory(tmp_path: Path) -> None:
    long_text = bomb(
        tmp_path / "a.tmx.gz",
        "<tmx><tu><tuv xml:lang='en'><seg>",
        "</seg></tuv><tuv xml:lang='ko'><seg>나</seg></tuv></tu>" + UNIT.format("a") + "</tmx>",
    )
    with little_memory():
        assert drops(long_text) == (1, {"too long": ["1"]})
    long_tag = bomb(tmp_path / "b.tmx.gz", "<tmx><tu x='", "'/></tmx>")
    with little_memory():
        refused(long_tag, r"b\.tmx\.gz:1: a tag or comment of over 1 MiB")
    many = bomb(tmp_path / "c.tmx.gz", "<tmx>", "</tmx>", filler=UNIT.format("a" * 9000).encode(), megabytes=30)
    with little_memory():
        assert drops(many)[0] > 3000
