"""The toy translator and the figures of the decoder: their numbers agree with the model and with `heedful.generate`."""

from __future__ import annotations

import math

import pytest
import torch

from heedful.generation import generate
from heedful.learn.figures import figure_data
from heedful.learn.figures.translator import BEAMS, SENTENCES, translator
from heedful.learn.toy import HELD_OUT, START, VOCABULARY, toy_batch, toy_ids, toy_pairs, toy_text


def test_the_shares_of_a_sentence_add_up_to_one() -> None:
    shares: dict[str, float] = {}
    for pair in toy_pairs() + toy_pairs(held_out=True):
        shares[pair.source] = shares.get(pair.source, 0) + pair.share
    assert len(shares) == 45
    assert all(math.isclose(share, 1) for share in shares.values())
    assert not {pair.source for pair in toy_pairs()} & set(HELD_OUT)


def test_ids_and_texts_are_inverse() -> None:
    assert toy_text(toy_ids("나 는 돈 을 좋아해")) == "나 는 돈 을 좋아해"
    assert toy_batch(["돈", "나 는 돈"]).tolist() == [[*toy_ids("돈"), 0, 0], toy_ids("나 는 돈")]


def test_the_translator_learns_the_shares_and_sentences_that_it_was_not_trained_on() -> None:
    answers = generate(translator(), [toy_ids("I like money")], beam=3, n_best=3)[0]
    shares = {pair.target: pair.share for pair in toy_pairs() if pair.source == "I like money"}
    assert {toy_text(answer.tokens): answer.probability for answer in answers} == pytest.approx(shares, abs=0.05)
    accepted: dict[str, list[str]] = {pair.source: [] for pair in toy_pairs(held_out=True)}
    for pair in toy_pairs(held_out=True):
        accepted[pair.source].append(pair.target)
    for sentence, answers in zip(accepted, generate(translator(), [toy_ids(text) for text in accepted]), strict=True):
        assert toy_text(answers[0].tokens) in accepted[sentence]


@torch.no_grad()
def test_each_step_shows_the_logits_of_the_decoder_alone() -> None:
    data = figure_data("word-by-word", "en")
    for sentence, item in zip(SENTENCES, data["sentences"], strict=True):
        memory = translator().encode(torch.tensor([toy_ids(sentence)]))
        written = [START]
        for row, weights in zip(item["logits"], item["attention"], strict=True):
            logits = translator().decode(torch.tensor([written]), memory)[0, -1]
            assert row == pytest.approx(logits.tolist(), abs=1e-3)
            assert sum(weights) == pytest.approx(1, abs=0.01)
            written.append(int(logits.argmax()))
        assert [VOCABULARY[token] for token in written[1:-1]] == item["written"]
        assert len(weights) == len(item["source"])


def test_the_decoder_looks_at_the_verb_before_the_verb_and_at_the_noun_before_the_particle() -> None:
    for item in figure_data("word-by-word", "en")["sentences"]:
        for word, weights in zip(item["written"], item["attention"], strict=False):
            place = {"좋아해": 1, "사랑해": 1, "을": 2, "를": 2}.get(word)
            assert place is None or max(weights) == weights[place]


@pytest.mark.parametrize("alpha", [0.0, 1.0])
def test_the_best_answer_of_a_tree_is_that_of_generate(alpha: float) -> None:
    data = figure_data("beam-tree", "en")
    for sentence, tree in zip(SENTENCES, data["trees"], strict=True):
        for beam, nodes in zip(BEAMS, tree["nodes"], strict=True):
            answers = {}
            for node in nodes:
                words: list[str] = []
                total, at = 0.0, node
                while True:
                    words.insert(0, at["word"])
                    total += at["logprob"]
                    if at["parent"] < 0:
                        break
                    at = nodes[at["parent"]]
                assert node["total"] == pytest.approx(total, abs=1e-3)
                if node["outcome"] == "ended":
                    answers[" ".join(words[:-1])] = total / len(words) ** alpha
            best = generate(translator(), [toy_ids(sentence)], beam=beam, length_penalty=alpha)[0][0]
            assert max(answers, key=lambda text: answers[text]) == toy_text(best.tokens)
            assert max(answers.values()) == pytest.approx(best.score, abs=1e-3)
