"""Numerals: native and Sino-Korean numbers with their counters, and the times, dates and amounts of both languages.

Spacing follows the orthography's principle: counters stand apart, and a Sino-Korean number is spaced at 만, 억, 조.
"""

from functools import lru_cache
from typing import Literal, get_args

from ..errors import unknown
from .english_morphology import MONTHS, in_words
from .lexicon import Adverb, Noun
from .tables import read_yaml, split_list

_TABLE = read_yaml("numerals.yaml")
_NATIVE_ONES, _NATIVE_TENS = (["", *split_list(_TABLE[name])] for name in ("native_ones", "native_tens"))
_BEFORE_COUNTER: dict[str, str] = _TABLE["before_counter"]
_SINO_ONES = ("", *"일이삼사오육칠팔구")

System = Literal["native", "sino"]
NATIVE_COUNTERS, SINO_COUNTERS = (frozenset(split_list(_TABLE[f"{name}_counters"])) for name in get_args(System))
_BOTH: dict[str, str] = _TABLE["either_counters"]


def native(n: int, *, before_counter: bool = False) -> str:
    """Return a native number, 1 to 99: 스물; before a counter 스무, 한, 두, 세, 네 (스물한, 서른세)."""
    _require("a native number", n, 1, 99)
    tens, ones = _NATIVE_TENS[n // 10], _NATIVE_ONES[n % 10]
    if not before_counter:
        return tens + ones
    return tens + _BEFORE_COUNTER.get(ones, ones) if ones else _BEFORE_COUNTER.get(tens, tens)


def sino(n: int) -> str:
    """Return a Sino-Korean number in words, 1 to 99: 십오, 이십."""
    _require("a Sino-Korean number", n, 1, 99)
    tens, ones = divmod(n, 10)
    before = "" if tens < 2 else _SINO_ONES[tens]  # 십, not 일십
    return before + "십" * (tens > 0) + _SINO_ONES[ones]


def with_counter(n: int, counter: str, system: System | None = None) -> str:
    """Return a number and its counter: 세 개, 삼 층; `system` is needed where a counter takes both (분, 번)."""
    if system is None:
        if counter in _BOTH:
            raise ValueError(f"{counter} counts {_BOTH[counter]}; say system='native' or system='sino'")
        if counter not in NATIVE_COUNTERS | SINO_COUNTERS:
            raise ValueError(unknown("counter", counter, {*NATIVE_COUNTERS, *SINO_COUNTERS, *_BOTH}))
        system = "native" if counter in NATIVE_COUNTERS else "sino"
    if system == "native":
        return f"{native(n, before_counter=True)} {counter}"
    return "일주일" if (n, counter) == (1, "주일") else f"{sino(n)} {counter}"


def month(n: int) -> str:
    """Return the name of a month: 일월, … 유월, … 시월."""
    _require("a month", n, 1, 12)
    return {6: "유월", 10: "시월"}.get(n, sino(n) + "월")


def clock_time(hour: int, minute: int = 0) -> str:
    """Return a clock time: 세 시, 세 시 십오 분, 세 시 반."""
    _require("an hour", hour, 1, 12)
    _require("a minute", minute, 0, 59)
    hours = with_counter(hour, "시")
    if minute == 0:
        return hours
    return f"{hours} 반" if minute == 30 else f"{hours} {with_counter(minute, '분', 'sino')}"


def won(n: int) -> str:
    """Return an amount as it is written with digits: 35000 → 3만 5천 원, 1500 → 1,500 원."""
    _require("an amount of money", n, 1, 10**7 - 1)
    ten_thousands, rest = divmod(n, 10_000)
    parts = [f"{ten_thousands}만"] if ten_thousands else []
    if rest:
        parts.append(f"{rest:,}" if rest % 1000 else f"{rest // 1000}천")
    return f"{' '.join(parts)} 원"


def _require(what: str, n: int, low: int, high: int) -> None:
    if not low <= n <= high:
        raise ValueError(f"{what} is {low} to {high}, not {n}")


# Quantities as the nouns and adverbs of a frame


@lru_cache(1000)
def at_time(preposition: str, time: Noun) -> Adverb:
    """Return the adverb of a time or a date: 세 시 십오 분에, at 3:15; 6월 15일에, on June 15."""
    return Adverb(time.korean + "에", f"{preposition} {time.english}", "when", quantity=time.quantity)


@lru_cache(1000)
def clock(hour: int, minute: int) -> Noun:
    """Return a clock time as a noun: 세 시 십오 분, 3:15."""
    english = f"{hour} o'clock" if minute == 0 else f"{hour}:{minute:02}"
    return Noun(clock_time(hour, minute), english, "name", quantity=f"clock {hour}:{minute:02}")


@lru_cache(1000)
def between_clocks(start: int, end: int) -> Adverb:
    """Return a span of hours: 세 시부터 다섯 시까지, from 3 to 5 o'clock."""
    korean = f"{clock_time(start)}부터 {clock_time(end)}까지"
    return Adverb(korean, f"from {start} to {end} o'clock", "when", quantity=f"from-to {start}-{end}")


@lru_cache(100)
def between_days(start: Adverb, end: Adverb) -> Adverb:
    """Return a span of days: 월요일부터 금요일까지, from Monday to Friday."""
    korean = f"{start.korean.removesuffix('에')}부터 {end.korean.removesuffix('에')}까지"
    english = f"from {start.english.removeprefix('on ')} to {end.english.removeprefix('on ')}"
    return Adverb(korean, english, "when", quantity=f"from-to {start.korean}-{end.korean}")


@lru_cache(1000)
def date(month: int, day: int) -> Noun:
    """Return a date as a noun: 6월 15일, June 15."""
    return Noun(f"{month}월 {day}일", f"{MONTHS[month - 1]} {day}", "name", quantity=f"date {month}-{day}")


@lru_cache(1000)
def money(amount: int) -> Noun:
    """Return an amount as a noun: 3만 5천 원, 35,000 won."""
    return Noun(won(amount), f"{amount:,} won", "name", quantity=f"money {amount}")


@lru_cache(100)
def age(years: int) -> Noun:
    """Return an age as a noun: 스무 살, twenty years old."""
    return Noun(with_counter(years, "살"), f"{in_words(years)} years old", "name", quantity=f"age {years}")
