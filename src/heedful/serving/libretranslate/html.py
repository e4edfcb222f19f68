"""HTML as what stays and what is translated. Put together again with the same words, it is the same to the byte.

Markup is read as the HTML standard does, in one pass: where a tag, a comment or a script does not come to its end,
everything from there on belongs to it and stays. (The standard library's parser looks for that end again from every
"<", and does not say how things were written.) `marking.py` makes sentences of what stands between the tags.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from .documents import Document
from .marking import INLINE, Token, sentences

_SPACE = r"\t\n\f\r "
_OPENS = re.compile(r"<(?=[a-zA-Z!?/])")
_ATTRIBUTE = rf"""
    [^{_SPACE}/>] [^{_SPACE}/>=]*+
    (?: (?! [{_SPACE}]*+= )
      | [{_SPACE}]*+ = [{_SPACE}]*+ (?: "[^"]*+" | '[^']*+' | [^{_SPACE}>"'] [^{_SPACE}>]*+ | (?=>) )
    )"""
_MARKUP = re.compile(
    rf"""
    <!-- (?: -?> | .*? --!?> )
    | < (?: !(?!--) | \? | /(?![a-zA-Z]) ) [^>]*+ >
    | < (?P<close>/?) (?P<name> [a-zA-Z] [^{_SPACE}/>]*+ ) (?P<rest> (?: [{_SPACE}/]++ | {_ATTRIBUTE} )*+ ) >
    """,
    re.VERBOSE | re.DOTALL,
)
_SAYS = re.compile(
    rf"""(?P<name> [^{_SPACE}/>] [^{_SPACE}/>=]*+ ) [{_SPACE}]*+
    (?: = [{_SPACE}]*+ (?: "(?P<double>[^"]*+)" | '(?P<single>[^']*+)' | (?P<bare>[^{_SPACE}>]*+) ) )?+""",
    re.VERBOSE,
)
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
_KEPT = {"code", "kbd", "math", "pre", "samp", "var"}  # elements whose words are no sentences
_RAW = {
    name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE)
    for name in ("iframe", "noembed", "noframes", "script", "style", "textarea", "xmp")
}


def html(text: str) -> Document:
    """What stays and what is translated of an HTML document or a part of one, whole or broken."""
    return tuple(sentences(_tokens(text), text))


def _tokens(text: str) -> Iterator[Token]:
    kept = _Kept()
    place = 0
    while opening := _OPENS.search(text, place):
        yield _words(text, place, opening.start(), kept)
        markup = _MARKUP.match(text, opening.start())
        if markup is None:
            yield Token(opening.start(), len(text))
            return
        place, name = markup.end(), (markup["name"] or "").lower()
        if name in _RAW and not markup["close"]:
            end = _RAW[name].search(text, place)
            place = end.start() if end else len(text)
        elif name and kept.passes(name, markup["close"] == "/", markup["rest"]) and name in INLINE:
            yield Token(markup.start(), place, name, closes=markup["close"] == "/")
            continue
        yield Token(markup.start(), place)
    yield _words(text, place, len(text), kept)


def _words(text: str, begin: int, end: int, kept: _Kept) -> Token:
    return Token(begin, end, is_text=not kept.now)


class _Kept:
    """Whether an element around this place says that its words stay, or a nearer one that they do not."""

    def __init__(self) -> None:
        self._elements: list[tuple[str, bool]] = []  # those with a say, and those of the same name inside of them

    @property
    def now(self) -> bool:
        return bool(self._elements) and self._elements[-1][1]

    def passes(self, name: str, closes: bool, rest: str) -> bool:
        """A tag; whether it changes nothing here."""
        before = len(self._elements), self.now
        if closes:
            if self._elements and self._elements[-1][0] == name:
                self._elements.pop()
        elif name not in _VOID and not rest.endswith("/"):
            says = _own_say(name, rest) if rest or name in _KEPT else None
            if says is not None:
                self._elements.append((name, says))
            elif self._elements and self._elements[-1][0] == name:
                self._elements.append((name, self.now))
        return before == (len(self._elements), False)


def _own_say(name: str, rest: str) -> bool | None:
    said: dict[str, str] = {}
    for found in _SAYS.finditer(rest):
        said.setdefault(found["name"].lower(), unescape(found["double"] or found["single"] or found["bare"] or ""))
    asked = said.get("translate")
    if asked is not None and asked.lower() in ("no", "yes", ""):
        return asked.lower() == "no"
    if "notranslate" in said.get("class", "").split() or name in _KEPT:
        return True
    return None
