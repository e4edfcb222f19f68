"""HTML split into segments and assembled again: nothing but the words changes, whatever is sent."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.serving.libretranslate import documents as module
from heedful.serving.libretranslate.documents import Document, Segment, Span, assemble, html, plain, texts_of

BITS = [
    *("<p>", "</p>", "<b>", "</b>", "<br/>", "<a href='x>y' class=notranslate>", "</a>", '<i translate="no">', "</i>"),
    *("<script>", "</script>", "<style>", "</STYLE >", "<pre>", "</pre>", "<!--", "-->", "<!", "<?", "</", "<", ">"),
    *("&", "&amp;", "&eacute;", "&nbsp", "&#38", "&#x3c;", "&lt;", "&not", "in;", "&#1;", "é", "\xa0", '"', "'", "="),
    *("amp;", "lt", "#112;", ";", "b", "Hello ", "나는 ", "3", " ", "\n", "\r\n", "\x00", "&#9999999999;", "&acE;"),
]
PAGES = st.lists(st.one_of(st.sampled_from(BITS), st.text(max_size=5)), max_size=30).map("".join)


class Tags(HTMLParser):
    """The tags and the text that the standard library reads, as a reference."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[object] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(tag)

    def handle_comment(self, data: str) -> None:
        self.tags.append(data)

    def handle_data(self, data: str) -> None:
        self.text += data


def rendered(document: Document, translate: Callable[[str], str], spans: Callable[[Segment, str], list[Span]]) -> str:
    """Assemble a document with its tags at these spans."""
    parts = []
    for part in document:
        if isinstance(part, str):
            parts.append(part)
        else:
            text = translate(part.text)
            parts.append(part.render(text, spans(part, text)))
    return "".join(parts)


def original_spans(part: Segment, text: str) -> list[Span]:
    return list(part.spans)


def spans_at_the_front(part: Segment, text: str) -> list[Span]:
    size = len(text)
    return [(min(2 * index, size), min(2 * index + 1, size)) for index in range(len(part.spans))]


def in_capitals(text: str) -> str:
    return rendered(html(text), str.upper, original_spans)


def in_pieces(document: Document) -> list[str | Segment]:
    """Return the document with every sentence cut at its tags."""
    pieces: list[str | Segment] = []
    for part in document:
        pieces += [part] if isinstance(part, str) or not part.spans else part.pieces
    return pieces


def markup(text: str) -> list[str]:
    return [part for part in in_pieces(html(text)) if isinstance(part, str) and re.match("<[a-zA-Z!?/]", part)]


@settings(max_examples=400, deadline=None)
@given(PAGES)
def test_html_with_unchanged_words_is_unchanged(text: str) -> None:
    assert rendered(html(text), str, original_spans) == text
    for document in (in_pieces(html(text)), plain(text)):
        assert assemble(document, texts_of(document)) == text


@settings(max_examples=200, deadline=None)
@given(PAGES, st.lists(st.sampled_from(BITS), max_size=6).map("".join))
def test_a_translation_adds_no_markup(text: str, translation: str) -> None:
    assert markup(rendered(html(text), lambda _: translation, spans_at_the_front)) == markup(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('<p class="a b">read <b>on</b>!</p>', '<p class="a b">READ <b>ON</b>!</p>'),
        ("  one\n two &nbsp;", "  ONE\n TWO &nbsp;"),
        ("<!DOCTYPE html><!-- so --><title>so</title>", "<!DOCTYPE html><!-- so --><title>SO</title>"),
        ("<script>if (a<b) so()</script>so", "<script>if (a<b) so()</script>SO"),
        ("<style>p{}</style><textarea>so</textarea>", "<style>p{}</style><textarea>so</textarea>"),
        ("<pre>so <b>so</b></pre><code>so</code> so", "<pre>so <b>so</b></pre><code>so</code> SO"),
        ('<div translate="no">a<div>b</div>c</div>d', '<div translate="no">a<div>b</div>c</div>D'),
        ("<p translate=no>a<b translate=yes>b</b>c</p>", "<p translate=no>a<b translate=yes>B</b>c</p>"),
        ('<p class="x notranslate">a</p>b', '<p class="x notranslate">a</p>B'),
        ('<img class="notranslate">b', '<img class="notranslate">B'),
        ("a &lt;b&gt; &amp; c &quot;", "A &lt;B&gt; &amp; C &quot;"),
        ("1 < 2 & 3 > 2 so", "1 < 2 & 3 > 2 SO"),
        ("so <b so", "SO <b so"),
        ("<p title='a>b'>so</p>", "<p title='a>b'>SO</p>"),
        ("3 + 4 = <b>7</b>", "3 + 4 = <b>7</b>"),
        ("&copy; 2024", "&copy; 2024"),
    ],
)
def test_only_words_are_translated(text: str, expected: str) -> None:
    assert in_capitals(text) == expected


def test_characters_keep_their_form_and_new_ones_are_escaped() -> None:
    (segment,) = (part for part in html("<p>Tom &amp; <3 é &eacute;</p>") if isinstance(part, Segment))
    assert segment.text == "Tom & <3 é é"
    assert segment.render("& <3 é é é", ()) == "&amp; <3 é &eacute; é"
    assert segment.render("<script>&", ()) == "&lt;script&gt;&amp;"
    assert segment.render("a < b", ()) == "a < b"  # a bare "<", as the source had one


def test_a_bare_sign_is_escaped_where_it_would_become_markup() -> None:
    (segment,) = html("AT&T <3")
    assert isinstance(segment, Segment)
    assert (segment.render("&lt;", ()), segment.render("&T <b", ())) == ("&amp;lt;", "&T &lt;b")


def test_the_standard_parser_reads_the_same_tags_and_the_translated_text() -> None:
    page = '<html lang="en"><body><h1>One &amp; two</h1><p>I like <a href="?a=1&amp;b=2">cats</a>.<br>And dogs.</p>'
    original_page, translated_page = Tags(page), Tags(in_capitals(page))
    assert translated_page.tags == original_page.tags
    assert translated_page.text == original_page.text.upper()


def test_a_sentence_with_tags_in_it_is_one_sentence() -> None:
    first, second, _ = html("I <b>really</b> like &amp; love <a href=x><i>cats</i></a>. <b>So</b> do you.<br>")
    assert isinstance(first, Segment)
    assert (first.text, first.spans) == ("I really like & love cats.", ((2, 8), (21, 25)))
    assert (
        first.render("고양이 정말 & 좋아.", [(4, 6), (0, 3)]) == "<a href=x><i>고양이</i></a> <b>정말</b> &amp; 좋아. "
    )
    assert isinstance(second, Segment)
    assert (second.text, second.spans) == ("So do you.", ((0, 2),))


@pytest.mark.parametrize(
    "text",
    [
        "<b>So it is.</b>",
        "a <b>b <i>c</i></b> d",
        "a<b>b</b>",
        "a <b>b",
        "a <b> b </b> c",
        "a <b>b</i> c",
        "a <b></b> c",
    ],
)
def test_tags_that_cannot_be_moved_cut_the_sentence(text: str) -> None:
    assert not any(isinstance(part, Segment) and part.spans for part in html(text))
    assert in_capitals(text) == "".join(
        part if part[0] == "<" else part.upper() for part in re.split("(<.*?>)", text) if part
    )


class Counting:
    """A pattern that counts the characters it goes through."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.n_characters, self.n_calls = pattern, 0, 0

    def search(self, text: str, place: int) -> re.Match[str] | None:
        return self._count(self.pattern.search(text, place), text, place)

    def match(self, text: str, place: int) -> re.Match[str] | None:
        return self._count(self.pattern.match(text, place), text, place)

    def _count(self, match: re.Match[str] | None, text: str, place: int) -> re.Match[str] | None:
        self.n_calls += 1
        self.n_characters += (match.end() if match else len(text)) - place
        return match


@pytest.mark.parametrize(
    "bit", ["<", "<a", "<a '", "<a b=", "</", "<!--", "<!", "<script>", "<p class='", "&#", "<x>a", "<b></b>"]
)
def test_parsing_takes_linear_time(bit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1_000_000 if bit == "<" else 50_000
    text = (bit * size)[:size]
    counters = [Counting(module._OPENS), Counting(module._MARKUP)]
    monkeypatch.setattr(module, "_OPENS", counters[0])
    monkeypatch.setattr(module, "_MARKUP", counters[1])
    raw = {name: Counting(pattern) for name, pattern in module._RAW.items()}
    monkeypatch.setattr(module, "_RAW", raw)
    result = rendered(html(text), str, original_spans)
    assert sum(counter.n_characters for counter in [*counters, *raw.values()]) <= 3 * len(text)
    assert result == text


def test_plain_text_keeps_its_lines() -> None:
    document = plain("One.\r\n\n  two \n3\n")
    assert texts_of(document) == ["One.", "two"]
    assert assemble(document, ["A", "B <&>"]) == "A\r\n\n  B <&> \n3\n"


def test_a_page_of_many_segments_takes_little_memory() -> None:
    page = "<p>a</p>" * 20_000
    tracemalloc.start()
    try:
        document = html(page)
        assert tracemalloc.get_traced_memory()[0] < 100 * len(page)
    finally:
        tracemalloc.stop()
    assert assemble(document, texts_of(document)) == page
