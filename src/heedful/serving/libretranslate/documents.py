"""A text as what stays and what is translated, so that it can be put together again around the translations.

HTML that is put together again with the same words is the same to the byte. Its markup is read as the HTML standard
does, in one pass: where a tag, a comment or a script does not come to its end, everything from there on belongs to it
and stays. (The standard library's parser looks for that end again from every "<", and does not say how things were
written.)

Between tags of blocks, words are taken sentence by sentence: "I like <b>cats</b>." is one sentence, and what is bold
in it is marked. Inline tags stay in the sentence where each surrounds whole words and none stands inside of another;
otherwise every tag ends a run, and the runs are translated one by one.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import pairwise

from .entities import REACH, EntityWriter, plain_text, read

_LETTER = re.compile(r"[^\W\d_]")

Span = tuple[int, int]  # of characters: from, to


@dataclass(frozen=True)
class Run:
    """A stretch of text to translate, without white space at its ends; `spell` writes its translation in its place."""

    text: str
    spell: Callable[[str], str]


@dataclass(frozen=True)
class Marked:
    """A sentence with tags around some of its words: at `spans`, in order, none inside of another.

    `spell` writes its translation with the same tags at other spans; where nobody knows these, the sentence is
    translated in `pieces`, each between its own tags.
    """

    text: str
    spans: tuple[Span, ...]
    spell: Callable[[str, Sequence[Span]], str]
    pieces: tuple[str | Run, ...]


Document = tuple[str | Run | Marked, ...]


def says_something(text: str) -> bool:
    """Whether there is a letter in it: numbers, signs and empty texts stay as they are."""
    return _LETTER.search(text) is not None


def plain(text: str) -> tuple[str | Run, ...]:
    """A plain text, line by line: line breaks and the white space at the ends of lines stay."""
    return tuple(part for line in text.splitlines(keepends=True) for part in _line(line))


def _line(line: str) -> Iterator[str | Run]:
    inner = line.strip()
    if says_something(inner):
        begin = line.index(inner)
        yield line[:begin]
        yield Run(inner, str)
        yield line[begin + len(inner) :]
    else:
        yield line


def runs(document: Iterable[str | Run | Marked]) -> list[str]:
    """What there is to translate, in order."""
    return [part.text for part in document if not isinstance(part, str)]


def filled(document: Sequence[str | Run], translations: Sequence[str]) -> str:
    """The document again, a translation in the place of each run."""
    following = iter(translations)
    return "".join(part.spell(next(following)) if isinstance(part, Run) else part for part in document)


INLINE = {
    *("a", "abbr", "b", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label", "mark", "q", "s", "small"),
    *("span", "strike", "strong", "sub", "sup", "time", "tt", "u"),
}
_MARKS = set(".!?…。！？")
_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])\s*")


@dataclass(frozen=True)
class HtmlToken:
    """A stretch of HTML: text, an inline tag by its name, or anything else."""

    begin: int
    end: int
    name: str = ""
    closes: bool = False
    is_text: bool = False


@dataclass(frozen=True)
class _Element:
    """A stretch of text and the tags around it; none where the text stands in the sentence itself."""

    begin: int
    end: int
    opening: str = ""
    closing: str = ""


def sentences(tokens: Iterable[HtmlToken], page: str) -> Iterator[str | Run | Marked]:
    """What a page consists of."""
    group: list[HtmlToken] = []
    depth, before = 0, ""  # how many tags are open, and the character before this one
    for token in tokens:
        if token.begin == token.end:
            continue
        if not token.is_text and not token.name:
            yield from _sentence(group, page)
            yield page[token.begin : token.end]
            group, depth = [], 0
        elif token.is_text and depth == 0:
            *ended, last = _cut(token, page)
            for item in ended:
                yield from _sentence([*group, item], page)
                group = []
            group += [last] * (last.begin < last.end)
        else:
            group.append(token)
            depth += bool(token.name) * (-1 if token.closes else 1)
            if token.closes and depth == 0 and before in _MARKS:
                yield from _sentence(group, page)
                group = []
        before = page[token.end - 1] if token.is_text else before
    yield from _sentence(group, page)


def _cut(token: HtmlToken, page: str) -> list[HtmlToken]:
    """A text in its sentences; the white space between two belongs to the first."""
    ends = [end.end() for end in _ENDS.finditer(page, token.begin, token.end)]
    places = [token.begin, *ends, token.end]
    return [HtmlToken(begin, end, is_text=True) for begin, end in pairwise(places)]


def _sentence(group: Sequence[HtmlToken], page: str) -> Iterator[str | Run | Marked]:
    """Marked where that can be; otherwise its tags and the runs between them."""
    pieces = tuple(_run(token, page) if token.is_text else page[token.begin : token.end] for token in group)
    elements = _elements(group, page)
    marked = None if elements is None else _marked(elements, page, pieces)
    yield from pieces if marked is None else (marked,)


def _run(token: HtmlToken, page: str) -> str | Run:
    raw = page[token.begin : token.end]
    spelt = read(raw) if says_something(raw) else []
    text = plain_text(spelt)
    if not says_something(text):
        return raw
    inner = text.strip()
    begin = text.index(inner)
    speller = EntityWriter(spelt, page[token.end : token.end + REACH])
    before, trailing = text[:begin], text[begin + len(inner) :]
    return Run(inner, lambda translation: speller.write(before + translation + trailing))


def _elements(group: Sequence[HtmlToken], page: str) -> list[_Element] | None:
    """The texts of a sentence, each with the tags right around it; None where tags stand in any other way."""
    result: list[_Element] = []
    opened: list[HtmlToken] = []
    inside: HtmlToken | None = None
    closed: list[HtmlToken] = []
    for token in group:
        if token.is_text and not opened:
            result.append(_Element(token.begin, token.end))
        elif token.is_text and inside is None:
            inside = token
        elif not token.closes and token.name and inside is None:
            opened.append(token)
        elif token.closes and inside and opened[-1 - len(closed)].name == token.name:
            closed.append(token)
            if len(closed) == len(opened):
                opening, closing = (page[each[0].begin : each[-1].end] for each in (opened, closed))
                result.append(_Element(inside.begin, inside.end, opening, closing))
                opened, inside, closed = [], None, []
        else:
            return None
    return None if opened or not any(item.opening for item in result) else result


def _marked(elements: Sequence[_Element], page: str, pieces: tuple[str | Run, ...]) -> Marked | None:
    texts = [read(page[item.begin : item.end]) for item in elements]
    text = "".join(map(plain_text, texts))
    begin = len(text) - len(text.lstrip())
    inner = text.strip()
    spans: list[Span] = []
    place = -begin
    for item, spelt in zip(elements, texts, strict=True):
        place += (length := len(plain_text(spelt)))
        if item.opening:
            spans.append((place - length, place))
    outside = "".join(plain_text(spelt) for item, spelt in zip(elements, texts, strict=True) if not item.opening)
    if not says_something(outside) or not all(_whole_words(inner, span) for span in spans):
        return None
    end = elements[-1].end + len(elements[-1].closing)
    speller = EntityWriter((item for spelt in texts for item in spelt), page[end : end + REACH])
    tags = [(item.opening, item.closing) for item in elements if item.opening]
    before, trailing = text[:begin], text[begin + len(inner) :]

    def spell(translation: str, spans: Sequence[Span]) -> str:
        markup: list[tuple[int, str]] = []
        for (opening, closing), (first, last) in sorted(zip(tags, spans, strict=True), key=lambda item: item[1]):
            markup += [(begin + first, opening), (begin + last, closing)]
        return speller.write(before + translation + trailing, markup)

    return Marked(inner, tuple(spans), spell, pieces)


def _whole_words(text: str, span: Span) -> bool:
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
_UNTRANSLATED = {"code", "kbd", "math", "pre", "samp", "var"}  # elements whose words are no sentences
_RAW = {
    name: re.compile(rf"</{name}(?=[{_SPACE}/>])", re.IGNORECASE)
    for name in ("iframe", "noembed", "noframes", "script", "style", "textarea", "xmp")
}


def html(text: str) -> Document:
    """What stays and what is translated of an HTML document or a part of one, whole or broken."""
    return tuple(sentences(_tokens(text), text))


def _tokens(text: str) -> Iterator[HtmlToken]:
    exclusions = _Exclusions()
    place = 0
    while opening := _OPENS.search(text, place):
        yield HtmlToken(place, opening.start(), is_text=not exclusions.now)
        markup = _MARKUP.match(text, opening.start())
        if markup is None:
            yield HtmlToken(opening.start(), len(text))
            return
        place, name = markup.end(), (markup["name"] or "").lower()
        if name in _RAW and not markup["close"]:
            end = _RAW[name].search(text, place)
            place = end.start() if end else len(text)
        elif name and exclusions.passes(name, markup["close"] == "/", markup["rest"]) and name in INLINE:
            yield HtmlToken(markup.start(), place, name, closes=markup["close"] == "/")
            continue
        yield HtmlToken(markup.start(), place)
    yield HtmlToken(place, len(text), is_text=not exclusions.now)


class _Exclusions:
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
            says = _translate_attribute(name, rest) if rest or name in _UNTRANSLATED else None
            if says is not None:
                self._elements.append((name, says))
            elif self._elements and self._elements[-1][0] == name:
                self._elements.append((name, self.now))
        return before == (len(self._elements), False)


def _translate_attribute(name: str, rest: str) -> bool | None:
    attributes: dict[str, str] = {}
    for match in _SAYS.finditer(rest):
        attributes.setdefault(
            match["name"].lower(), unescape(match["double"] or match["single"] or match["bare"] or "")
        )
    translate = attributes.get("translate")
    if translate is not None and translate.lower() in ("no", "yes", ""):
        return translate.lower() == "no"
    if "notranslate" in attributes.get("class", "").split() or name in _UNTRANSLATED:
        return True
    return None
