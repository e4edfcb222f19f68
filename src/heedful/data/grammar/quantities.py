"""Times, dates, amounts and ages, made when they are needed."""

from __future__ import annotations

from functools import lru_cache

from heedful.data.grammar.english_forms import MONTHS, in_words
from heedful.data.grammar.korean import numbers
from heedful.data.grammar.lexicon import Adverb, Noun


def _spoken(hour: int, minute: int) -> str:
    return f"{hour} o'clock" if minute == 0 else f"{hour}:{minute:02}"


@lru_cache(1000)
def at_clock(hour: int, minute: int) -> Adverb:
    """세 시 십오 분에, at 3:15."""
    quantity = f"clock {hour}:{minute:02}"
    return Adverb(numbers.clock(hour, minute) + "에", f"at {_spoken(hour, minute)}", "when", quantity=quantity)


@lru_cache(1000)
def clock(hour: int, minute: int) -> Noun:
    """세 시 십오 분, 3:15."""
    return Noun(numbers.clock(hour, minute), _spoken(hour, minute), "name", quantity=f"clock {hour}:{minute:02}")


@lru_cache(1000)
def between_clocks(start: int, end: int) -> Adverb:
    """세 시부터 다섯 시까지, from 3 to 5 o'clock."""
    korean = f"{numbers.clock(start)}부터 {numbers.clock(end)}까지"
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
    quantity = f"date {month}-{day}"
    return Adverb(f"{month}월 {day}일" + "에", f"on {MONTHS[month - 1]} {day}", "when", quantity=quantity)


@lru_cache(1000)
def date(month: int, day: int) -> Noun:
    """6월 15일, June 15."""
    return Noun(f"{month}월 {day}일", f"{MONTHS[month - 1]} {day}", "name", quantity=f"date {month}-{day}")


@lru_cache(1000)
def money(won: int) -> Noun:
    """3만 5천 원, 35,000 won."""
    return Noun(numbers.money(won), f"{won:,} won", "name", quantity=f"money {won}")


@lru_cache(100)
def age(years: int) -> Noun:
    """스무 살, twenty years old."""
    return Noun(numbers.counted(years, "살"), f"{in_words(years)} years old", "name", quantity=f"age {years}")
