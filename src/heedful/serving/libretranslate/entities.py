"""How characters are spelled in HTML: read into plain text, and written again as they were spelt before.

What the source spelt "&eacute;" is written so in the translation, the second "é" as the second one was, and a
character that the source did not have is escaped where it must be. No spelling is kept where it would now be read as
something else: a bare "<" before a letter would be a tag.
"""

import re
from collections.abc import Iterable, Sequence
from html import unescape
from html.entities import html5
from typing import NamedTuple

_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPECIAL = re.compile("[&<>]")
_NUMBERED = re.compile(r"&#(?:[0-9]{1,7}(?![0-9])|[xX][0-9a-fA-F]{1,6}(?![0-9a-fA-F]));?")
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31};?)")
_OPENS = re.compile(r"[a-zA-Z!?/]")  # what makes the "<" before it markup
REACH = 40  # characters that decide how one is read: more than the longest name has
_NEEDS_NO_END = {name for name in html5 if not name.endswith(";")}
_LONGEST = max(map(len, _NEEDS_NO_END))


class Spelt(NamedTuple):
    """A special character and how it was written; or plain text, twice the same."""

    raw: str
    text: str


def read(raw: str) -> list[Spelt]:
    """What HTML without markup says: its special characters one by one, and the plain text between them."""
    result: list[Spelt] = []
    place = 0
    for special in _SPECIAL.finditer(raw):
        if special.start() >= place:  # not inside of a reference
            result.append(Spelt(raw[place : special.start()], raw[place : special.start()]))
            result.append(Spelt(*(reference(raw, special.start()) or (special[0], special[0]))))
            place = special.start() + len(result[-1].raw)
    return [*result, Spelt(raw[place:], raw[place:])]


def plain_text(spelt: Iterable[Spelt]) -> str:
    """The plain text."""
    return "".join(item.text for item in spelt)


def reference(text: str, place: int) -> tuple[str, str] | None:
    """The reference to a single character that begins there, and that character; None for any other "&"."""
    if result := _NUMBERED.match(text, place):
        raw, value = result[0], unescape(result[0])
    elif result := _NAMED.match(text, place):
        name = result[1]
        if name not in html5:
            ends = range(min(len(name), _LONGEST), 1, -1)
            name = next((name[:end] for end in ends if name[:end] in _NEEDS_NO_END), "")
        raw, value = f"&{name}", html5.get(name, "")
    else:
        return None
    return (raw, value) if len(value) == 1 else None


class EntityWriter:
    """Writes text as the source spelt it."""

    def __init__(self, source: Iterable[Spelt], following: str) -> None:
        """`following` are the next REACH characters after the source."""
        source = list(source)
        special = {item.text for item in source if item.raw != item.text or item.raw in _ESCAPED}
        self._following = following
        self._spellings: dict[str, list[str]] = {character: [] for character in special}
        for item in source if special else ():
            if item.text in special:
                self._spellings[item.text].append(item.raw)
            else:
                for character in special.intersection(item.text):
                    self._spellings[character] += [character] * item.text.count(character)
        self._pattern = re.compile(f"[{re.escape(''.join(special | _ESCAPED.keys()))}]") if special else _SPECIAL

    def write(self, text: str, markup: Sequence[tuple[int, str]] = ()) -> str:
        """The text, with markup before some of its places.

        From right to left: what follows a character decides whether its old spelling still says the same.
        """
        if not markup and not self._pattern.search(text):
            return text
        unused = {character: iter(spelt) for character, spelt in self._spellings.items()}
        inserted = [(place, "", raw) for place, raw in markup]
        special = [
            (result.start(), result[0], next(unused.get(result[0], iter(())), ""))
            for result in self._pattern.finditer(text)
        ]
        # Before a character, the markup, in its order.
        changes = sorted([*inserted, *special], key=lambda change: change[:2])
        parts, end, following = [], len(text), self._following
        for place, character, spelled in reversed(changes):
            plain = text[place + len(character) : end]
            following = (plain + following)[:REACH]
            if character and not _says(spelled, character, following):
                spelled = _ESCAPED.get(character, character)
            following = (spelled + following)[:REACH]
            parts += [plain, spelled]
            end = place
        return "".join(reversed([*parts, text[:end]]))


def _says(spelled: str, character: str, following: str) -> bool:
    if not spelled:
        return False
    if spelled == "<":
        return _OPENS.match(following) is None
    if spelled.startswith("&"):
        read_as = reference(spelled + following, 0)
        return read_as is None if spelled == "&" else read_as == (spelled, character)
    return True
