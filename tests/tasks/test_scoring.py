"""Scores that can be compared: sacreBLEU's own figures, signatures, intervals, groups by length."""

from __future__ import annotations

import pytest
import sacrebleu
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from heedful.tasks.scoring import by_length, corpus_scores, exact_share, main_metric, sentence_score

OUTPUTS = ["The cat sat on the mat.", "A dog runs in the park.", "Hello there, world!"]
REFERENCES = ["The cat sat on a mat.", "A dog runs in the park.", "Hello, my world!"]


def test_the_scores_are_those_of_sacrebleu() -> None:
    scores = corpus_scores(OUTPUTS, REFERENCES, "en")
    assert scores["bleu"].value == sacrebleu.corpus_bleu(OUTPUTS, [REFERENCES]).score
    assert scores["chrf"].value == sacrebleu.corpus_chrf(OUTPUTS, [REFERENCES]).score
    assert "tok:13a" in scores["bleu"].signature
    assert "case:mixed" in scores["bleu"].signature
    assert scores["bleu"].interval is None


def test_the_interval_shrinks_with_more_of_the_same() -> None:
    few = corpus_scores(OUTPUTS * 4, REFERENCES * 4, "en", bootstrap=200)["bleu"].interval
    many = corpus_scores(OUTPUTS * 64, REFERENCES * 64, "en", bootstrap=200)["bleu"].interval
    assert few is not None
    assert many is not None
    assert 0 < many < few / 2


def test_the_interval_is_the_one_that_sacrebleu_gives() -> None:
    outputs, references = OUTPUTS * 7, REFERENCES * 7
    scores = corpus_scores(outputs, references, "en", bootstrap=100)
    bleu, chrf = BLEU(), CHRF()
    expected = {
        "bleu": bleu.corpus_score(outputs, [references], n_bootstrap=100),
        "chrf": chrf.corpus_score(outputs, [references], n_bootstrap=100),
    }
    for name, result in expected.items():
        assert scores[name].interval == pytest.approx(result._ci)
    assert scores["bleu"].signature == str(bleu.get_signature())
    assert scores["chrf"].signature == str(chrf.get_signature())


def test_samples_that_score_nothing_have_an_interval_too() -> None:
    interval = corpus_scores(["one", "x", "y"], ["one", "2", "3"], "en", bootstrap=200)["chrf"].interval
    assert interval is not None
    assert interval > 10


def test_languages_without_spaces_are_cut_otherwise() -> None:
    assert "tok:zh" in corpus_scores(["你好"], ["你好"], "zh")["bleu"].signature
    assert "tok:char" in corpus_scores(["こんにちは"], ["こんにちは"], "ja")["bleu"].signature


def test_korean_is_judged_by_characters() -> None:
    assert main_metric("ko") == "chrf"
    assert main_metric("en") == "bleu"


def test_an_exact_answer_is_any_of_those_accepted() -> None:
    accepted = [["a", "b"], ["c"], ["d"], ["e"]]
    assert exact_share(["b", "c", "x", "E"], accepted) == 50.0
    assert exact_share([], []) == 0.0


def test_groups_by_length_hold_every_sentence_once_and_score_alone() -> None:
    sources = ["a b", "a b c d e", "a b c d e f", " ".join("x" * 60)]
    outputs, references = ["one two"] * 4, ["one two", "one two", "three", "one two"]
    groups = by_length(sources, outputs, references, "ko")
    assert [group[:2] for group in groups] == [("1-5", 2), ("6-10", 1), ("51+", 1)]
    assert groups[0][2] == groups[2][2] == 100.0
    assert groups[1][2] < 20
    assert sentence_score("one two", "one two") == 100.0
