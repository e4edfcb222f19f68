"""The figures of many heads: maps against torch.nn's attention, scores against what the heads look at."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from heedful import core
from heedful.learn.figures import figure_data
from heedful.learn.figures.heads import (
    FORM,
    IT,
    LETTERS,
    SEEDS,
    SENTENCES,
    VOCABULARY,
    letter_model,
    pronoun_model,
    token_ids,
)


def test_maps_are_those_of_torch_nn() -> None:
    data, model = figure_data("heads-at-work", "en"), letter_model(4)
    stack: Any = model.stack
    part = stack.layers[0].self_attention.sublayer
    reference = nn.MultiheadAttention(64, 4, batch_first=True)
    reference.in_proj_weight.data = torch.cat([part.q_proj.weight, part.kv_proj.weight]).detach()
    reference.in_proj_bias.data = torch.cat([part.q_proj.bias, part.kv_proj.bias]).detach()
    ids = torch.tensor([[LETTERS["en"].index(letter) for letter in data["letters"]]])
    x = model.embedding(ids)[0] + core.Sinusoidal(64).table(ids.shape[1])
    with torch.no_grad():
        _, weights = reference(x, x, x, average_attn_weights=False)
    torch.testing.assert_close(torch.tensor(data["maps"]), weights[0], atol=1e-3, rtol=0)


def test_each_head_carries_the_answers_at_the_place_it_looks_at() -> None:
    data = figure_data("heads-at-work", "en")
    n = len(data["letters"])
    places: dict[int, Callable[[int], int]] = {
        0: lambda at: (at - 1) % n,
        1: lambda at: (at + 1) % n,
        2: lambda at: 0,
        3: lambda at: n - 1,
    }
    assert min(data["scores"][15]) > 0.95  # all heads on
    questions = set()
    for head, heat in enumerate(data["maps"]):
        looks = torch.tensor(heat).argmax(dim=-1).tolist()
        question = max(places, key=lambda name: sum(looks[at] == places[name](at) for at in range(n)))
        questions.add(question)
        alone, without = data["scores"][1 << head], data["scores"][15 - (1 << head)]
        assert without[question] < 0.4 < 0.9 < alone[question]
        assert min(score for name, score in enumerate(without) if name != question) > 0.9
    assert questions == set(places)
    assert sum(data["single_scores"]) < 3
    assert data["parameters"][0] == data["parameters"][1]


@pytest.mark.parametrize("seed", SEEDS)
def test_both_pronoun_models_understand_new_sentences(seed: int) -> None:
    new = [(words, answer) for words, answer in SENTENCES if {"animal", "street"} <= {*words}]
    assert len(new) == 12
    logits = pronoun_model(seed)(torch.stack([token_ids(words) for words, _ in new]))
    assert [VOCABULARY[n] for n in logits.argmax(dim=-1)] == [answer for _, answer in new]


def test_a_head_that_looks_at_the_noun_can_be_dispensable() -> None:
    data = figure_data("what-it-refers-to", "en")
    nouns = [data["words"].index("animal"), data["words"].index("street")]
    assert data["it"] == IT == FORM.split().index("it")
    dispensable, elsewhere, decisive = 0, 0, 0
    for model in data["models"]:
        for answer, word in enumerate(("tired", "wide")):
            reading = model[word]
            assert reading["whole"][answer] > 0.9
            for weights, without in zip(reading["weights"], reading["without"], strict=True):
                assert sum(weights) == pytest.approx(1, abs=0.01)
                dispensable += weights[nouns[answer]] > 0.9 and without[answer] > 0.9
                elsewhere += weights[nouns[1 - answer]] > 0.9
                decisive += weights[-1] > 0.9 and without[answer] < 0.5
    assert dispensable
    assert elsewhere
    assert decisive  # a head that looks at the last word
