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
_SINO_ONES, _SINO_PLACES, _MYRIADS = ("", *"일이삼사오육칠팔구"), ("", *"십백천"), ("", *"만억조")

System = Literal["native", "sino"]
NATIVE_COUNTERS, SINO_COUNTERS = (frozenset(split_list(_TABLE[f"{name}_counters"])) for name in get_args(System))
_BOTH: dict[str, str] = _TABLE["either_counters"]


def native(n: int, *, before_counter: bool = False) -> str:
    """A native number, 1 to 99: 스물; before a counter 스무, 한, 두, 세, 네 (스물한, 서른세)."""
    _require("a native number", n, 1, 99)
    tens, ones = _NATIVE_TENS[n // 10], _NATIVE_ONES[n % 10]
    if not before_counter:
        return tens + ones
    return tens + _BEFORE_COUNTER.get(ones, ones) if ones else _BEFORE_COUNTER.get(tens, tens)


def sino(n: int) -> str:
    """A Sino-Korean number in words: 35000 → 삼만 오천, 0 → 영."""
    _require("a Sino-Korean number", n, 0, 10**16 - 1)
    groups = [_sino_below_myriad(value) + unit for value, unit in _myriads(n)]
    words = " ".join(groups) or "영"
    return words.removeprefix("일") if words.startswith("일만") else words  # 만, not 일만; but 일억


def counted(n: int, counter: str, system: System | None = None) -> str:
    """A number and its counter: 세 개, 스무 살, 삼 층; `system` is needed where a counter takes both (분, 번)."""
    if system is None:
        system = _system(n, counter)
    if system == "sino":
        return "일주일" if (n, counter) == (1, "주일") else f"{sino(n)} {counter}"
    hundreds, rest = n - n % 100, n % 100
    if not hundreds:
        return f"{native(n, before_counter=True)} {counter}"
    space = " " if hundreds % 10_000 == 0 else ""
    return f"{sino(hundreds)}{space}{native(rest, before_counter=True)} {counter}" if rest else f"{sino(n)} {counter}"


def month(n: int) -> str:
    """The name of a month: 일월, … 유월, … 시월."""
    _require("a month", n, 1, 12)
    return {6: "유월", 10: "시월"}.get(n, sino(n) + "월")


def clock_time(hour: int, minute: int = 0) -> str:
    """A time on the clock's face: 세 시, 세 시 십오 분, 세 시 반."""
    _require("an hour", hour, 1, 12)
    _require("a minute", minute, 0, 59)
    hours = counted(hour, "시")
    if minute == 0:
        return hours
    return f"{hours} 반" if minute == 30 else f"{hours} {counted(minute, '분', 'sino')}"


def won(n: int) -> str:
    """An amount as it is written with digits: 35000 → 3만 5천 원, 1500 → 1,500 원, 120000000 → 1억 2천만 원."""
    _require("an amount of money", n, 0, 10**16 - 1)
    groups = [(f"{value // 1000}천" if value % 1000 == 0 else f"{value:,}") + unit for value, unit in _myriads(n)]
    return f"{' '.join(groups) or '0'} 원"


def _system(n: int, counter: str) -> System:
    if counter in _BOTH:
        raise ValueError(f"{counter} counts {_BOTH[counter]}; say system='native' or system='sino'")
    if counter not in NATIVE_COUNTERS | SINO_COUNTERS:
        raise ValueError(unknown("counter", counter, {*NATIVE_COUNTERS, *SINO_COUNTERS, *_BOTH}))
    on_a_24_hour_clock = counter == "시" and not 1 <= n <= 12
    return "native" if counter in NATIVE_COUNTERS and not on_a_24_hour_clock else "sino"


def _myriads(n: int) -> list[tuple[int, str]]:
    """The parts of a number that are not zero, largest first, each with its unit: 35000 → (3, 만), (5000, "")."""
    parts = [(n // 10_000**power % 10_000, unit) for power, unit in enumerate(_MYRIADS)]
    return [(value, unit) for value, unit in reversed(parts) if value]


def _sino_below_myriad(n: int) -> str:
    words = ""
    for place, digit in enumerate(reversed(str(n))):
        unit = "" if digit == "1" and place else _SINO_ONES[int(digit)]  # 십, not 일십
        words = (unit + _SINO_PLACES[place] if digit != "0" else "") + words
    return words


def _require(what: str, n: int, low: int, high: int) -> None:
    if not low <= n <= high:
        raise ValueError(f"{what} is {low} to {high}, not {n}")


# Quantities as the nouns and adverbs of a frame


@lru_cache(1000)
def at_clock(hour: int, minute: int) -> Adverb:
    """세 시 십오 분에, at 3:15."""
    time = clock(hour, minute)
    return Adverb(time.korean + "에", f"at {time.english}", "when", quantity=time.quantity)


@lru_cache(1000)
def clock(hour: int, minute: int) -> Noun:
    """세 시 십오 분, 3:15."""
    english = f"{hour} o'clock" if minute == 0 else f"{hour}:{minute:02}"
    return Noun(clock_time(hour, minute), english, "name", quantity=f"clock {hour}:{minute:02}")


@lru_cache(1000)
def between_clocks(start: int, end: int) -> Adverb:
    """세 시부터 다섯 시까지, from 3 to 5 o'clock."""
    korean = f"{clock_time(start)}부터 {clock_time(end)}까지"
    return Adverb(korean, f"from {start} to {end} o'clock", "when", quantity=f"from-to {start}-{end}")


@lru_cache(100)
def between_days(start: Adverb, end: Adverb) -> Adverb:
    """월요일부터 금요일까지, from Monday to Friday."""
    korean = f"{start.korean.removesuffix('에')}부터 {end.korean.removesuffix('에')}까지"
    english = f"from {start.english.removeprefix('on ')} to {end.english.removeprefix('on ')}"
    return Adverb(korean, english, "when", quantity=f"from-to {start.korean}-{end.korean}")


@lru_cache(1000)
def on_date(month: int, day: int) -> Adverb:
    """6월 15일에, on June 15."""
    noun = date(month, day)
    return Adverb(noun.korean + "에", f"on {noun.english}", "when", quantity=noun.quantity)


@lru_cache(1000)
def date(month: int, day: int) -> Noun:
    """6월 15일, June 15."""
    return Noun(f"{month}월 {day}일", f"{MONTHS[month - 1]} {day}", "name", quantity=f"date {month}-{day}")


@lru_cache(1000)
def money(amount: int) -> Noun:
    """3만 5천 원, 35,000 won."""
    return Noun(won(amount), f"{amount:,} won", "name", quantity=f"money {amount}")


@lru_cache(100)
def age(years: int) -> Noun:
    """스무 살, twenty years old."""
    return Noun(counted(years, "살"), f"{in_words(years)} years old", "name", quantity=f"age {years}")
