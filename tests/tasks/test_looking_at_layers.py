"""What a document says of the layers: the tokens of the logit lens, and the effects of patching, as `heedful.lens`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

import heedful
from every_task import built, classifier, filler, language_model, translator
from heedful.errors import ConfigError, DataError, RecordingError
from heedful.families import config_of
from heedful.lens import ablate, logit_lens, patch
from heedful.lens.document import unpacked
from heedful.lens.logit_lens import likeliest_tokens
from heedful.tasks.inspection import inspect, inspect_ablated, inspect_patched
from heedful.tasks.translation.predictor import Translator

TEXT, OTHER = "나는 책을 읽었다.", "그는 책을 읽었다."
GAP = "The [MASK] reads a book."


def ko_en() -> Any:
    return translator("ko", "en")


def guesses(document: dict[str, Any]) -> list[list[list[tuple[str, float]]]]:
    """By layer and position, the tokens with their probabilities, read from the arrays."""
    lens = document["lens"]
    top, shares = (unpacked(document["arrays"][lens[name]]) for name in ("top", "shares"))
    return [
        [
            [(lens["tokens"][int(place)], float(share)) for place, share in zip(*cell, strict=True)]
            for cell in zip(*row, strict=True)
        ]
        for row in zip(top, shares, strict=True)
    ]


def assert_same(document: dict[str, Any], expected: list[list[list[tuple[Any, float]]]]) -> None:
    for row, wanted_row in zip(guesses(document), expected, strict=True):
        for cell, wanted in zip(row, wanted_row, strict=True):
            assert [share for _, share in cell] == pytest.approx([share for _, share in wanted], rel=1e-4)
            if len({round(share, 6) for _, share in wanted}) == len(wanted):
                assert [text for text, _ in cell] == [text for text, _ in wanted]


def test_a_translators_document_has_the_tokens_of_the_logit_lens() -> None:
    model = ko_en()
    document = inspect(model, TEXT)
    expected = logit_lens(model, TEXT).top(5)
    assert len(expected) == 3
    assert len(expected[0]) == len(document["written"])
    assert_same(document, expected)
    last = [step["top"][0][1] for step in document["generation"]["steps"]]
    assert [row[0][1] for row in guesses(document)[-1]] == pytest.approx(last, rel=1e-5)


def test_a_language_models_document_has_them_for_prompt_and_answer() -> None:
    model = language_model()
    document = inspect(model, "I drink water")
    ids = torch.tensor([document["entries"]["target"]["ids"]])
    expected = replace(logit_lens(model.module, ids), spell=logit_lens(model, "I drink water").spell)
    assert_same(document, expected.top(5))


def test_a_masked_model_has_them_for_each_token_and_a_classifier_none() -> None:
    model = filler()
    document = inspect(model, GAP)
    assert len(guesses(document)[-1]) == len(document["sequences"]["source"])
    place = [token["piece"] for token in document["sequences"]["source"]].index("[MASK]")
    (gap,) = model.guesses([GAP], 5)[0]
    assert [share for _, share in guesses(document)[-1][place]] == pytest.approx(
        [each.probability for each in gap], rel=1e-4
    )
    assert inspect(classifier(), "The cat reads.")["lens"] is None


def test_the_lens_of_a_model_without_some_heads_is_of_that_model() -> None:
    model = ko_en()
    document = inspect_ablated(model, TEXT, ["cross.0.1"])
    with ablate(model, heads=["cross.0.1"]):
        expected = logit_lens(model, TEXT).top(5)
    assert_same(document, expected)
    assert guesses(document)[1] != guesses(inspect(model, TEXT))[1]


def test_a_document_of_too_many_logits_has_no_lens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[likeliest_tokens.__module__], "MOST_LOGITS", 1000)
    assert inspect(ko_en(), TEXT)["lens"] is None


@pytest.mark.parametrize("stack", ["encoder", "decoder"])
def test_effects_are_those_of_patch(stack: str) -> None:
    model = ko_en()
    document = inspect(model, TEXT)
    result = inspect_patched(model, document, OTHER, step=2, token=20, against=30, stack=stack, part="feed_forward")
    target = torch.tensor([document["entries"]["target"]["ids"][:3]])
    source = {text: torch.tensor(model.inputs(text)) for text in (TEXT, OTHER)}
    expected = [
        patch(model.module, (source[TEXT], target), (source[OTHER], target), token, stack=stack, part="feed_forward")
        for token in (20, 30)
    ]
    difference = expected[0].effects - expected[1].effects
    torch.testing.assert_close(torch.tensor(result["effects"]).double(), difference, rtol=1e-4, atol=1e-5)
    assert result["clean"] == pytest.approx(expected[0].clean - expected[1].clean, abs=1e-4)
    assert result["corrupted"] == pytest.approx(expected[0].corrupted - expected[1].corrupted, abs=1e-4)
    assert difference.abs().max() > 0.01
    alone = inspect_patched(model, document, OTHER, step=2, token=20, stack=stack, part="feed_forward")
    torch.testing.assert_close(torch.tensor(alone["effects"]).double(), expected[0].effects, rtol=1e-4, atol=1e-5)


def test_by_default_the_first_token_that_the_other_text_changes_is_measured() -> None:
    model: Any = heedful.load("ko-en")
    document = inspect(model, "고양이가 쥐를 잡았다.")
    result = inspect_patched(model, document, "쥐가 고양이를 잡았다.", stack="encoder")
    assert document["written"][result["step"]] == "cat"
    by_id = {each["id"]: each for each in result["candidates"]}
    assert [by_id[result[name]]["text"] for name in ("token", "against")] == [" cat", " mouse"]
    source, target = model.inputs("쥐가 고양이를 잡았다."), document["entries"]["target"]["ids"][: result["step"] + 1]
    shares = model.module(torch.tensor(source), torch.tensor([target])).detach()[0, -1].softmax(dim=-1)
    for index, each in by_id.items():
        assert each["corrupted"] == pytest.approx(float(shares[index]), rel=1e-3)
    last = torch.tensor(result["effects"][-1]) / (result["clean"] - result["corrupted"])
    assert last.argmax() == 0  # the subject: 고양이, and 쥐 in the other text
    assert result["tokens"][:4] == ["쥐", "가", "고양이", "를"]


def test_a_language_model_is_patched_over_prompt_and_answer() -> None:
    model = language_model()
    document = inspect(model, "I drink water", max_new_tokens=4)
    n_prompt = document["prompt"]
    result = inspect_patched(model, document, "I drink books")
    assert result["first_step"] == n_prompt - 1
    assert [len(row) for row in result["effects"]] == [result["step"] + 1] * 2
    assert len(result["tokens"]) == result["step"] + 1
    assert result["effects"][-1][-1] == pytest.approx(result["clean"] - result["corrupted"], rel=1e-4)


@pytest.mark.parametrize(
    ("model", "text", "changes", "error", "reason"),
    [
        (ko_en, "그는 책을 읽었다 읽었다.", {}, DataError, "the same number of tokens"),
        (ko_en, "", {}, DataError, "empty"),
        (ko_en, OTHER, {"step": 99}, DataError, "no step 99"),
        (ko_en, OTHER, {"token": 5000}, DataError, "no token 5000"),
        (ko_en, OTHER, {"token": 7, "against": 5000}, DataError, "no token 5000"),
        (ko_en, OTHER, {"part": "cross_attention", "stack": "encoder"}, ConfigError, "unknown part"),
        (language_model, "I drink books", {"stack": "encoder"}, ConfigError, "unknown stack 'encoder'"),
        (language_model, "I drink books", {"step": 0}, DataError, "no step 0"),
        (classifier, "The cat drinks.", {}, ConfigError, "for classification"),
    ],
)
def test_what_cannot_be_patched_is_refused(
    model: Callable[[], Any], text: str, changes: dict[str, Any], error: type[Exception], reason: str
) -> None:
    predictor = model()
    first = TEXT if model is ko_en else "I drink water"
    document = inspect(predictor, first)
    with pytest.raises(error, match=reason):
        inspect_patched(predictor, document, text, **changes)


def test_a_recurrent_model_has_neither() -> None:
    attentive = ko_en()
    config = config_of({"preset": "recurrent", "d_model": 16}).changed(vocab_size=attentive.tokenizer.vocab_size)
    model = Translator(config, built(config), attentive.tokenizer, attentive.settings)
    document = inspect(model, TEXT)
    assert document["lens"] is None
    with pytest.raises(RecordingError, match="of attention layers"):
        inspect_patched(model, document, OTHER)


def test_against_takes_ids_of_a_module() -> None:
    with pytest.raises(ConfigError, match="pass the module"):
        patch(ko_en(), TEXT, OTHER, "I drink water.", against=7)
