"""Which model translates what, and how long texts come to its worker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from heedful.serving.errors import APIError
from heedful.serving.libretranslate.documents import plain
from heedful.serving.libretranslate.languages import Translators, name_of
from heedful.serving.libretranslate.parameters import Texts, TranslateRequest
from heedful.serving.libretranslate.translating import (
    TOGETHER,
    TextGroup,
    made_from,
    parts,
    placed,
    translated,
    trimmed,
)
from heedful.serving.metrics import Metrics
from heedful.tasks.predictor import ItemError
from heedful.tasks.text_generator import Answer


class ShoutingWorker:
    """Answers in capitals, then with marks behind them; refuses "no"."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    async def candidates(self, texts: Sequence[str], n_best: int = 1) -> list[list[Answer]]:
        self.calls.append(len(texts))
        if "no" in texts:
            raise ItemError("text", list(texts).index("no"), "never")
        return [
            [Answer(text.upper() + "!" * n, 0, True, score=-n * len(text)) for n in range(n_best)] for text in texts
        ]


def served(name: str, *languages: str) -> Any:
    settings = SimpleNamespace(**dict(zip(("source", "target"), languages, strict=False)))
    return SimpleNamespace(name=name, predictor=SimpleNamespace(settings=settings), worker=ShoutingWorker())


def translators(*models: Any) -> Translators:
    return Translators.of(SimpleNamespace(of_task=lambda *tasks: models))  # type: ignore[arg-type]


def shouted(model: Any, *texts: str, alternatives: int = 0) -> list[Any]:
    part = TextGroup(model, list(range(len(texts))), list(texts), [plain(text) for text in texts])
    return asyncio.run(translated(part, alternatives, Metrics()))


def translate(*texts: str, target: str) -> TranslateRequest:
    return TranslateRequest(Texts(list(texts), True), "auto", target, html=False, alternatives=0)


def test_of_several_translators_of_a_pair_the_first_answers() -> None:
    found = translators(served("rewriter"), served("a", "en", "ko"), served("b", "en", "ko"), served("c", "en", "de"))
    assert {pair: model.name for pair, model in found.pairs.items()} == {("en", "ko"): "a", ("en", "de"): "c"}
    assert found.languages == ["en", "ko", "de"]
    assert (found.targets("en"), found.targets("ko")) == (["ko", "de"], [])


def test_codes_are_met_exactly_before_more_or_less() -> None:
    found = translators(served("a", "pt", "en"), served("b", "pt-BR", "en"))
    assert [found.code(code) for code in ("pt", "PT_br", "pt-PT", "pt-BR-x")] == ["pt", "pt-BR", "pt", "pt"]
    with pytest.raises(APIError, match="'p' is not supported; the languages are: pt, pt-BR, en"):
        found.code("p")


def test_a_long_text_comes_in_parts_and_the_same_line_once() -> None:
    model = served("a", "en", "ko")
    lines = [f"line {chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(2 * TOGETHER + 3)]
    (found,) = shouted(model, "\n".join(lines + lines))
    assert found.text == "\n".join(lines + lines).upper()
    assert model.worker.calls == [TOGETHER, TOGETHER, 3]


def test_the_text_that_is_refused_is_named() -> None:
    model = served("a", "en", "ko")
    lines = "\n".join(f"line {chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(TOGETHER))
    with pytest.raises(ItemError, match="text 2: never"):
        shouted(model, lines, "yes\nwell\nno", "no")


def test_an_alternative_differs_in_one_line_where_that_costs_least() -> None:
    (found,) = shouted(served("a", "en", "ko"), "long line\nab", alternatives=3)
    assert found.text == "LONG LINE\nAB"
    assert found.alternatives == ["LONG LINE\nAB!", "LONG LINE\nAB!!", "LONG LINE\nAB!!!"]


def test_a_text_of_which_nothing_is_known_goes_to_a_translator_into_the_target() -> None:
    found = translators(served("a", "en", "ko"), served("b", "de", "fr"))
    (unknown, nothing), detected = parts(translate("Привет", "", target="fr"), found)
    assert unknown.model is not None
    assert (unknown.model.name, unknown.places, nothing.model, nothing.places) == ("b", [0], None, [1])
    assert {one.confidence for one in detected} == {0.0}
    with pytest.raises(APIError, match=r"French \(fr\) is not available as a target language from Korean \(ko\)"):
        parts(translate("안녕", target="fr"), found)


def test_tags_go_to_the_words_that_look_at_those_they_stood_around() -> None:
    weights = [  # 물을 마셔요. looking at I, drink, cold, water.
        [0.1, 0.1, 0.3, 0.5],
        [0.1, 0.2, 0.3, 0.4],
    ]
    assert made_from([[3]], weights) == [(0, 0)]
    assert made_from([[1]], weights) == [(1, 1)]
    assert made_from([[3], [1]], weights) == [(0, 0), (1, 1)]
    assert made_from([[3], [1], [0]], weights) is None  # no word is left
    assert made_from([[0, 1]], [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]]) == [(0, 1)]


def test_what_comes_back_unchanged_is_marked_as_it_was() -> None:
    assert placed(None, "a b", "a b", [(2, 3)]) == [(2, 3)]
    assert placed(None, "a b", " ", [(2, 3)]) is None


def test_signs_stay_outside_where_the_source_had_them_outside() -> None:
    assert trimmed("(마셔요).", (0, 6), "drink") == (1, 4)
    assert trimmed("(마셔요).", (0, 6), "drink.") == (1, 6)
    assert trimmed("...", (0, 3), "drink") == (0, 3)


def test_languages_have_english_names() -> None:
    assert [name_of(code) for code in ("ko", "EN", "pt-BR", "xx")] == ["Korean", "English", "Portuguese (BR)", "xx"]
