"""Which pairs are kept, why the others are not, and what is told about it."""

from __future__ import annotations

import hashlib
import json
import tracemalloc
import unicodedata
from collections import Counter, deque
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.pairs import CleaningConfig, Pair, clean, in_direction, tidy
from heedful.data.report import FileReport, PairReport, length_statistics
from heedful.errors import ConfigError, DataError

FINE = ("Where is the station?", "역이 어디예요?")


def pairs_of(*texts: tuple[str, str], file: str = "a.tsv") -> list[Pair]:
    return [Pair(source, target, file, line) for line, (source, target) in enumerate(texts, start=1)]


def cleaned(
    *texts: tuple[str, str], languages: tuple[str, str] = ("en", "ko"), **config: object
) -> tuple[list[tuple[str, str]], dict[str, list[str]]]:
    """The texts kept, and the places of those dropped, by reason."""
    reading = PairReport()
    pairs = list(clean(pairs_of(*texts), CleaningConfig.from_dict(config), *languages, reading))
    assert reading.kept == len(pairs)
    return [(pair.source, pair.target) for pair in pairs], {why: tally.places for why, tally in reading.dropped.items()}


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (("", "안녕"), "empty"),
        (("Hello", " \u00a0\t\u3000"), "empty"),
        (("a" * 1001, "가" * 900), "too long"),
        (("a" * 900, "가" * 1001), "too long"),
        (("a" * (1 << 20), "가"), "too long"),
        (("a" * 121, "가" * 20), "too uneven"),
        (("a", "가" * 26), "too uneven"),
        (("안녕", "반가워"), "wrong script"),
        (("Hello", "Привет"), "wrong script"),
        (("Hello", "Hello"), "wrong script"),
        (("nul\0", "널"), "control character"),
        (("bell", "종\a"), "control character"),
        (("delete\x7f", "지우기"), "control character"),
        (("c1\x9b", "제어"), "control character"),
        (("half \ud800", "반"), "lone surrogate"),
        (("half", "반 \udfff"), "lone surrogate"),
        (FINE, "duplicate"),
        (("Where  is the station? ", "역이\u2028어디예요?"), "duplicate"),
    ],
)
def test_what_is_dropped_and_why(pair: tuple[str, str], reason: str) -> None:
    assert cleaned(FINE, pair) == ([FINE], {reason: ["a.tsv:2"]})


@pytest.mark.parametrize(
    "pair",
    [
        ("a" * 1000, "가" * 1000),
        ("a" * 120, "가" * 20),  # five times as long and twenty more
        ("OK", "확인했습니다"),
        ("3.14", "3.14"),  # no letters: no script
        ("The GNU project", "GNU 프로젝트"),
        ("Where is the station?", "역은 어디예요?"),  # half of it is new
        ("e\u0301" * 1000, "가" * 1000),  # 2,000 code points that compose to 1,000
        ("\U0001f600 smile", "웃음 \u200d"),
    ],
)
def test_what_is_kept(pair: tuple[str, str]) -> None:
    pairs, dropped = cleaned(FINE, pair)
    assert pairs == [FINE, (unicodedata.normalize("NFC", pair[0]), pair[1])]
    assert dropped == {}


def test_switches() -> None:
    assert len(cleaned(FINE, FINE, drop_duplicates=False)[0]) == 2
    assert len(cleaned(FINE, ("Hi", "Hi"), check_script=False)[0]) == 2
    assert cleaned(FINE, ("abcd", "가"), max_characters=21)[1] == {}
    assert cleaned(("a", "가"), ("abcd", "가"), max_characters=3)[1] == {"too long": ["a.tsv:2"]}
    assert cleaned(FINE, ("a" * 23, "가"), max_ratio=2)[1] == {"too uneven": ["a.tsv:2"]}
    with pytest.raises(ConfigError, match=r"data: max_ratio must be at least 1"):
        CleaningConfig(max_ratio=0.5)
    with pytest.raises(ConfigError, match=r"data: max_characters must be at least 1"):
        CleaningConfig(max_characters=0)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_tidy_text(text: str) -> None:
    done = tidy(text)
    assert done == tidy(done)
    assert done == done.strip()
    assert not any(character.isspace() and character != " " for character in done)
    assert "  " not in done
    assert unicodedata.is_normalized("NFC", done)
    assert unicodedata.normalize("NFC", "".join(text.split())) == unicodedata.normalize("NFC", done.replace(" ", ""))


def test_tidy_composes_hangul() -> None:
    assert tidy(unicodedata.normalize("NFD", "\ufeff한국어\u00a0문장\r\n")) == "\ufeff한국어 문장"


@pytest.mark.parametrize(
    ("language", "right", "wrong"),
    [
        ("ko", "안녕", "hello"),
        ("ko-KR", "ㅋㅋ", "漢字"),
        ("ja", "こんにちは", "안녕"),
        ("ja", "東京", "Tokyo"),
        ("zh", "你好", "こんにちは"),
        ("ru", "привет", "privet"),
        ("uk", "Їжак", "hedgehog"),
        ("el", "γεια", "привет"),
        ("ar", "مرحبا", "שלום"),
        ("he", "שלום", "مرحبا"),
        ("th", "สวัสดี", "hello"),
        ("hi", "नमस्ते", "สวัสดี"),
        ("vi", "Xin chào", "你好"),
        ("de", "Übung", "γεια"),
    ],
)
def test_scripts(language: str, right: str, wrong: str) -> None:
    other, text = ("en", "one word") if language != "de" else ("ko", "한 단어")
    pairs, dropped = cleaned((text, right), (text, wrong), languages=(other, language))
    assert pairs == [(text, right)]
    assert list(dropped) == ["wrong script"]


def test_a_language_of_unknown_script_is_not_checked() -> None:
    assert len(cleaned(("Hello", "ᐊᐃ"), ("Hello", "abc"), languages=("en", "iu"))[0]) == 2


def test_the_wrong_direction_is_an_error_that_says_what_to_do() -> None:
    texts = [(f"안녕 {n}", f"Hello {n}") for n in range(6)] + [FINE] * 4
    reading = PairReport()
    reading.columns = ("en", "ko")
    with pytest.raises(
        DataError,
        match=r"a\.tsv: 6 of 10 pairs are the wrong way round for en to ko; swap --source and .*--columns ko,en",
    ):
        list(clean(pairs_of(*texts), CleaningConfig(drop_duplicates=False), "en", "ko", reading))
    assert len(cleaned(*texts, check_script=False)[0]) == 7
    assert len(cleaned(*texts[1:], FINE, drop_duplicates=False)[0]) == 5  # half is not more than half


def test_the_wrong_direction_is_noticed_early_and_by_file() -> None:
    def endless() -> Iterator[Pair]:
        yield from (Pair(f"Hello {n}", f"안녕 {n}", "good.tsv", n) for n in range(5000))
        yield from (Pair(f"Hello {n}", f"안녕 {n}", "bad.tsv", n) for n in range(10))
        yield from (Pair(f"안녕 {n}", f"Hello {n}", "bad.tsv", n) for n in range(10, 1000))
        raise AssertionError("a thousand pairs are enough to know")

    with pytest.raises(DataError, match=r"bad\.tsv: 990 of 1000"):
        list(clean(endless(), CleaningConfig(), "en", "ko"))


def test_the_wrong_language_on_both_sides_is_not_the_wrong_direction() -> None:
    with pytest.raises(DataError, match=r"no sentence pair is left to use \(wrong script: 2 \(a\.tsv:1, a\.tsv:2\)\)"):
        cleaned(("Привет", "שלום"), ("Привет", "你好"))


def test_nothing_at_all_is_an_error() -> None:
    with pytest.raises(DataError, match=r"no sentence pair is left to use \(there was none\)"):
        cleaned()


def test_first_places_are_few_and_counts_are_whole() -> None:
    reading = PairReport()
    list(clean(pairs_of(FINE, *[("", "")] * 20), CleaningConfig(), "en", "ko", reading))
    assert reading.dropped["empty"].to_dict() == {"count": 20, "first": [f"a.tsv:{n}" for n in range(2, 7)]}
    assert str(reading.dropped["empty"]) == "20 (a.tsv:2, a.tsv:3, a.tsv:4, a.tsv:5, a.tsv:6, …)"


def test_duplicates_are_remembered_in_little_memory() -> None:
    """A pair of 2,000 characters takes 3,000 bytes; what is kept of it must be some few."""
    filler = "가" * 990
    many = (Pair(f"{n} {'x' * 900}", f"{n} {filler}", "a", n) for n in range(5_000))
    tracemalloc.start()
    try:
        reading = PairReport()
        clean(many, CleaningConfig(), "en", "ko", reading, store=lambda pairs: deque(pairs, maxlen=0))
        assert reading.kept == 5_000
        assert tracemalloc.get_traced_memory()[1] < 5_000 * 250
    finally:
        tracemalloc.stop()


# ── what is told


def test_a_reading_as_a_dict() -> None:
    reading = PairReport()
    reading.files.append(FileReport("a.tsv", "tab-separated text", 3))
    list(clean(pairs_of(FINE, ("Yes", "네"), FINE), CleaningConfig(), "en", "ko", reading))
    entry = json.loads(json.dumps(reading.to_dict()))
    assert entry["files"] == [{"path": "a.tsv", "format": "tab-separated text", "pairs": 3}]
    assert (entry["pairs"], entry["kept"]) == (3, 2)
    assert entry["dropped"] == {"duplicate": {"count": 1, "first": ["a.tsv:3"]}}
    assert entry["characters"]["source"] == {"mean": 12.0, "median": 3, "p95": 21, "longest": 21}
    assert entry["words"]["target"] == {"mean": 1.5, "median": 1, "p95": 2, "longest": 2}
    content = b"21:Where is the station?" + b"20:" + "역이 어디예요?".encode() + b"3:Yes" + b"3:" + "네".encode()
    assert entry["fingerprint"] == reading.fingerprint == hashlib.sha256(content).hexdigest()


def test_the_fingerprint_knows_order_sides_and_borders() -> None:
    def fingerprint(*texts: tuple[str, str]) -> str:
        reading = PairReport()
        for pair in pairs_of(*texts):
            reading.keep(*pair.texts)
        return reading.fingerprint

    lists = [
        [("a", "b"), ("c", "d")],
        [("c", "d"), ("a", "b")],
        [("b", "a"), ("c", "d")],
        [("ab", ""), ("c", "d")],
        [("a", "b")],
        [],
    ]
    assert len({fingerprint(*texts) for texts in lists}) == len(lists)
    assert fingerprint(("a", "b")) == fingerprint(("a", "b"))


@given(st.lists(st.integers(0, 50), min_size=1))
def test_length_statistics(values: list[int]) -> None:
    median, p95 = np.quantile(values, [0.5, 0.95], method="inverted_cdf")
    mean = pytest.approx(np.mean(values), abs=0.00501)
    assert length_statistics(Counter(values)) == {"mean": mean, "median": median, "p95": p95, "longest": max(values)}


def test_no_lengths() -> None:
    assert length_statistics(Counter({7: 0})) == {"mean": 0.0, "median": 0, "p95": 0, "longest": 0}


def test_pairs_that_are_only_judged_all_come_through_unless_they_are_the_wrong_way_round() -> None:
    right = [Pair("나는 가요", "I go", "f", 1), Pair("나는 가요", "I go", "f", 2), Pair("", "", "f", 3)]
    assert list(in_direction(right, "ko", "en", PairReport())) == right
    swapped = [Pair(pair.target, pair.source, "f", pair.line) for pair in right]
    with pytest.raises(DataError, match="--columns en,ko"):
        list(in_direction(swapped, "ko", "en", PairReport()))


# ── limits that follow from the data


def warned_setting(reading: PairReport) -> dict[str, object]:
    """The settings that the warnings of a report name."""
    settings = [warning.rsplit("--set data.", 1)[1].split("=") for warning in reading.warnings]
    return {name: json.loads(value) for name, value in settings}


def reading_of(texts: list[tuple[str, str]], **config: object) -> PairReport:
    reading = PairReport()
    kept = clean(pairs_of(*texts), CleaningConfig.from_dict(config), "en", "ko", reading)
    assert sum(1 for _ in kept) == sum(1 for _ in kept) == reading.kept
    return reading


USUAL = [(f"{n} even text " * (1 + n % 9), f"{n} 고른 글 " * (1 + n % 9)) for n in range(190)]
FAULTS = {
    "too uneven": lambda n: (f"{n} short", f"{n} 길다 " * 100),
    "too long": lambda n: (f"{n} long text " * 200, f"{n} 긴 글이다 " * 200),
    "longer than any text": lambda n: (f"{n} long text " * 3000, f"{n} 긴 글이다 " * 3000),
    "wrong script": lambda n: (f"{n} untranslated", f"{n} untranslated text"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_more_than_two_percent_are_never_dropped_without_the_setting_that_keeps_them(fault: str) -> None:
    few, many = ([*USUAL, *map(FAULTS[fault], range(count))] for count in (3, 10))
    assert (reading_of(few).kept, reading_of(few).warnings) == (190, [])
    reading = reading_of(many)
    assert reading.kept == 190
    assert "10 of 200 pairs (5.0%) are dropped" in reading.warnings[0]
    assert "such as a.tsv:191: 0 " in reading.warnings[0]
    assert reading.to_dict()["warnings"] == reading.warnings
    assert reading_of(many, **warned_setting(reading)).kept == 200
    given = {"max_ratio": 5.0, "max_characters": 1000, "check_script": True}
    assert (reading_of(many, **given).kept, reading_of(many, **given).warnings) == (190, [])  # as it was asked for


@pytest.mark.parametrize("share", [0.25, 1.0])
@pytest.mark.parametrize("fault", ["too uneven", "too long", "wrong script"])
def test_what_is_usual_for_the_data_is_no_reason_to_drop_it(fault: str, share: float) -> None:
    texts = [*USUAL[: round(200 * (1 - share))], *map(FAULTS[fault], range(round(200 * share)))]
    reading = reading_of(texts)
    assert (reading.kept, reading.warnings) == (200, [])
    (note,) = reading.notes
    assert note.startswith("limits that fit the data: data.")
