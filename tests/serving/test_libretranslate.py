"""LibreTranslate's API: its own client, every way of sending, every refusal."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError

import pytest
import requests
from libretranslatepy import LibreTranslateAPI  # type: ignore[import-untyped]
from running import Running

from heedful.errors import DataError
from heedful.serving.libretranslate import translating
from heedful.serving.libretranslate.translating import project_spans
from heedful.tasks.translation import data, predictor

HELLO = "The cat reads a book."
SEA = "I drink water by the sea."
KOREAN = "고양이는 책을 읽었다."
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def ask(server: Running) -> Callable[..., requests.Response]:
    """POST /translate, from English into Korean unless told otherwise."""

    def post(*, expect: int = 200, **parameters: Any) -> Any:
        fields = {"source": "en", "target": "ko"} | parameters
        answer = requests.post(f"{server.url}/translate", json=fields, timeout=30)
        assert answer.status_code == expect, answer.text
        return answer.json()

    return post


def predicted(server: Running, text: str, name: str = "en-ko", **generation: Any) -> list[str]:
    """Return the translations of the model without a server."""
    (answers,) = server.state.models[name].predictor.candidates([text], **generation)
    return [answer.text for answer in answers]


def test_the_client_from_pypi_works(server: Running) -> None:
    client = LibreTranslateAPI(server.url)
    assert client.translate(HELLO, "en", "ko") == predicted(server, HELLO)[0]
    assert client.translate(KOREAN, "ko", "en") == predicted(server, KOREAN, "ko-en")[0]
    assert client.detect("안녕하세요") == [{"confidence": 100.0, "language": "ko"}]
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["ko"]},
        {"code": "ko", "name": "Korean", "targets": ["en"]},
    ]


def test_the_client_from_pypi_works_with_a_key_and_only_so(serving: Callable[..., Running]) -> None:
    server = serving("en-ko", api_keys=("open sesame",))
    client = LibreTranslateAPI(server.url, api_key="open sesame")
    assert client.translate(HELLO, "en", "ko") == predicted(server, HELLO)[0]
    assert client.detect(HELLO)[0]["language"] == "en"
    assert [item["code"] for item in client.languages()] == ["en", "ko"]
    for key in (None, "open simsim"):
        with pytest.raises(HTTPError) as refused:
            LibreTranslateAPI(server.url, api_key=key).translate(HELLO, "en", "ko")
        assert refused.value.code == 403
        error = json.load(refused.value)["error"]
        assert "API key" in error
        assert "sesame" not in error
        assert "simsim" not in error
    frontend = requests.get(f"{server.url}/frontend/settings", params={"api_key": "open sesame"}, timeout=30).json()
    assert (frontend["apiKeys"], frontend["keyRequired"]) == (True, True)


def test_however_it_is_sent_the_answer_is_the_same(server: Running) -> None:
    url, fields = f"{server.url}/translate", {"q": HELLO, "source": "en", "target": "ko"}
    ways: list[dict[str, Any]] = [
        {"json": fields},
        {"data": fields},
        {"files": {name: (None, value) for name, value in fields.items()}},
        {"params": fields},
        {"params": {"target": "en", "q": "no"}, "json": fields},
        {"params": {"target": "en", "q": "no"}, "data": fields},
    ]
    answers = [requests.post(url, timeout=30, **way) for way in ways]
    assert [answer.json() for answer in answers] == [{"translatedText": predicted(server, HELLO)[0]}] * len(ways)


def test_an_array_is_answered_in_order_by_one_call(
    server: Running, ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, calls = server.state.models["en-ko"].worker, []
    candidates = worker.candidates

    async def noted(texts: list[str], **generation: Any) -> Any:
        calls.append(texts)
        return await candidates(texts, **generation)

    monkeypatch.setattr(worker, "candidates", noted)
    cat, sea = predicted(server, HELLO)[0], predicted(server, SEA)[0]
    assert ask(q=[SEA, "", HELLO, " 7 ", SEA]) == {"translatedText": [sea, "", cat, " 7 ", sea]}
    assert ask(q=[HELLO]) == {"translatedText": [cat]}
    assert ask(q=f"{HELLO}\n\n{SEA}\n") == {"translatedText": f"{cat}\n\n{sea}\n"}
    assert [sorted(texts) for texts in calls] == [sorted([SEA, HELLO]), [HELLO], sorted([HELLO, SEA])]
    form = {"q": [HELLO, SEA], "source": "en", "target": "ko"}
    assert requests.post(f"{server.url}/translate", data=form, timeout=30).json() == {"translatedText": [cat, sea]}


def test_the_source_is_found_where_it_is_not_said(server: Running, ask: Callable[..., Any]) -> None:
    english, korean, unknown = (
        {"confidence": confidence, "language": language}
        for confidence, language in ((100, "en"), (100, "ko"), (0, "en"))
    )
    cat = predicted(server, HELLO)[0]
    assert ask(q=HELLO, source="auto") == {"translatedText": cat, "detectedLanguage": english}
    assert ask(q=[KOREAN, HELLO, ""], source="auto") == {
        "translatedText": [KOREAN, cat, ""],  # what is in the target language already stays
        "detectedLanguage": [korean, english, unknown],
    }
    assert ask(q=KOREAN, source="auto", target="en")["translatedText"] == predicted(server, KOREAN, "ko-en")[0]
    assert ask(q="<p title=안녕하세요>The cat</p>", source="auto", format="html")["detectedLanguage"] == english


def test_alternatives_are_the_next_best(server: Running, ask: Callable[..., Any]) -> None:
    best, *others = predicted(server, HELLO, n_best=3)
    assert ask(q=HELLO, alternatives=2) == {"translatedText": best, "alternatives": others}
    assert ask(q=[HELLO, ""], alternatives="2") == {"translatedText": [best, ""], "alternatives": [others, []]}
    assert ask(q=HELLO, alternatives=0).keys() == {"translatedText"}


def test_html_keeps_its_tags(server: Running, ask: Callable[..., Any]) -> None:
    cat, sea = predicted(server, HELLO)[0], predicted(server, SEA)[0]
    page = "<p class='a'> {}<br>\n<b>{}</b> &amp; <code>The cat</code></p><!-- The cat -->"
    assert "<" not in cat + sea
    assert ask(q=page.format(HELLO, SEA), format="html") == {"translatedText": page.format(cat, sea)}


def test_a_tag_inside_of_a_sentence_does_not_cut_it(server: Running, ask: Callable[..., Any]) -> None:
    cat = predicted(server, HELLO)[0]
    answer = ask(q=f"<p>{HELLO.replace('cat', '<b>cat</b>')}</p>", format="html")["translatedText"]
    prefix, marked, suffix = re.fullmatch("<p>(.*)<b>(.+)</b>(.*)</p>", answer).groups()  # type: ignore[union-attr]
    assert prefix + marked + suffix == cat
    assert ask(q="I <b> drink </b> water.", format="html")["translatedText"].count("</b>") == 1


def test_a_sentence_that_comes_again_is_looked_into_once(
    ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []

    def noted(translator: Any, source: str, *more: Any) -> Any:
        looked.append(source)
        return project_spans(translator, source, *more)

    monkeypatch.setattr(translating, "project_spans", noted)
    sentences = [HELLO.replace("cat", "<b>cat</b>"), HELLO.replace("book", "<b>book</b>")]
    answer = ask(q=[f"<p>{' '.join(sentences * 3)}</p>", *sentences], format="html")["translatedText"]
    assert looked == [HELLO, HELLO]  # for each place of the tag
    once, twice = (re.escape(item) for item in answer[1:])
    assert re.fullmatch(f"<p>(?:{once} {twice} ?){{3}}</p>", answer[0])


def test_a_code_with_a_region_is_answered_by_its_language(ask: Callable[..., Any]) -> None:
    assert ask(q=HELLO, source="en-US", target="KO_kr") == ask(q=HELLO)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"q": None}, "missing q"),
        ({"q": ""}, "missing q"),
        ({"q": []}, "missing q"),
        ({"source": None}, "missing source"),
        ({"target": ""}, "missing target"),
        ({"q": 7}, "a string or an array of strings, not a number"),
        ({"q": [HELLO, None]}, "a string, not null"),
        ({"q": {"a": 1}}, "not an object"),
        ({"q": "\ud800"}, "surrogate"),
        ({"source": ["en"]}, "source must be a string, not an array"),
        ({"source": "xx"}, "'xx' is not supported; the languages are: en, ko"),
        ({"target": "auto"}, "'auto' is not supported"),
        ({"target": "<script>" * 99}, "is not supported"),
        ({"target": "en"}, "English (en) is not available as a target language from English (en)"),
        ({"format": "pdf"}, "'pdf' format is not supported; the formats are: text, html"),
        ({"format": 1}, "format must be a string"),
        ({"alternatives": "two"}, "alternatives parameter is not a number"),
        ({"alternatives": True}, "alternatives parameter is not a number"),
        ({"alternatives": 1.5}, "alternatives parameter is not a number"),
        ({"alternatives": -1}, "alternatives parameter must be >= 0 and <= 5"),
        ({"alternatives": 6}, "alternatives parameter must be >= 0 and <= 5"),
        ({"q": "a" * 20_001}, "exceeds text limit (20000)"),
        ({"q": ["a"] * 129}, "exceeds the limit (128)"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(
    ask: Callable[..., Any], changes: dict[str, Any], message: str
) -> None:
    error = ask(expect=400, **{"q": HELLO, **changes})
    assert error.keys() == {"error"}
    assert message in error["error"]
    assert len(error["error"]) < 300


def test_a_text_that_is_refused_costs_no_other(ask: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    cut = data.parts_within

    def parts_within(text: str, *more: Any) -> list[str]:
        if "xyz" in text:
            raise DataError("a word of 999 tokens is too long")
        return cut(text, *more)

    expected = ask(q=[HELLO, "The book."], alternatives=1)
    monkeypatch.setattr(predictor, "parts_within", parts_within)
    answer = ask(q=[HELLO, f"{HELLO}\nxyz", "The book.", "7"], alternatives=1)
    assert answer["errors"] == [None, "a word of 999 tokens is too long", None, None]
    assert answer["translatedText"] == [expected["translatedText"][0], "", expected["translatedText"][1], "7"]
    assert answer["alternatives"] == [expected["alternatives"][0], [], expected["alternatives"][1], []]
    html = ask(q=["<p>xyz <b>a</b></p>", "<p>7</p>"], format="html")
    assert (html["translatedText"], html["errors"]) == (["", "<p>7</p>"], ["a word of 999 tokens is too long", None])
    assert ask(q="xyz", expect=400) == {"error": "a word of 999 tokens is too long"}
    assert ask(q=["xyz", "xyz a"], expect=400) == {"error": "text 1: a word of 999 tokens is too long"}
    assert "errors" not in expected


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"data": b"{", "headers": JSON}, 400),
        ({"data": b"[1]", "headers": JSON}, 400),
        ({"data": b'{"q": "\xff"}', "headers": JSON}, 400),
        ({"data": b"[" * 100_000, "headers": JSON}, 400),
        ({"data": b'{"alternatives": %s}' % (b"1" * 5000), "headers": JSON}, 400),
        ({"data": b"a", "headers": {"Content-Type": "multipart/form-data"}}, 400),
        ({"files": {"q": ("a.txt", "a")}}, 400),
        ({"data": b"a", "headers": {"Content-Type": "text/plain"}}, 415),
        ({}, 400),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(server: Running, sent: dict[str, Any], status: int) -> None:
    answer = requests.post(f"{server.url}/translate", timeout=30, **sent)
    assert (answer.status_code, list(answer.json())) == (status, ["error"])


def test_detect_takes_what_translate_takes(server: Running) -> None:
    url, korean = f"{server.url}/detect", [{"confidence": 100.0, "language": "ko"}]
    ways: list[dict[str, Any]] = [{"json": {"q": KOREAN}}, {"data": {"q": KOREAN}}, {"params": {"q": KOREAN}}]
    assert [requests.post(url, timeout=30, **way).json() for way in ways] == [korean] * 3
    assert [requests.get(url, timeout=30, **way).json() for way in ways] == [korean] * 3
    assert requests.post(url, json={"q": "12"}, timeout=30).json() == [{"confidence": 0.0, "language": "en"}]
    assert requests.get(url, timeout=30).status_code == 400


def test_a_page_is_told_what_it_should_know(server: Running) -> None:
    assert requests.get(f"{server.url}/frontend/settings", timeout=30).json() == {
        "charLimit": 20_000,
        "frontendTimeout": 500,
        "apiKeys": False,
        "keyRequired": False,
        "suggestions": False,
        "filesTranslation": False,
        "supportedFilesFormat": [],
        "language": {
            "source": {"code": "auto", "name": "Auto Detect"},
            "target": {"code": "ko", "name": "Korean"},
        },
    }
    assert requests.post(f"{server.url}/languages", timeout=30).json()[0]["targets"] == ["ko"]


def test_without_a_translator_there_is_no_language(serving: Callable[..., Running]) -> None:
    url = serving("writer").url
    assert requests.get(f"{url}/languages", timeout=30).json() == []
    assert requests.post(f"{url}/detect", json={"q": "a"}, timeout=30).json() == []
    assert requests.get(f"{url}/frontend/settings", timeout=30).json()["language"]["target"] == {"code": "", "name": ""}
    refused = requests.post(f"{url}/translate", json={"q": "a", "source": "auto", "target": "ko"}, timeout=30)
    assert (refused.status_code, "no translator is served" in refused.json()["error"]) == (400, True)


def test_a_form_that_is_not_escaped_is_read_as_utf_8(server: Running) -> None:
    sent = {"content_type": "application/x-www-form-urlencoded"}
    escaped, plain = (
        server.ask("/translate", body, **sent).json
        for body in (b"q=%EA%B3%A0%EC%96%91%EC%9D%B4&source=ko&target=en", "q=고양이&source=ko&target=en".encode())
    )
    assert plain == escaped
    assert server.ask("/translate", b"q=%ff&source=ko&target=en", **sent).status == 400
