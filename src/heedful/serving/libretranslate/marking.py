"""Sentences with tags in them: "I like <b>cats</b>." is one sentence, and what is bold in it is marked.

Between tags of blocks, words are taken sentence by sentence. Inline tags stay in the sentence where each surrounds
whole words and none stands inside of another; otherwise every tag ends a run, and the runs are translated one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from .documents import Marked, Run, Span, says_something
from .spelling import REACH, Speller, read, said

INLINE = {
    *("a", "abbr", "b", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label", "mark", "q", "s", "small"),
    *("span", "strike", "strong", "sub", "sup", "time", "tt", "u"),
}
_MARKS = set(".!?…。！？")
_ENDS = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])\s*")


@dataclass(frozen=True)
class Token:
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


def sentences(tokens: Iterable[Token], page: str) -> Iterator[str | Run | Marked]:
    """What a page consists of."""
    group: list[Token] = []
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
            for one in ended:
                yield from _sentence([*group, one], page)
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


def _cut(token: Token, page: str) -> list[Token]:
    """A text in its sentences; the white space between two belongs to the first."""
    ends = [end.end() for end in _ENDS.finditer(page, token.begin, token.end)]
    places = [token.begin, *ends, token.end]
    return [Token(begin, end, is_text=True) for begin, end in pairwise(places)]


def _sentence(group: Sequence[Token], page: str) -> Iterator[str | Run | Marked]:
    """Marked where that can be; otherwise its tags and the runs between them."""
    pieces = tuple(_run(token, page) if token.is_text else page[token.begin : token.end] for token in group)
    elements = _elements(group, page)
    marked = None if elements is None else _marked(elements, page, pieces)
    yield from pieces if marked is None else (marked,)


def _run(token: Token, page: str) -> str | Run:
    raw = page[token.begin : token.end]
    spelt = read(raw) if says_something(raw) else []
    text = said(spelt)
    if not says_something(text):
        return raw
    inner = text.strip()
    begin = text.index(inner)
    speller = Speller(spelt, page[token.end : token.end + REACH])
    return Run(inner, partial(_around, speller, text[:begin], text[begin + len(inner) :]))


def _around(speller: Speller, before: str, after: str, translation: str) -> str:
    return speller.write(before + translation + after)


def _elements(group: Sequence[Token], page: str) -> list[_Element] | None:
    """The texts of a sentence, each with the tags right around it; None where tags stand in any other way."""
    found: list[_Element] = []
    opened: list[Token] = []
    inside: Token | None = None
    closed: list[Token] = []
    for token in group:
        if token.is_text and not opened:
            found.append(_Element(token.begin, token.end))
        elif token.is_text and inside is None:
            inside = token
        elif not token.closes and token.name and inside is None:
            opened.append(token)
        elif token.closes and inside and opened[-1 - len(closed)].name == token.name:
            closed.append(token)
            if len(closed) == len(opened):
                opening, closing = (page[each[0].begin : each[-1].end] for each in (opened, closed))
                found.append(_Element(inside.begin, inside.end, opening, closing))
                opened, inside, closed = [], None, []
        else:
            return None
    return None if opened or not any(one.opening for one in found) else found


def _marked(elements: Sequence[_Element], page: str, pieces: tuple[str | Run, ...]) -> Marked | None:
    texts = [read(page[one.begin : one.end]) for one in elements]
    text = "".join(map(said, texts))
    begin = len(text) - len(text.lstrip())
    inner = text.strip()
    spans: list[Span] = []
    place = -begin
    for one, spelt in zip(elements, texts, strict=True):
        place += (length := len(said(spelt)))
        if one.opening:
            spans.append((place - length, place))
    outside = "".join(said(spelt) for one, spelt in zip(elements, texts, strict=True) if not one.opening)
    if not says_something(outside) or not all(_whole_words(inner, span) for span in spans):
        return None
    end = elements[-1].end + len(elements[-1].closing)
    speller = Speller((one for spelt in texts for one in spelt), page[end : end + REACH])
    tags = [(one.opening, one.closing) for one in elements if one.opening]
    spell = partial(_with_tags, speller, text[:begin], text[begin + len(inner) :], tags)
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


def _with_tags(
    speller: Speller, before: str, after: str, tags: Sequence[tuple[str, str]], translation: str, spans: Sequence[Span]
) -> str:
    markup: list[tuple[int, str]] = []
    for (opening, closing), (begin, end) in sorted(zip(tags, spans, strict=True), key=lambda one: one[1]):
        markup += [(len(before) + begin, opening), (len(before) + end, closing)]
    return speller.write(before + translation + after, markup)
