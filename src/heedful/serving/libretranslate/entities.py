"""Character references in HTML: read into plain text, and written again as the source had them.

If the source has "&eacute;" for an "é", so does the translation: its first "é" is written as the source's first one,
the second as the second. Characters that the source did not have are escaped where they must be. A source's form is
not used where it would now mean something else: a bare "<" before a letter would start a tag.
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
_OPENS = re.compile(r"[a-zA-Z!?/]")  # after a "<", these make it markup
CONTEXT = 40  # characters after a reference that may change its meaning: more than the longest name has


class Character(NamedTuple):
    """A special character and how the source wrote it; or a stretch of plain text, twice the same."""

    raw: str
    text: str


def read(raw: str) -> list[Character]:
    """Read HTML without tags into special characters and the plain text between them."""
    result: list[Character] = []
    place = 0
    for special in _SPECIAL.finditer(raw):
        if special.start() >= place:  # not inside a reference
            result.append(Character(raw[place : special.start()], raw[place : special.start()]))
            result.append(reference(raw, special.start()) or Character(special[0], special[0]))
            place = special.start() + len(result[-1].raw)
    return [*result, Character(raw[place:], raw[place:])]


def text_of(characters: Iterable[Character]) -> str:
    """Return the plain text that characters stand for."""
    return "".join(item.text for item in characters)


def reference(text: str, place: int) -> Character | None:
    """Return the reference to a single character that begins at this place, if there is one."""
    if match := _NUMBERED.match(text, place):
        raw, value = match[0], unescape(match[0])
    elif match := _NAMED.match(text, place):
        # The longest name counts. Some names need no semicolon: "&notit;" is "¬it;".
        name = next((name for end in range(len(match[1]), 1, -1) if (name := match[1][:end]) in html5), "")
        raw, value = f"&{name}", html5.get(name, "")
    else:
        return None
    return Character(raw, value) if len(value) == 1 else None


class EntityWriter:
    """Writes text with the character references of its source.

    Args:
        source: The source's characters.
        following: The CONTEXT characters after the source.
    """

    def __init__(self, source: Sequence[Character], following: str) -> None:
        special = {item.text for item in source if item.raw != item.text or item.raw in _ESCAPED}
        self._following = following
        self._raw_forms: dict[str, list[str]] = {character: [] for character in special}
        for item in source if special else ():
            if item.text in special:
                self._raw_forms[item.text].append(item.raw)
            else:
                for character in special.intersection(item.text):
                    self._raw_forms[character] += [character] * item.text.count(character)
        self._pattern = re.compile(f"[{re.escape(''.join(special | _ESCAPED.keys()))}]") if special else _SPECIAL

    def write(self, text: str, markup: Sequence[tuple[int, str]] = ()) -> str:
        """Return the text as HTML, with markup inserted at some places.

        It is written from right to left, since the meaning of a character depends on what follows it.
        """
        if not markup and not self._pattern.search(text):
            return text
        unused = {character: iter(forms) for character, forms in self._raw_forms.items()}
        inserted = [(place, "", raw) for place, raw in markup]
        special = [
            (match.start(), match[0], next(unused.get(match[0], iter(())), ""))
            for match in self._pattern.finditer(text)
        ]
        changes = sorted([*inserted, *special], key=lambda change: change[:2])  # markup before a character
        parts, end, following = [], len(text), self._following
        for place, character, raw in reversed(changes):
            plain = text[place + len(character) : end]
            following = (plain + following)[:CONTEXT]
            if character and not _means(raw, character, following):
                raw = _ESCAPED.get(character, character)
            following = (raw + following)[:CONTEXT]
            parts += [plain, raw]
            end = place
        return "".join(reversed([*parts, text[:end]]))


def _means(raw: str, character: str, following: str) -> bool:
    """Return whether a source's form of a character still means that character before the following text."""
    if raw == "<":
        return _OPENS.match(following) is None
    if raw.startswith("&"):
        match = reference(raw + following, 0)
        return match is None if raw == "&" else match == (raw, character)
    return bool(raw)
