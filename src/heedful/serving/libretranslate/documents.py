"""Splits text and HTML into what is translated and what stays, and puts them together again with the translations.

HTML with unchanged words comes out byte for byte as it was. Its markup is read in one pass, as the HTML standard reads
it: a tag, a comment or a script without an end extends to the end of the text, and stays. (The standard library's
parser searches for that end again from every "<", and does not report how things were written.)

Text between block tags is split into sentences: "I like <b>cats</b>." is one sentence with a tag in it. Inline tags
stay inside a sentence if each surrounds whole words and none is nested; otherwise the text between the tags is
translated piece by piece.

Character references are read into plain text, and written again as the source had them: if it has "&eacute;" for its
first "é", so does the translation. Characters that the source did not have are escaped where they must be. A source's
form is not used where it would now mean something else: a bare "<" before a letter would start a tag.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from html import unescape
from html.entities import html5
from itertools import pairwise
from typing import NamedTuple

from ...tasks.translation.data import text_lines

_LETTER = re.compile(r"[^\W\d_]")

Span = tuple[int, int]  # of characters: begin, end


@dataclass(frozen=True, slots=True)
class Segment:
    """A text to translate, without white space at its ends, and the tags around some of its words.

    Attributes:
        text: What is translated.
        spans: The characters that the tags surround, in order, none inside another.
        render: Writes a translation as the document does, with the tags at the given spans of it.
        pieces: The same text cut at its tags, for when nobody knows where they belong in the translation.
    """

    text: str
    spans: tuple[Span, ...]
    render: Callable[[str, Sequence[Span]], str]
    pieces: "Document" = ()


Document = tuple[str | Segment, ...]


def has_letters(text: str) -> bool:
    """Return whether there is something to translate: numbers, signs and empty texts stay as they are."""
    return _LETTER.search(text) is not None


def plain(text: str) -> Document:
    """Split a plain text into lines: line breaks and the white space at the ends of lines stay."""
    parts: list[str | Segment] = []
    for before, line, after in text_lines(text):
        if has_letters(line):
            parts += [before, Segment(line, (), _unchanged), after]
        else:
            parts.append(before + line + after)
    return tuple(parts)


def _unchanged(text: str, _: Sequence[Span]) -> str:
    return text


def texts_of(document: Iterable[str | Segment]) -> list[str]:
    """Return the texts to translate, in order."""
    return [part.text for part in document if not isinstance(part, str)]


def assemble(document: Iterable[str | Segment], translations: Sequence[str]) -> str:
    """Return the document with a translation in the place of each segment, none of which has tags."""
    remaining = iter(translations)
    return "".join(part if isinstance(part, str) else part.render(next(remaining), ()) for part in document)


INLINE = {
    *("a", "abbr", "b", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label", "mark", "q", "s", "small"),
    *("span", "strike", "strong", "sub", "sup", "time", "tt", "u"),
}
_ELEMENT = re.compile(r"(?P<open>\(*)(?P<text>T)(?P<close>\)*)|.")  # of the kinds of tokens, a character for each
_SENTENCE_ENDS = set(".!?…。！？")
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])\s*")


@dataclass(frozen=True, slots=True)
class HtmlToken:
    """A part of an HTML text: text, an inline tag with its name, or anything else."""

    begin: int
    end: int
    name: str = ""
    closes: bool = False
    is_text: bool = False


@dataclass(frozen=True, slots=True)
class _Element:
    """A text and the tags around it; no tags if it belongs to the sentence itself."""

    begin: int
    end: int
    opening: str = ""
    closing: str = ""


def sentences(tokens: Iterable[HtmlToken], page: str) -> Iterator[str | Segment]:
    """Group the tokens of a page into sentences and what stays."""
    group: list[HtmlToken] = []
    depth, previous = 0, ""  # number of open tags, and the last character before this token
    for token in tokens:
        if token.begin == token.end:
            continue
        if not token.is_text and not token.name:
            yield from _sentence(group, page)
            yield page[token.begin : token.end]
            group, depth = [], 0
        elif token.is_text and depth == 0:
            *complete, last = _cut(token, page)
            for item in complete:
                yield from _sentence([*group, item], page)
                group = []
            group += [last] * (last.begin < last.end)
        else:
            group.append(token)
            depth += bool(token.name) * (-1 if token.closes else 1)
            if token.closes and depth == 0 and previous in _SENTENCE_ENDS:
                yield from _sentence(group, page)
                group = []
        previous = page[token.end - 1] if token.is_text else previous
    yield from _sentence(group, page)


def _cut(token: HtmlToken, page: str) -> list[HtmlToken]:
    """Cut a text into sentences; white space between two belongs to the first."""
    ends = [end.end() for end in _SENTENCE_END.finditer(page, token.begin, token.end)]
    return [HtmlToken(begin, end, is_text=True) for begin, end in pairwise([token.begin, *ends, token.end])]


def _sentence(group: Sequence[HtmlToken], page: str) -> Iterator[str | Segment]:
    """Yield a sentence with its tags as one segment if that is possible, otherwise its pieces."""
    pieces = tuple(_piece(token, page) if token.is_text else page[token.begin : token.end] for token in group)
    elements = _elements(group, page)
    sentence = None if elements is None else _segment(elements, page, pieces)
    yield from pieces if sentence is None else (sentence,)


def _piece(token: HtmlToken, page: str) -> str | Segment:
    text = page[token.begin : token.end]
    return (_segment([_Element(token.begin, token.end)], page) if has_letters(text) else None) or text


def _elements(group: Sequence[HtmlToken], page: str) -> list[_Element] | None:
    """Return the texts of a sentence with the tags right around each; None where tags are placed in any other way."""
    kinds = "".join("T" if token.is_text else ")" if token.closes else "(" for token in group)
    elements: list[_Element] = []
    for match in _ELEMENT.finditer(kinds):
        opened, closed = group[slice(*match.span("open"))], group[slice(*match.span("close"))]
        if match["text"] is None or [token.name for token in opened] != [token.name for token in reversed(closed)]:
            return None
        text = group[match.start("text")]
        opening, closing = (page[tags[0].begin : tags[-1].end] if tags else "" for tags in (opened, closed))
        elements.append(_Element(text.begin, text.end, opening, closing))
    return elements if any(element.opening for element in elements) else None


def _segment(elements: Sequence[_Element], page: str, pieces: Document = ()) -> Segment | None:
    """Join texts and their tags; None if a tag cuts a word, or if there are no letters outside the tags."""
    spans: list[Span] = []
    whole = outside = ""
    for element in elements:
        text = "".join(item.text for item in read(page[element.begin : element.end]))
        if element.opening:
            spans.append((len(whole), len(whole) + len(text)))
        else:
            outside += text
        whole += text
    inner = whole.strip()
    begin = whole.index(inner)
    spans = [(first - begin, last - begin) for first, last in spans]
    if not has_letters(outside) or not all(_has_whole_words(inner, span) for span in spans):
        return None
    return Segment(inner, tuple(spans), partial(_render, elements, page, whole), pieces)


def _render(elements: Sequence[_Element], page: str, whole: str, translation: str, spans: Sequence[Span]) -> str:
    """Write a translation as the page does: with its character references, and its tags at these spans.

    What this needs of the page is read again: a page may have many thousands of segments.
    """
    inner = whole.strip()
    begin = whole.index(inner)
    characters = [item for element in elements for item in read(page[element.begin : element.end])]
    end = elements[-1].end + len(elements[-1].closing)
    tags = [(element.opening, element.closing) for element in elements if element.opening]
    markup: list[tuple[int, str]] = []
    for (opening, closing), (first, last) in sorted(zip(tags, spans, strict=True), key=lambda item: item[1]):
        markup += [(begin + first, opening), (begin + last, closing)]
    text = whole[:begin] + translation + whole[begin + len(inner) :]
    return EntityWriter(characters, page[end : end + CONTEXT]).write(text, markup)


def _has_whole_words(text: str, span: Span) -> bool:
    begin, end = span
    inner = text[max(begin, 0) : end]
    return (
        begin >= 0
        and bool(inner)
        and inner == inner.strip()
        and not (begin and text[begin - 1].isalnum() and inner[0].isalnum())
        and not (end < len(text) and text[end].isalnum() and inner[-1].isalnum())
    )


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
    | < (?P<close>/?) (?P<name> [a-zA-Z] [^{_SPACE}/>]*+ ) (?P<attributes> (?: [{_SPACE}/]++ | {_ATTRIBUTE} )*+ ) >
    """,
    re.VERBOSE | re.DOTALL,
)
_ATTRIBUTE_VALUE = re.compile(
    rf"""(?P<name> [^{_SPACE}/>] [^{_SPACE}/>=]*+ ) [{_SPACE}]*+
    (?: = [{_SPACE}]*+ (?: "(?P<double>[^"]*+)" | '(?P<single>[^']*+)' | (?P<bare>[^{_SPACE}>]*+) ) )?+""",
    re.VERBOSE,
)
_VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"}
_UNTRANSLATED = {"code", "kbd", "math", "pre", "samp", "var"}  # elements that hold no sentences
_RAW = {
    name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE)
    for name in ("iframe", "noembed", "noframes", "script", "style", "textarea", "xmp")
}


def html(text: str) -> Document:
    """Split an HTML document, or any part of one, well-formed or not."""
    return tuple(sentences(_tokens(text), text))


def _tokens(text: str) -> Iterator[HtmlToken]:
    exclusions = _Exclusions()
    place = 0
    while opening := _OPENS.search(text, place):
        yield HtmlToken(place, opening.start(), is_text=not exclusions.active)
        markup = _MARKUP.match(text, opening.start())
        if markup is None:
            yield HtmlToken(opening.start(), len(text))
            return
        place, name = markup.end(), (markup["name"] or "").lower()
        if name in _RAW and not markup["close"]:
            end = _RAW[name].search(text, place)
            place = end.start() if end else len(text)
        elif name and exclusions.unchanged_by(name, markup["close"] == "/", markup["attributes"]) and name in INLINE:
            yield HtmlToken(markup.start(), place, name, closes=markup["close"] == "/")
            continue
        yield HtmlToken(markup.start(), place)
    yield HtmlToken(place, len(text), is_text=not exclusions.active)


class _Exclusions:
    """Tracks whether the current place is inside an element whose words are not translated."""

    def __init__(self) -> None:
        self._elements: list[tuple[str, bool]] = []  # names, and whether their words stay

    @property
    def active(self) -> bool:
        return bool(self._elements) and self._elements[-1][1]

    def unchanged_by(self, name: str, closes: bool, attributes: str) -> bool:
        """Process a tag; return whether it is outside such elements and starts and ends none."""
        before = len(self._elements), self.active
        if closes:
            if self._elements and self._elements[-1][0] == name:
                self._elements.pop()
        elif name not in _VOID and not attributes.endswith("/"):
            excluded = _is_excluded(name, attributes)
            if excluded is not None or (self._elements and self._elements[-1][0] == name):
                self._elements.append((name, self.active if excluded is None else excluded))
        return before == (len(self._elements), False)


def _is_excluded(name: str, attributes: str) -> bool | None:
    """Return whether a tag says that its words stay; None if it does not say."""
    values: dict[str, str] = {}
    for match in _ATTRIBUTE_VALUE.finditer(attributes):
        values.setdefault(match["name"].lower(), unescape(match["double"] or match["single"] or match["bare"] or ""))
    translate = values.get("translate")
    if translate is not None and translate.lower() in ("no", "yes", ""):
        return translate.lower() == "no"
    if "notranslate" in values.get("class", "").split() or name in _UNTRANSLATED:
        return True
    return None


_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_SPECIAL = re.compile("[&<>]")
_NUMBERED = re.compile(r"&#(?:[0-9]{1,7}(?![0-9])|[xX][0-9a-fA-F]{1,6}(?![0-9a-fA-F]));?")
_NAMED = re.compile(r"&([A-Za-z][A-Za-z0-9]{1,31};?)")
CONTEXT = 40  # characters after a reference that may change its meaning: more than the longest name has


class Character(NamedTuple):
    """A special character and how the source wrote it; or a stretch of plain text, twice the same."""

    raw: str
    text: str


def read(raw: str) -> list[Character]:
    """Read HTML without tags into special characters and the plain text between them."""
    result: list[Character] = []
    place = 0
    while special := _SPECIAL.search(raw, place):
        plain = raw[place : special.start()]
        character = reference(raw, special.start()) or Character(special[0], special[0])
        result += [Character(plain, plain), character]
        place = special.start() + len(character.raw)
    return [*result, Character(raw[place:], raw[place:])]


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
        return _OPENS.match("<" + following) is None
    if raw.startswith("&"):
        match = reference(raw + following, 0)
        return match is None if raw == "&" else match == (raw, character)
    return bool(raw)
