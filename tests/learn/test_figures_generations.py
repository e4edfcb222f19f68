"""The three trained translators of chapter 1, and what its figure shows of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from heedful.generation import generate
from heedful.learn.figures import figure_data
from heedful.learn.figures.generations import (
    CONFIGS,
    ENGLISH,
    EXAMPLE_SEED,
    HELD_OUT,
    KOREAN,
    SCORE_SEED,
    encode,
    exact,
    sample,
    sentence_pair,
    sentences_of,
    trained_model,
)
from heedful.learn.toy import END, PADDING, START

EXAMPLE = [[*HELD_OUT[:1], ("they", "explain", "the paper")], [HELD_OUT[1]]]


def test_both_sides_of_a_pair() -> None:
    english, korean = sentence_pair([HELD_OUT[0], ("you", "hate", "poetry")])
    assert english == "I love deep learning and you hate poetry"
    assert korean == "나는 딥러닝 을 사랑하고 너는 시 를 싫어한다"


def test_ids_stand_for_the_tokens_and_no_training_sentence_has_a_held_out_clause() -> None:
    source, target = encode(EXAMPLE)
    assert source[1].tolist().count(PADDING) == 5
    assert END in source[1]
    english, korean = sentence_pair(EXAMPLE[0])
    assert [ENGLISH.tokens[token] for token in source[0]] == [*english.split(), "</s>"]
    assert [KOREAN.tokens[token] for token in target[0]] == [*korean.split(), "</s>"]
    for seed in (0, 1599, SCORE_SEED, EXAMPLE_SEED):
        assert not {clause for clauses in sample(seed, 4, 64) for clause in clauses} & set(HELD_OUT)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_sentence_is_exact_where_greedy_search_writes_its_translation(name: str) -> None:
    model, sentences = trained_model(name), [*sentences_of(4)[:2], [HELD_OUT[1]]]
    for sentence, right in zip(sentences, exact(model, sentences), strict=True):
        source, target = encode([sentence])
        (best,) = generate(model, source.tolist(), beam=1, max_new_tokens=40, start=START, end=END)
        assert ([*best[0].tokens, END] == target[0].tolist()) is right
    assert exact(model, [[HELD_OUT[0]], [HELD_OUT[1]]]) == [True, True]


def test_the_figure_shows_what_attention_solves() -> None:
    data = figure_data("three-generations", "en")
    assert data["scores"]["vector"][0] == data["scores"]["additive"][3] == data["scores"]["transformer"][3] == 1
    assert data["scores"]["vector"][3] < 0.8
    hardest = data["lengths"][3][0]
    assert hardest["vector"]["output"] != hardest["target"] == hardest["transformer"]["output"]
    for item in (item for length in data["lengths"] for item in length):
        for name in ("additive", "transformer"):
            weights = torch.tensor(item[name]["heads"])
            assert weights.shape[1:] == (len(item[name]["output"]), len(item["source"]))
            torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:2]), atol=6e-3, rtol=0)


def test_weights_and_vector_are_those_of_the_formula_and_of_torch() -> None:
    item = figure_data("three-generations", "en")["lengths"][0][0]
    model, (source, _) = trained_model("additive"), encode([[HELD_OUT[0]]])
    decoder: Any = model.decoder
    part = decoder.attention
    with torch.no_grad():
        h = _states(model, source)
        first = torch.cat([h[0, -1, :32], h[0, 0, 32:]])
        s = torch.tanh(decoder.start.weight @ first + decoder.start.bias)
        w_s = part.q_proj.weight @ s + part.q_proj.bias
        scores = [part.score.weight[0] @ torch.tanh(w_s + part.k_proj.weight @ state) for state in h[0]]
        h = _states(trained_model("vector"), source)
    expected = torch.stack(scores).softmax(0)
    torch.testing.assert_close(torch.tensor(item["additive"]["heads"][0][0]), expected, atol=6e-4, rtol=0)
    vector = torch.cat([h[0, -1, :32], h[0, 0, 32:]])
    torch.testing.assert_close(torch.tensor(item["vector"]["vector"]), vector, atol=6e-3, rtol=0)


def _states(model: Any, source: torch.Tensor) -> torch.Tensor:
    """The states of torch's own bidirectional GRU with the encoder's weights."""
    encoder, gru = model.encoder, nn.GRU(32, 32, batch_first=True, bidirectional=True)
    for suffix, part in (("", encoder.forwards[0]), ("_reverse", encoder.backwards[0])):
        for name, value in part.named_parameters():
            getattr(gru, name + suffix).data.copy_(value)
    states: torch.Tensor = gru(model.source_embedding(source)[0])[0]
    return states
