"""Mutations of bytes, texts and JSON: what transfers, careless programs and attackers do to a valid file.

A mutation is a function of a random generator and a content. It returns another content; the same generator state
always gives the same one.
"""

from __future__ import annotations

import copy
import gzip
import json
import re
import zlib
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, NamedTuple

Mutate = Callable[[Random, bytes], bytes]

SIZES = (
    0,
    1,
    2,
    4,
    127,
    128,
    255,
    256,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32,
    2**53,
    2**63 - 1,
    2**64 - 1,
)


class Raw(NamedTuple):
    """A text that stands in JSON as it is, valid or not."""

    text: str


class Members(NamedTuple):
    """The members of a JSON object, which may have a key twice."""

    pairs: list[tuple[str, Any]]


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 7, 0.5, -0.0, 1e-300, 1e308, *SIZES, -(2**63), 10**10, 10**18),
    *("", " ", "a", "1", "None", "0", "\ud800", "\0", "../a", "/etc/passwd", "model.safetensors", "%s{0}", "x" * 5000),
    *("(a+)+b", "\n", "é" * 100, "나", "auto", "cuda", "<unk>"),
    *([], {}, [[]], [None], [0] * 50, ["a", "a"], {"": None}, {"a": {"a": {"a": 1}}}),
    *(Raw("NaN"), Raw("Infinity"), Raw("1e999"), Raw("-"), Raw("1" * 5000), Raw("[" * 3000 + "]" * 3000), Raw("'a'")),
)


def changed_bytes(random: Random, content: bytes) -> bytes:
    """Change, insert, remove, repeat or cut a few bytes, or write a number of two, four or eight bytes."""
    place, other = (random.randrange(len(content) + 1) for _ in range(2))
    first, last = min(place, other), max(place, other)
    last = min(last, first + random.choice((1, 4, 64, len(content))))
    match random.randrange(8):
        case 0:
            return content[:place]
        case 1:
            return content[:first] + content[last:]
        case 2:
            return content[:last] + content[first:last] * random.choice((1, 2, 30)) + content[last:]
        case 3:
            return content[:place] + random.randbytes(random.choice((1, 2, 8))) + content[place:]
        case 4 if content:
            place = random.randrange(len(content))
            return content[:place] + bytes([content[place] ^ 1 << random.randrange(8)]) + content[place + 1 :]
        case 5:
            width, order = random.choice((1, 2, 4, 8)), random.choice(("little", "big"))
            number = random.choice(SIZES) % 256**width
            return content[:place] + number.to_bytes(width, order) + content[place + width :]
        case 6:
            return content[:place] + bytes(last - first) + content[place + last - first :]
        case _:
            return content[last:] + content[:first] + content[first:last]


def changed_text(random: Random, content: bytes, parts: Sequence[bytes] = ()) -> bytes:
    """Change a text in units that its format has: lines, words, numbers, signs. `parts` are inserted sometimes."""
    tokens = re.findall(rb"\d+|\w+|\s+|[^\w\s]", content) or [b""]
    place = random.randrange(len(tokens))
    span = slice(place, place + random.choice((1, 1, 3, 20)))
    match random.randrange(7):
        case 0:
            del tokens[span]
        case 1:
            tokens[place:place] = tokens[span] * random.choice((1, 2, 50))
        case 2:
            other = random.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        case 3:
            tokens[place] = str(random.choice(SIZES)).encode()
        case 4 | 5:
            common = (b"\0", b"\r", b"\n", b"\xff", b"\xed\xa0\x80", b"\xe2\x80\xa8", b"9" * 5000, b"x" * 70_000, b'"')
            tokens[place:place] = [random.choice((*parts, *parts, *common))]
        case _:
            return changed_bytes(random, content)
    return b"".join(tokens)


def changed_json(random: Random, content: bytes) -> bytes:
    """Change a value, a key or the nesting of a JSON document; what is no JSON is changed as a text."""
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return changed_text(random, content)
    return dump(changed_value(random, value)).encode("utf-8", "surrogatepass")


def changed_lines(random: Random, content: bytes) -> bytes:
    """Change one line of JSON lines, or the order of the lines."""
    lines = content.split(b"\n")
    place = random.randrange(len(lines))
    if random.random() < 0.2:
        return changed_text(random, content)
    lines[place] = changed_json(random, lines[place])
    return b"\n".join(lines)


def changed_value(random: Random, value: Any) -> Any:
    """Return a copy of a value of JSON with one change somewhere inside."""
    value = copy.deepcopy(value)
    holder = [value]  # so that the value itself has a place
    places = list(_places(holder))
    inside, key = random.choice(places)
    old = inside[key]
    match random.randrange(9):
        case 0 | 1 | 2:
            inside[key] = random.choice(ODD_VALUES)
        case 3:
            other, other_key = random.choice(places)
            inside[key] = copy.deepcopy(other[other_key])
        case 4 if isinstance(inside, dict):
            pairs = [*inside.items(), (key, random.choice((old, *ODD_VALUES)))]
            return _replaced(holder, inside, Members(pairs))
        case 5 if isinstance(inside, dict):
            del inside[key]
        case 5 if len(inside) > 1:
            del inside[key]
        case 6 if isinstance(inside, dict):
            inside[random.choice((f"{key}x", "", "auto_map", "__class__", key.upper()))] = inside.pop(key)
        case 7:
            depth = random.choice((1, 2, 40))
            for _ in range(depth):
                old = [old] if random.random() < 0.5 else {"a": old}
            inside[key] = old
        case _:
            if isinstance(old, bool | None):
                inside[key] = not old
            elif isinstance(old, int | float):
                inside[key] = random.choice((-old, old * 10, old + 1, old * 10**9, old / 3, str(old)))
            elif isinstance(old, list):
                inside[key] = old * random.choice((0, 2, 100))
            elif isinstance(old, str):
                inside[key] = random.choice((old * 2, old * 1000, old[1:], old.upper(), old + "\0", [old]))
            else:
                inside[key] = list(old)
    return holder[0]


def _places(value: Any) -> Any:
    if isinstance(value, dict | list):
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(inner)


def _replaced(holder: list[Any], old: Any, new: Any) -> Any:
    for inside, key in list(_places(holder)):
        if inside[key] is old:
            inside[key] = new
            break
    return holder[0]


def dump(value: Any) -> str:
    """Return JSON in which a `Raw` stands as it is, and `Members` may have a key twice."""
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict | Members):
        pairs = value.pairs if isinstance(value, Members) else value.items()
        return "{" + ", ".join(f"{json.dumps(key)}: {dump(inner)}" for key, inner in pairs) + "}"
    return "[" + ", ".join(map(dump, value)) + "]" if isinstance(value, list) else json.dumps(value)


def text_with(*parts: bytes) -> Mutate:
    """Return the mutation of texts that inserts these parts sometimes."""
    return lambda random, content: changed_text(random, content, parts)


def packed(inner: Mutate) -> Mutate:
    """Return the mutation of a gzip file: its content, or the file itself."""

    def mutate(random: Random, content: bytes) -> bytes:
        if random.random() < 0.5:
            return changed_bytes(random, content)
        try:
            plain = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return changed_bytes(random, content)
        return gzip.compress(inner(random, plain), compresslevel=1, mtime=0)

    return mutate
