from __future__ import annotations

from hashlib import blake2b

import pytest

from heedful.demo import Grammar, ParallelExample
from heedful.demo.splits import bucket, construction_pairs

LEVELS = ("demo", "full")
Held = dict[str, dict[str, list[ParallelExample]]]
Training = dict[str, list[ParallelExample]]


def of_kind(example: ParallelExample, split: str) -> set[str]:
    """The features of the kind that a split holds out."""
    if split == "T4":
        return set(construction_pairs(example.constructions))
    kinds = {
        "T2": {feature for feature in example.features if "+" in feature},
        "T3": {feature for feature in example.features if "다 -" in feature},
        "T6": {feature for feature in example.features if "+" not in feature and "다 -" not in feature},
    }
    return kinds[split]


def test_buckets_are_the_same_on_every_machine() -> None:
    assert bucket("pair 읽다+책") == int(blake2b("pair 읽다+책".encode(), digest_size=8).hexdigest(), 16) % 1000


@pytest.mark.parametrize("level", LEVELS)
def test_no_sentence_is_in_two_sets(level: str, training: Training, held_out: Held) -> None:
    sets = [training[level], *held_out[level].values()]
    for side in ("korean", "english"):
        seen: dict[str, int] = {}
        for number, examples in enumerate(sets[:3]):  # training, validation, T1: in both languages
            for example in examples:
                assert seen.setdefault(getattr(example, side), number) == number
    trained = {example.korean for example in training[level]}
    assert not any(example.korean in trained for examples in sets[1:] for example in examples)


@pytest.mark.parametrize("split", ["T2", "T3", "T4", "T6"])
@pytest.mark.parametrize("level", LEVELS)
def test_held_out_features_never_reach_training(level: str, split: str, training: Training, held_out: Held) -> None:
    trained = {feature for example in training[level] for feature in of_kind(example, split)}
    validated = {feature for e in (*held_out[level]["valid"], *held_out[level]["T1"]) for feature in of_kind(e, split)}
    assert trained
    for example in held_out[level][split]:
        new = of_kind(example, split) - trained - validated
        assert new, (example.korean, of_kind(example, split))


@pytest.mark.parametrize("split", ["T2", "T3", "T4", "T6"])
@pytest.mark.parametrize("level", LEVELS)
def test_other_sets_hold_nothing_else_out(level: str, split: str, held_out: Held) -> None:
    grammar = Grammar(level)  # type: ignore[arg-type]
    for example in held_out[level][split]:
        kinds = grammar.held_out.kinds(
            of_kind(example, "T2"), of_kind(example, "T3"), example.constructions, of_kind(example, "T6")
        )
        assert kinds.keys() == {split}


@pytest.mark.parametrize("level", LEVELS)
def test_words_of_held_out_pairs_and_forms_are_known_apart(level: str, training: Training, held_out: Held) -> None:
    pairs = {word for e in training[level] for feature in of_kind(e, "T2") for word in feature.split("+")}
    forms = {part for e in training[level] for feature in of_kind(e, "T3") for part in feature.rsplit(" ", 1)}
    for example in held_out[level]["T2"]:
        assert {word for feature in of_kind(example, "T2") for word in feature.split("+")} <= pairs
    for example in held_out[level]["T3"]:
        assert {part for feature in of_kind(example, "T3") for part in feature.rsplit(" ", 1)} <= forms


@pytest.mark.parametrize("level", LEVELS)
def test_the_fifth_set_is_one_clause_deeper(level: str, training: Training, held_out: Held) -> None:
    assert max(len(example.frame.clauses) for example in training[level]) == 2
    assert {len(example.frame.clauses) for example in held_out[level]["T5"]} == {3}
