import re

import pytest
from hand_checked import CONJUGATIONS, COPULAS
from verb_list import VERBS

from heedful.demo.korean_morphology import ENDINGS, Verb, conjugate, copula

Form = tuple[str, str, bool, bool, str]


def rows(table: str) -> list[Form]:
    """Word, ending, honorific, past, expected."""
    forms = []
    for line in table.strip().splitlines():
        word, _, cells = line.partition(": ")
        for cell in cells.split("|"):
            before, dash, rest = cell.strip().partition("-")
            ending, _, form = rest.partition(" ")
            forms.append((word, dash + ending, "시" in before, "었" in before, form))
    return forms


def verb(header: str) -> Verb:
    parts = re.fullmatch(r"(?P<stem>.+)다(?: (?P<kind>[^형]))?(?P<adjective> 형)?", header)
    assert parts is not None, header
    return Verb(parts["stem"], parts["kind"] or "regular", adjective=parts["adjective"] is not None)  # type: ignore[arg-type]


def test_the_table_is_large_and_misses_no_ending() -> None:
    table = rows(CONJUGATIONS) + rows(COPULAS)
    assert len(table) == len({row[:4] for row in table}) >= 300
    assert {row[1] for row in table} == set(ENDINGS)


@pytest.mark.parametrize("word", dict.fromkeys(row[0] for row in rows(CONJUGATIONS)))
def test_conjugation_agrees_with_the_hand_checked_forms(word: str) -> None:
    expected = [row for row in rows(CONJUGATIONS) if row[0] == word]
    actual = [(*row[:4], conjugate(verb(word), row[1], honorific=row[2], past=row[3])) for row in expected]
    assert actual == expected


@pytest.mark.parametrize("noun", dict.fromkeys(row[0] for row in rows(COPULAS)))
def test_the_copula_agrees_with_the_hand_checked_forms(noun: str) -> None:
    expected = [row for row in rows(COPULAS) if row[0] == noun]
    actual = [(*row[:4], copula(noun, row[1], honorific=row[2], past=row[3])) for row in expected]
    assert actual == expected


@pytest.mark.parametrize("word", VERBS, ids=lambda word: word.lemma)
def test_a_polite_command_is_the_honorific_present(word: Verb) -> None:
    command = conjugate(word, "-(으)세요")
    assert command == conjugate(word, "-(으)세요", honorific=True) == conjugate(word, "-아요/어요", honorific=True)


def test_words_before_the_stem_change_nothing() -> None:
    for word in VERBS:
        after = Verb("안 " + word.stem, word.conjugation, word.adjective)
        for ending in ("-아요/어요", "-(으)면", "-는", "-ㅂ니다/습니다"):
            assert conjugate(after, ending, past=False) == "안 " + conjugate(word, ending)


def test_an_unknown_ending_is_refused_with_the_list_and_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown ending '-\(으\)먼' \(did you mean '-\(으\)면'\?\); allowed: .*-고"):
        conjugate(Verb("가"), "-(으)먼")


@pytest.mark.parametrize(
    ("word", "ending", "honorific", "past", "why"),
    [
        (Verb("가"), "-아서/어서", False, True, "takes no past"),
        (Verb("가"), "-는", False, True, "takes no past"),
        (Verb("작", adjective=True), "-(으)려고", False, False, "describes a state"),
        (Verb("가"), "-(으)ㄹ게요", True, False, "speaks of oneself"),
        (Verb("계시"), "-(으)ㄹ게요", False, False, "speaks of oneself"),
    ],
)
def test_forms_that_no_one_says_are_refused(word: Verb, ending: str, honorific: bool, past: bool, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        conjugate(word, ending, honorific=honorific, past=past)


@pytest.mark.parametrize(
    ("stem", "kind", "why"),
    [
        ("먹", "ㅂ", "먹다 cannot be of the conjugation 'ㅂ'"),
        ("부르", "ㄷ", "cannot be"),
        ("먹다", "regular", "without 다"),
        ("", "regular", "ends in Hangul"),
        ("먹", "으", "unknown conjugation"),
    ],
)
def test_impossible_verbs_are_refused(stem: str, kind: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Verb(stem, kind)  # type: ignore[arg-type]
