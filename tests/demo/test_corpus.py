from __future__ import annotations

from collections import Counter
from itertools import islice
from random import Random

import pytest

from heedful.demo import Grammar, ParallelExample, splits
from heedful.demo.english_realization import EnglishRealizer
from heedful.demo.korean_realization import KoreanRealizer
from heedful.demo.sentences import SentenceSampler
from heedful.demo.splits import PROBES
from heedful.errors import DataError

LEVELS = ("demo", "full")


def words(sentence: str) -> list[str]:
    return sentence.split(" ")


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_seed_gives_the_same_sentences(level: str) -> None:
    first, again, other = (
        [example.korean for example in Grammar(level, seed).sample(300)]  # type: ignore[arg-type]
        for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other


@pytest.mark.parametrize("level", LEVELS)
def test_english_is_a_function_of_the_korean(
    level: str, training: dict[str, list[ParallelExample]], held_out: dict[str, dict[str, list[ParallelExample]]]
) -> None:
    answers: dict[str, str] = {}
    for example in [*training[level], *(e for split in held_out[level].values() for e in split)]:
        assert answers.setdefault(example.korean, example.english) == example.english


@pytest.mark.parametrize("level", LEVELS)
def test_english_is_a_function_of_the_korean_before_any_split(level: str) -> None:
    sampler = SentenceSampler(level, Random("function"))  # type: ignore[arg-type]
    answers: dict[str, str] = {}
    for _ in range(40_000):
        frame = sampler.draw()
        english = EnglishRealizer(frame).text()
        assert answers.setdefault(KoreanRealizer(frame).text(), english) == english


@pytest.mark.parametrize("level", LEVELS)
def test_every_word_and_every_ending_is_met_fifty_times(level: str, training: dict[str, list[ParallelExample]]) -> None:
    """In 60,000 sentences, of which these are the first half."""
    met: Counter[str] = Counter()
    endings: Counter[str] = Counter()
    for example in training[level]:
        met.update(set(splits.lemmas(example.frame)))
        forms = [feature for feature in example.features if "다 -" in feature]
        endings.update({form.rpartition(" ")[2].replace("-시-", "").replace("-었-", "") for form in forms})
    rare = {word: met[word] for word in Grammar(level).vocabulary() if met[word] < 25}  # type: ignore[arg-type]
    assert not rare
    assert not {ending: n for ending, n in endings.items() if n < 25}


def test_sizes(training: dict[str, list[ParallelExample]]) -> None:
    demo, full = Grammar("demo"), Grammar("full")
    assert 230 <= len(demo.vocabulary()) <= 260
    assert 590 <= len(full.vocabulary()) <= 620
    assert set(demo.vocabulary()) <= set(full.vocabulary())
    assert full.n_sentences() > 10**9
    lengths = [len(words(example.korean)) for example in training["demo"]]
    assert 3.5 < sum(lengths) / len(lengths) < 6


@pytest.mark.parametrize("level", LEVELS)
def test_how_people_speak(level: str, training: dict[str, list[ParallelExample]]) -> None:
    examples = training[level]
    both = [
        e
        for e in examples
        if "transitive" in e.constructions and e.frame.clauses[0].subject and len(e.frame.clauses) == 1
    ]
    scrambled = sum("scrambled" in e.constructions for e in both) / len(both)
    assert 0.05 < scrambled < 0.2
    informal = [e for e in examples if e.level != "합쇼"]
    assert sum("particle dropped" in e.constructions for e in informal) / len(informal) < 0.15
    assert not any("particle dropped" in e.constructions for e in examples if e.level == "합쇼")
    assert {e.level for e in examples} == {"해요", "합쇼", "해"}


@pytest.mark.parametrize("level", LEVELS)
def test_alignments_point_at_words_and_cover_them(level: str, training: dict[str, list[ParallelExample]]) -> None:
    silent = {"i", "you", "it", "there", "we", "that", "who", "he", "she", "do", "they"}
    for example in islice(training[level], 5000):
        korean, english = words(example.korean), words(example.english)
        assert all(0 <= i < len(korean) and 0 <= j < len(english) for i, j in example.alignment)
        aligned = {j for _, j in example.alignment}
        left = {english[j].strip(".?,").lower() for j in range(len(english)) if j not in aligned}
        assert left <= silent, (example.korean, example.english, left)
        assert {i for i, _ in example.alignment} == set(range(len(korean))), (example.korean, example.english)


@pytest.mark.parametrize("level", LEVELS)
def test_accepted_answers_begin_with_the_canonical_one(level: str, training: dict[str, list[ParallelExample]]) -> None:
    for example in islice(training[level], 1000):
        assert example.accepted[0] == example.english
        assert example.accepted_korean[0] == example.korean
        assert len(set(example.accepted)) == len(example.accepted)
        tag = {"해요": "", "합쇼": "[formal] ", "해": "[casual] "}[example.level]
        assert example.tagged_english == tag + example.english


def test_scrambled_sentences_accept_the_plain_order_and_mean_the_same(
    training: dict[str, list[ParallelExample]],
) -> None:
    english = {example.korean: example.english for example in training["demo"]}
    compared = 0
    for example in training["demo"]:
        if "scrambled" in example.constructions:
            assert len(example.accepted_korean) > 1
            for other in example.accepted_korean:
                if other in english:
                    assert english[other] == example.english
                    compared += other != example.korean
    assert compared > 20


def test_probes_name_constructions_that_exist(training: dict[str, list[ParallelExample]]) -> None:
    known = {name for example in training["full"] for name in example.constructions}
    assert {name for names in PROBES.values() for name in names} <= known
    demo = {name for example in training["demo"] for name in example.constructions}
    assert all(demo & set(names) for names in PROBES.values())


def test_wrong_names_are_refused_with_the_right_ones() -> None:
    with pytest.raises(DataError, match="allowed: course, demo, full"):
        Grammar("small")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="T6"):
        next(Grammar("demo").sample(1, "T7"))  # type: ignore[arg-type]
