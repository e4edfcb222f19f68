"""The choice of a model, the batches that its worker gets, and the places of tags."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.serving.errors import APIError
from heedful.serving.libretranslate.documents import plain
from heedful.serving.libretranslate.languages import Translators, name_of
from heedful.serving.libretranslate.parameters import TranslateRequest
from heedful.serving.libretranslate.translating import (
    BATCH_SEGMENTS,
    MAX_SEGMENTS,
    TextGroup,
    aligned_words,
    group_texts,
    project_spans,
    translate_group,
    trim,
)
from heedful.serving.models import Models
from heedful.serving.state import Metrics
from heedful.tasks.predictor import ItemError
from heedful.tasks.text_generator import Answer


class ShoutingWorker:
    """Answers in capitals, alternatives with exclamation marks; refuses "no"."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    async def candidates(self, texts: Sequence[str], *, errors: str, n_best: int = 1) -> list[list[Answer] | ItemError]:
        assert errors == "return"
        self.calls.append(len(texts))
        return [
            ItemError("text", index, "never")
            if text == "no"
            else [Answer(text.upper() + "!" * n, 0, True, score=-n * len(text)) for n in range(n_best)]
            for index, text in enumerate(texts)
        ]


def served(name: str, *languages: str) -> Any:
    settings = SimpleNamespace(**dict(zip(("source", "target"), languages, strict=False)))
    return SimpleNamespace(
        name=name, task="translation", predictor=SimpleNamespace(settings=settings), worker=ShoutingWorker()
    )


def translators(*models: Any) -> Translators:
    return Translators.of(Models(models))


def translations(model: Any, *texts: str, alternatives: int = 0) -> list[Any]:
    group = TextGroup(model, list(range(len(texts))), [plain(text) for text in texts])
    return asyncio.run(translate_group(group, alternatives, Metrics()))


def request(*texts: str, target: str) -> TranslateRequest:
    return TranslateRequest(list(texts), True, "auto", target, html=False, alternatives=0)


def test_the_first_of_several_translators_of_a_pair_is_used() -> None:
    pairs = translators(served("rewriter"), served("a", "en", "ko"), served("b", "en", "ko"), served("c", "en", "de"))
    assert {pair: model.name for pair, model in pairs.pairs.items()} == {("en", "ko"): "a", ("en", "de"): "c"}
    assert pairs.languages == ["en", "ko", "de"]
    assert (pairs.targets("en"), pairs.targets("ko")) == (["ko", "de"], [])


def test_an_equal_code_comes_before_narrower_and_wider_ones() -> None:
    pairs = translators(served("a", "pt", "en"), served("b", "pt-BR", "en"))
    assert [pairs.code(code) for code in ("pt", "PT_br", "pt-PT", "pt-BR-x")] == ["pt", "pt-BR", "pt", "pt"]
    with pytest.raises(APIError, match="'p' is not supported; the languages are: pt, pt-BR, en"):
        pairs.code("p")


def test_a_long_text_is_sent_in_batches_and_repeated_lines_once() -> None:
    model = served("a", "en", "ko")
    lines = [f"line {chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(2 * BATCH_SEGMENTS + 3)]
    (translation,) = translations(model, "\n".join(lines + lines))
    assert translation.text == "\n".join(lines + lines).upper()
    assert model.worker.calls == [BATCH_SEGMENTS, BATCH_SEGMENTS, 3]


def test_a_refused_segment_refuses_its_text_alone() -> None:
    model = served("a", "en", "ko")
    lines = "\n".join(f"line {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(MAX_SEGMENTS))
    whole, refused, alone, after = translations(model, lines, "yes\nwell\nno", "no", "yes")
    assert (whole.text, whole.error) == (lines.upper(), None)
    assert (refused.text, refused.error) == (alone.text, alone.error) == ("", "never")
    assert (after.text, after.error) == ("YES", None)


def test_an_alternative_differs_in_one_line_where_that_costs_least() -> None:
    (translation,) = translations(served("a", "en", "ko"), "long line\nab", alternatives=3)
    assert translation.text == "LONG LINE\nAB"
    assert translation.alternatives == ["LONG LINE\nAB!", "LONG LINE\nAB!!", "LONG LINE\nAB!!!"]


def test_a_text_in_an_unknown_script_goes_to_a_translator_into_the_target() -> None:
    pairs = translators(served("a", "en", "ko"), served("b", "de", "fr"))
    (unknown,), detected = group_texts(request("Привет", "", target="fr"), pairs)
    assert (unknown.model.name, unknown.indices) == ("b", [0])
    assert {item.confidence for item in detected} == {0.0}
    with pytest.raises(APIError, match=r"French \(fr\) is not available as a target language from Korean \(ko\)"):
        group_texts(request("안녕", target="fr"), pairs)


def test_tags_go_around_the_words_that_attend_to_the_tagged_ones() -> None:
    weights = [  # 물을 마셔요. looking at I, drink, cold, water.
        [0.1, 0.1, 0.3, 0.5],
        [0.1, 0.2, 0.3, 0.4],
    ]
    assert aligned_words([[3]], weights) == [(0, 0)]
    assert aligned_words([[1]], weights) == [(1, 1)]
    assert aligned_words([[3], [1]], weights) == [(0, 0), (1, 1)]
    assert aligned_words([[3], [1], [0]], weights) is None  # no word is left
    assert aligned_words([[0, 1]], [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]) == [(0, 1)]


def test_an_unchanged_text_keeps_its_tags_in_place() -> None:
    assert project_spans(None, "a b", "a b", [(2, 3)]) == [(2, 3)]
    assert project_spans(None, "a b", " ", [(2, 3)]) is None


def test_punctuation_stays_outside_tags_as_in_the_source() -> None:
    assert trim("(마셔요).", (0, 6), "drink") == (1, 4)
    assert trim("(마셔요).", (0, 6), "drink.") == (1, 6)
    assert trim("...", (0, 3), "drink") == (0, 3)


def test_languages_have_english_names() -> None:
    assert [name_of(code) for code in ("ko", "EN", "pt-BR", "xx")] == ["Korean", "English", "Portuguese (BR)", "xx"]
