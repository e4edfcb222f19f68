"""What is set apart for validation: a fair share of each class, chosen by content alone, nothing on both sides."""

from __future__ import annotations

import hashlib
import random
from collections import Counter

import pytest

from heedful.data.validation_split import held_out

Examples = list[tuple[str, bytes]]


def key(text: object) -> bytes:
    return hashlib.blake2b(str(text).encode(), digest_size=8).digest()


def examples(copies: int = 1, **counts: int) -> Examples:
    return [(label, key((label, number))) for label, n in counts.items() for number in range(n)] * copies


def chosen(given: Examples, wanted: int, every: int = 10) -> Counter[str]:
    keys = held_out(given, wanted, every)
    return Counter(label for label, digest in given if digest in keys)


def test_every_class_gives_its_share() -> None:
    assert chosen(examples(a=900, b=90, c=10), 50) == {"a": 45, "b": 4, "c": 1}
    assert chosen(examples(a=900, b=90, c=10), 10_000) == {"a": 90, "b": 9, "c": 1}  # a tenth at most
    assert chosen(examples(a=900, b=90, c=10), 10_000, 20) == {"a": 45, "b": 4, "c": 1}


def test_a_rare_class_stays_in_training() -> None:
    assert chosen(examples(a=100, b=4), 1000) == {"a": 10}


def test_the_smallest_digests_of_a_class_are_taken() -> None:
    given = examples(a=100)
    assert held_out(given, 7) == set(sorted(digest for _, digest in given)[:7])


def test_no_order_matters() -> None:
    given = examples(a=100, b=50, c=7) + examples(a=20, b=3)
    before = held_out(given, 12)
    random.Random(1).shuffle(given)
    assert held_out(given, 12) == before


def test_what_stands_in_two_classes_is_never_held_out() -> None:
    both = [(label, key(number)) for label in "ab" for number in range(50)]
    keys = held_out([*both, *examples(a=20, b=30)], 1000)
    assert len(keys) == 5  # a tenth of what may be
    assert keys.isdisjoint(digest for _, digest in both)
    assert not held_out(both, 1000)


@pytest.mark.parametrize("copies", [1, 2, 3])
def test_many_small_classes_give_a_tenth_of_all_and_none_wholly(copies: int) -> None:
    small = {f"class{number}": 4 for number in range(50)}
    digests = chosen(examples(copies, **small), 5000)
    assert digests == dict.fromkeys(digests, copies)
    assert len(digests) == 20
    assert not held_out(examples(**{f"class{number}": 1 for number in range(50)}), 5000)


def test_many_copies_of_one_thing_are_passed_over_and_the_class_goes_on() -> None:
    given = examples(a=100, b=130)
    first = min(digest for label, digest in given if label == "a")
    given += [("a", first)] * 30
    assert first not in held_out(given, 5000)
    assert chosen(given, 5000) == {"a": 13, "b": 13}


def test_a_class_of_copies_takes_nothing_from_another() -> None:
    given = examples(300, a=3) + examples(b=100)
    assert chosen(given, 5000)["b"] == 10


def test_one_at_least_is_held_out_where_a_class_has_enough() -> None:
    assert chosen(examples(a=5, b=4), 1000) == {"a": 1}
    assert chosen(examples(2, a=60), 1) == {"a": 2}
    for few in (examples(a=4, b=4), examples(9, a=4), []):
        assert not held_out(few, 1000)


def test_whatever_is_given_the_share_is_kept() -> None:
    draw = random.Random(7)
    for _ in range(300):
        labels = draw.choices("abcdef", k=draw.randint(1, 6))
        things = draw.randint(1, 60)
        given = [(draw.choice(labels), key(draw.randrange(things))) for _ in range(draw.randint(10, 200))]
        wanted = draw.randint(1, 30)
        keys = held_out(given, wanted)
        apart = [label for label, digest in given if digest in keys]
        assert len(apart) <= min(wanted, len(given) // 10) or len(keys) == 1
        assert {label for label, _ in given} == {label for label, digest in given if digest not in keys}
        assert len({(label, digest) for label, digest in given if digest in keys}) == len(keys)
