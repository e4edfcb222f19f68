from __future__ import annotations

import pytest

from heedful.demo import english_morphology as forms


@pytest.mark.parametrize(
    ("verb", "third", "past", "ing"),
    [
        ("go", "goes", "went", "going"),
        ("study", "studies", "studied", "studying"),
        ("play", "plays", "played", "playing"),
        ("wash", "washes", "washed", "washing"),
        ("make", "makes", "made", "making"),
        ("swim", "swims", "swam", "swimming"),
        ("see", "sees", "saw", "seeing"),
        ("have", "has", "had", "having"),
        ("open", "opens", "opened", "opening"),
        ("chase", "chases", "chased", "chasing"),
    ],
)
def test_verbs(verb: str, third: str, past: str, ing: str) -> None:
    assert (forms.third(verb), forms.past(verb), forms.ing(verb)) == (third, past, ing)


@pytest.mark.parametrize(
    ("noun", "plural", "article"),
    [
        ("apple", "apples", "an"),
        ("box", "boxes", "a"),
        ("story", "stories", "a"),
        ("toy", "toys", "a"),
        ("child", "children", "a"),
        ("knife", "knives", "a"),
        ("bus stop", "bus stops", "a"),
        ("umbrella", "umbrellas", "an"),
        ("university", "universities", "a"),
        ("hour", "hours", "an"),
    ],
)
def test_nouns(noun: str, plural: str, article: str) -> None:
    assert (forms.plural(noun), forms.article(noun)) == (plural, article)


@pytest.mark.parametrize(
    ("adjective", "more", "most"),
    [
        ("big", "bigger", "the biggest"),
        ("small", "smaller", "the smallest"),
        ("easy", "easier", "the easiest"),
        ("expensive", "more expensive", "the most expensive"),
        ("difficult", "more difficult", "the most difficult"),
        ("good", "better", "the best"),
        ("noisy", "noisier", "the noisiest"),
        ("cheap", "cheaper", "the cheapest"),
        ("clean", "cleaner", "the cleanest"),
        ("famous", "more famous", "the most famous"),
        ("important", "more important", "the most important"),
        ("boring", "more boring", "the most boring"),
        ("hot", "hotter", "the hottest"),
        ("quiet", "quieter", "the quietest"),
    ],
)
def test_degrees(adjective: str, more: str, most: str) -> None:
    assert " ".join(forms.comparative(adjective)) == more
    assert " ".join(forms.superlative(adjective)) == most


def test_numbers() -> None:
    assert [forms.in_words(n) for n in (1, 12, 20, 35, 99)] == ["one", "twelve", "twenty", "thirty-five", "ninety-nine"]
    with pytest.raises(ValueError, match="0 to 99"):
        forms.in_words(100)
