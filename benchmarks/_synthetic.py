"""Data sets with rules, for `defaults.py`: each function draws a (source, target) pair of text, or a seasonal series.

The rules are exact, so a model that learned them answers every held-out pair. `data_set` draws distinct pairs.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import date, datetime, timedelta

Pair = tuple[str, str]

VERBS = ("clap", "bow", "jump", "hop", "wave", "nod", "look", "step", "spin")
TIMES = {"twice": 2, "thrice": 3}
SIDES = {"left": "HEAD_UP_LEFT", "right": "HEAD_UP_RIGHT"}


def _action(generator: random.Random) -> Pair:
    """Return a verb with its direction and its count: at most 24 symbols for four words."""
    verb = generator.choice(VERBS)
    words, symbols = [verb], [f"DO_{verb.upper()}"]
    if generator.random() < 0.6:
        side = generator.choice(list(SIDES))
        way = generator.choice(("", "around"))
        words += [way, side] if way else [side]
        symbols = [SIDES[side], *symbols] * (4 if way else 1)
    if generator.random() < 0.5:
        word, count = generator.choice(list(TIMES.items()))
        words.append(word)
        symbols *= count
    return " ".join(words), " ".join(symbols)


def commands(generator: random.Random) -> Pair:
    """Commands to actions, with nesting and repetition: "bow after ( clap left and hop ) twice".

    A target has at most eight times as many symbols as its source has words.
    """
    source, target = _command(generator)
    while len(target.split()) > 8 * len(source.split()):
        source, target = _command(generator)
    return source, target


def _command(generator: random.Random) -> Pair:
    source, target = _action(generator)
    if generator.random() < 0.3:
        inner_source, inner_target = _action(generator)
        word, count = generator.choice(list(TIMES.items()))
        source, target = f"( {source} and {inner_source} ) {word}", " ".join([f"{target} {inner_target}"] * count)
    if generator.random() < 0.7:
        other_source, other_target = _action(generator)
        if generator.random() < 0.5:
            return f"{source} and {other_source}", f"{target} {other_target}"
        return f"{source} after {other_source}", f"{other_target} {target}"
    return source, target


DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
TEENS = ("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen")
SMALL = DIGITS + TEENS
TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def spell(number: int) -> str:
    """Return a number below a million in English words."""
    if number < 20:
        return SMALL[number]
    if number < 100:
        tens, rest = divmod(number, 10)
        return TENS[tens - 2] + (f"-{SMALL[rest]}" if rest else "")
    for size, name in ((1000, "thousand"), (100, "hundred")):
        if number >= size:
            count, rest = divmod(number, size)
            joint = " and " if rest and rest < 100 else " "
            return f"{spell(count)} {name}" + (joint + spell(rest) if rest else "")
    raise AssertionError(number)


def numbers(generator: random.Random) -> Pair:
    """Number words to digits: "three hundred and five" to "305"."""
    number = generator.randrange(10 ** generator.randint(1, 6))
    return spell(number), str(number)


def _ordinal(day: int) -> str:
    return f"{day}{'th' if 10 <= day % 100 <= 20 else {1: 'st', 2: 'nd', 3: 'rd'}.get(day % 10, 'th')}"


DATE_FORMATS: tuple[Callable[[date], str], ...] = (
    lambda day: f"{day:%B} {day.day}, {day.year}",
    lambda day: f"{day.day} {day:%b} {day.year}",
    lambda day: f"{day:%A}, the {_ordinal(day.day)} of {day:%B} {day.year}",
    lambda day: f"{day:%d/%b/%Y}",
    lambda day: f"{day:%b} {_ordinal(day.day)}, '{day:%y}",
    lambda day: f"{day:%d.%m.%Y}",
)


def dates(generator: random.Random) -> Pair:
    """Dates as people write them to ISO: "Tuesday, the 3rd of May 2011" to "2011-05-03"."""
    day = date(1950, 1, 1) + timedelta(days=generator.randrange(36_500))
    form = generator.choice(DATE_FORMATS)
    if "'" in form(day) and not 1970 <= day.year < 2050:  # two digits must mean one year
        form = DATE_FORMATS[0]
    return form(day), day.isoformat()


def reversals(generator: random.Random) -> Pair:
    """Strings to the same strings reversed."""
    text = "".join(generator.choices("abcdefghijklmnopqrstuvwxyz", k=generator.randint(3, 14)))
    return text, text[::-1]


BRACKETS = {"(": ")", "[": "]", "{": "}", "<": ">"}


def brackets(generator: random.Random) -> Pair:
    """Unfinished brackets to the brackets that close them: "a([b]{" to "})"."""
    text, is_open = "", list[str]()
    for _ in range(generator.randint(3, 16)):
        action = generator.random()
        if action < 0.5 and len(is_open) < 8:
            is_open.append(generator.choice(list(BRACKETS)))
            text += is_open[-1]
        elif action < 0.75 and is_open:
            text += BRACKETS[is_open.pop()]
        else:
            text += generator.choice("abcxyz")
    if not is_open:
        return brackets(generator)
    return text, "".join(BRACKETS[bracket] for bracket in reversed(is_open))


NAMES = (
    *("count", "total", "index", "max_size", "user_name", "is_open", "node_list", "offset", "buffer", "token"),
    *("next_row", "price_2", "x", "y", "tmp", "result", "file_path", "retry_limit", "left_child", "score"),
)


def code(generator: random.Random) -> Pair:
    """Lines of Python to shorter ones that do the same: "x = x + 3" to "x += 3"."""
    a, b, c = generator.sample(NAMES, 3)
    n = generator.randrange(1000)
    operator = generator.choice("+-*/")
    value = generator.choice((b, str(n), f"{b}[{n}]", f"{b}.{c}"))
    rewrites = (
        (f"{a} = {a} {operator} {value}", f"{a} {operator}= {value}"),
        (f"if not {a} == {value}:", f"if {a} != {value}:"),
        (f"if not {a} in {b}:", f"if {a} not in {b}:"),
        (f"if {a} == None:", f"if {a} is None:"),
        (f"if len({a}) == 0:", f"if not {a}:"),
        (f"if {a} > {n} and {a} < {n + generator.randrange(2, 100)}:", ""),
        (f"{a} = dict({b}={n})", f'{a} = {{"{b}": {n}}}'),
        (f"return True if {a} < {value} else False", f"return {a} < {value}"),
        (f"for i in range(len({a})): print({a}[i], {value})", f"for item in {a}: print(item, {value})"),
        (f"{a} = {b} if {b} else {n}", f"{a} = {b} or {n}"),
        (f"lambda {a}: {b}({a})", b),
        (f"print('%s %d' % ({a}, {n}))", f"print(f'{{{a}}} {n}')"),
    )
    source, target = generator.choice(rewrites)
    if not target:
        low, high = source.removeprefix(f"if {a} > ").removesuffix(":").split(f" and {a} < ")
        target = f"if {low} < {a} < {high}:"
    return source, target


def data_set(make: Callable[[random.Random], Pair], n: int, *, seed: int) -> list[Pair]:
    """Return `n` pairs with distinct sources, in random order."""
    generator, pairs = random.Random(seed), dict[str, str]()
    while len(pairs) < n:
        source, target = make(generator)
        pairs.setdefault(source, target)
    return list(pairs.items())


def seasonal_series(n: int, *, seed: int) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of three hourly series: a trend that turns, a day, a week, and noise.

    The noise is correlated, and the daily swing grows and shrinks over a month, so a fixed season is not the answer.
    """
    generator = random.Random(seed)
    names = ("load", "wind", "visits")
    levels, noises = [0.0] * len(names), [0.0] * len(names)
    rows = []
    for hour in range(n):
        row = [str(datetime(2020, 1, 1) + timedelta(hours=hour))]
        for index in range(len(names)):
            levels[index] = 0.999 * levels[index] + generator.gauss(0, 0.03)
            noises[index] = 0.7 * noises[index] + generator.gauss(0, 0.2)
            swing = 1 + 0.5 * math.sin(2 * math.pi * hour / (24 * 30) + index)
            day, week = (2 * math.pi * (hour + 5 * index) / period for period in (24, 168))
            value = levels[index] + swing * math.sin(day) + 0.3 * math.sin(2 * day) + 0.6 * math.sin(week)
            row.append(f"{10 * (index + 1) + 3 * (value + noises[index]):.3f}")
        rows.append(row)
    return ["date", *names], rows
