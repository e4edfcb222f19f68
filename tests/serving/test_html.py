"""HTML taken apart and put together: nothing but the words changes, whatever is sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.serving.libretranslate import documents as module
from heedful.serving.libretranslate.documents import Document, Marked, Run, Span, filled, html, plain, runs

BITS = [
    *("<p>", "</p>", "<b>", "</b>", "<br/>", "<a href='x>y' class=notranslate>", "</a>", '<i translate="no">', "</i>"),
    *("<script>", "</script>", "<style>", "</STYLE >", "<pre>", "</pre>", "<!--", "-->", "<!", "<?", "</", "<", ">"),
    *("&", "&amp;", "&eacute;", "&nbsp", "&#38", "&#x3c;", "&lt;", "&not", "in;", "&#1;", "é", "\xa0", '"', "'", "="),
    *("amp;", "lt", "#112;", ";", "b", "Hello ", "나는 ", "3", " ", "\n", "\r\n", "\x00", "&#9999999999;", "&acE;"),
]
PAGES = st.lists(st.one_of(st.sampled_from(BITS), st.text(max_size=5)), max_size=30).map("".join)


class Tags(HTMLParser):
    """What the standard library sees: the oracle."""

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


def written(document: Document, translate: Callable[[str], str], spans: Callable[[Marked, str], list[Span]]) -> str:
    """Put together again, with tags at these spans."""
    parts = []
    for part in document:
        if isinstance(part, str):
            parts.append(part)
        elif isinstance(part, Run):
            parts.append(part.spell(translate(part.text)))
        else:
            text = translate(part.text)
            parts.append(part.spell(text, spans(part, text)))
    return "".join(parts)


def where_they_were(part: Marked, text: str) -> list[Span]:
    return list(part.spans)


def all_at_the_front(part: Marked, text: str) -> list[Span]:
    size = len(text)
    return [(min(2 * index, size), min(2 * index + 1, size)) for index in range(len(part.spans))]


def loud(text: str) -> str:
    """Translated by shouting."""
    return written(html(text), str.upper, where_they_were)


def in_pieces(document: Document) -> list[str | Run]:
    """Every sentence cut at its tags."""
    found: list[str | Run] = []
    for part in document:
        found += part.pieces if isinstance(part, Marked) else [part]
    return found


def markup(text: str) -> list[str]:
    return [part for part in in_pieces(html(text)) if isinstance(part, str) and re.match("<[a-zA-Z!?/]", part)]


@settings(max_examples=400, deadline=None)
@given(PAGES)
def test_with_the_same_words_it_is_the_same_to_the_byte(text: str) -> None:
    assert written(html(text), str, where_they_were) == text
    for document in (in_pieces(html(text)), plain(text)):
        assert filled(document, runs(document)) == text


@settings(max_examples=200, deadline=None)
@given(PAGES, st.lists(st.sampled_from(BITS), max_size=6).map("".join))
def test_no_translation_makes_markup(text: str, translation: str) -> None:
    assert markup(written(html(text), lambda _: translation, all_at_the_front)) == markup(text)


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
def test_words_are_translated_and_the_rest_stays(text: str, expected: str) -> None:
    assert loud(text) == expected


def test_what_was_escaped_stays_escaped_and_what_is_new_is() -> None:
    (run,) = (part for part in html("<p>Tom &amp; <3 é &eacute;</p>") if isinstance(part, Run))
    assert run.text == "Tom & <3 é é"
    assert run.spell("& <3 é é é") == "&amp; <3 é &eacute; é"
    assert run.spell("<script>&") == "&lt;script&gt;&amp;"
    assert run.spell("a < b") == "a < b"  # a bare "<", as the source had one


def test_a_bare_sign_is_escaped_where_it_would_now_mean_something() -> None:
    (run,) = html("AT&T <3")
    assert isinstance(run, Run)
    assert (run.spell("&lt;"), run.spell("&T <b")) == ("&amp;lt;", "&T &lt;b")


def test_the_standard_library_sees_the_same_tags_and_the_translated_text() -> None:
    page = '<html lang="en"><body><h1>One &amp; two</h1><p>I like <a href="?a=1&amp;b=2">cats</a>.<br>And dogs.</p>'
    before, after = Tags(page), Tags(loud(page))
    assert after.tags == before.tags
    assert after.text == before.text.upper()


def test_a_sentence_with_tags_in_it_is_one_sentence() -> None:
    first, second, _ = html("I <b>really</b> like &amp; love <a href=x><i>cats</i></a>. <b>So</b> do you.<br>")
    assert isinstance(first, Marked)
    assert (first.text, first.spans) == ("I really like & love cats.", ((2, 8), (21, 25)))
    assert (
        first.spell("고양이 정말 & 좋아.", [(4, 6), (0, 3)]) == "<a href=x><i>고양이</i></a> <b>정말</b> &amp; 좋아. "
    )
    assert isinstance(second, Marked)
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
    assert not any(isinstance(part, Marked) for part in html(text))
    assert loud(text) == "".join(part if part[0] == "<" else part.upper() for part in re.split("(<.*?>)", text) if part)


class Counting:
    """A pattern that counts the characters it goes through."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.pattern, self.seen, self.calls = pattern, 0, 0

    def search(self, text: str, place: int) -> re.Match[str] | None:
        return self._counted(self.pattern.search(text, place), text, place)

    def match(self, text: str, place: int) -> re.Match[str] | None:
        return self._counted(self.pattern.match(text, place), text, place)

    def _counted(self, found: re.Match[str] | None, text: str, place: int) -> re.Match[str] | None:
        self.calls += 1
        self.seen += (found.end() if found else len(text)) - place
        return found


@pytest.mark.parametrize(
    "bit", ["<", "<a", "<a '", "<a b=", "</", "<!--", "<!", "<script>", "<p class='", "&#", "<x>a", "<b></b>"]
)
def test_no_page_is_gone_through_again_and_again(bit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = 1_000_000 if bit == "<" else 50_000
    text = (bit * size)[:size]
    counters = [Counting(module._OPENS), Counting(module._MARKUP)]
    monkeypatch.setattr(module, "_OPENS", counters[0])
    monkeypatch.setattr(module, "_MARKUP", counters[1])
    raw = {name: Counting(pattern) for name, pattern in module._RAW.items()}
    monkeypatch.setattr(module, "_RAW", raw)
    again = written(html(text), str, where_they_were)
    assert sum(counter.seen for counter in [*counters, *raw.values()]) <= 3 * len(text)
    assert again == text


def test_plain_text_keeps_its_lines() -> None:
    document = plain("One.\r\n\n  two \n3\n")
    assert runs(document) == ["One.", "two"]
    assert filled(document, ["A", "B <&>"]) == "A\r\n\n  B <&> \n3\n"
