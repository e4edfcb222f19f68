"""ROUGE by worked examples, by its definitions written out, and in scripts that the usual tools leave out."""

from __future__ import annotations

import random
from functools import cache

import pytest

from heedful.tasks.scoring import longest_common_subsequence, mostly_hangul, rouge, rouge_scores, rouge_tokens


def slow_common(first: list[str], second: list[str]) -> int:
    """By its recursion."""

    @cache
    def longest(i: int, j: int) -> int:
        if not i or not j:
            return 0
        if first[i - 1] == second[j - 1]:
            return longest(i - 1, j - 1) + 1
        return max(longest(i - 1, j), longest(i, j - 1))

    return longest(len(first), len(second))


def test_a_worked_example() -> None:
    """Shared: the, cat, the, mat; the pair "the mat"; in order: the cat … the mat."""
    actual = rouge("The cat lay on a rug, the mat.", "the cat was sitting on the mat")
    assert actual["rouge1"] == pytest.approx(2 * 5 / (8 + 7))  # the ×2, cat, on, mat
    assert actual["rouge2"] == pytest.approx(2 * 2 / (7 + 6))  # the cat, the mat
    assert actual["rougeL"] == pytest.approx(2 * 5 / (8 + 7))  # the cat on the mat


def test_order_counts_for_l_alone() -> None:
    actual = rouge("police killed the gunman", "the gunman killed police")
    assert actual["rouge1"] == 1
    assert actual["rouge2"] == pytest.approx(2 * 1 / (3 + 3))
    assert actual["rougeL"] == pytest.approx(2 * 2 / (4 + 4))


def test_a_token_counts_as_often_as_both_have_it() -> None:
    actual = rouge("the the the", "the cat")
    assert actual["rouge1"] == pytest.approx(2 * 1 / (3 + 2))
    assert actual["rouge2"] == 0


def test_the_longest_common_subsequence_is_that_of_the_recursion() -> None:
    draw = random.Random(0)
    for _ in range(300):
        first, second = ([draw.choice("abcd") for _ in range(draw.randint(0, 12))] for _ in range(2))
        assert longest_common_subsequence(first, second) == slow_common(first, second)
    long = [str(draw.randint(0, 20)) for _ in range(400)]
    assert longest_common_subsequence(long, long) == 400  # wider than a machine's word


def test_what_a_token_is() -> None:
    assert rouge_tokens("Don't STOP_it: café №5!") == ["don", "t", "stop", "it", "café", "5"]
    assert rouge_tokens("cafe\u0301") == rouge_tokens("caf\u00e9")
    assert rouge_tokens("나는 학교에 갔다.") == ["나는", "학교에", "갔다"]
    assert rouge_tokens("我爱北京 2024") == ["我", "爱", "北", "京", "2024"]
    assert rouge_tokens("हिन्दी भाषा") == ["हिन्दी", "भाषा"]  # the signs of its vowels belong to the word
    assert rouge_tokens("학교에 a1", "characters") == ["학", "교", "에", "a", "1"]


def test_no_script_is_left_out() -> None:
    """Tools that keep a to z alone give Korean 0, or a full score for nothing in common."""
    assert rouge("나는 학교에 갔다", "나는 학교에 갔다")["rougeL"] == 1
    assert rouge("나는 집에 있다", "우리가 학교로 갔다")["rouge1"] == 0
    words, syllables = (rouge("학교에 갔다", "학교로 갔다", unit) for unit in ("words", "characters"))
    assert words["rougeL"] == pytest.approx(1 / 2)
    assert syllables["rougeL"] == pytest.approx(4 / 5)
    assert mostly_hangul(["나는 GPU를 샀다", "좋다"])
    assert not mostly_hangul(["I bought a GPU", "좋다"])


def test_nothing_to_count() -> None:
    assert rouge("", "a cat")["rouge1"] == 0
    assert rouge("!", "?")["rougeL"] == 0
    assert rouge("?", " ? ")["rougeL"] == 1


def test_the_mean_with_its_interval_and_its_signature() -> None:
    outputs, references = ["a b", "c d"] * 50, ["a b", "x y"] * 50
    scores = rouge_scores(outputs, references, bootstrap=1000)
    assert scores["rougeL"].value == 50
    assert scores["rougeL"].interval == pytest.approx(1.96 * 5, abs=1.5)  # √(50 · 50 / 100)
    assert scores["rouge1"].signature == "f1|mean|tok:words|script:all|case:lc|stem:no|bs:1000|seed:12345"
    assert rouge_scores(outputs, references)["rouge2"].interval is None
    assert rouge_scores(outputs, references, unit="characters")["rougeL"].metric == "ROUGE-L (characters)"
    assert rouge_scores([], [])["rouge1"].value == 0
    assert rouge_scores(["a"], ["a"], bootstrap=100)["rouge1"].interval == 0
