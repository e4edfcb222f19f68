"""The course level: what it adds to the demo's words, measured against the hand-written first-contact sentences."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from heedful.demo import Grammar, ParallelExample, lint, out_of_vocabulary, splits
from heedful.demo.course import CourseSampler, first_contact_sentences
from heedful.demo.english_realization import EnglishRealizer
from heedful.demo.experiment import DirectionAdapter
from heedful.demo.frames import Clause, Phrase, SentenceFrame, SpeechLevel
from heedful.demo.korean_realization import KoreanRealizer
from heedful.demo.lexicon import lexicon
from heedful.demo.splits import HeldOut
from heedful.demo.tables import read_yaml, split_list

DRAWS = 40_000


@pytest.fixture(scope="module")
def course() -> list[ParallelExample]:
    return list(Grammar("course").sample(15_000))


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    """The English of each Korean sentence, before any split; no sentence has two."""
    sampler, answers = CourseSampler(Random("function")), dict[str, str]()
    for _ in range(DRAWS):
        frame = sampler.draw()
        english = EnglishRealizer(frame).text()
        assert answers.setdefault(KoreanRealizer(frame).text(), english) == english
    return answers


def test_what_the_grammar_draws_is_translated_as_by_hand(drawn: dict[str, str]) -> None:
    by_hand = {
        text: row.english[0] for row in first_contact_sentences() for text in row.korean if row.kind == "grammar"
    }
    both = by_hand.keys() & drawn.keys()
    assert len(both) > 60
    assert {text: drawn[text] for text in both} == {text: by_hand[text] for text in both}


def test_the_first_contact_sentences_are_within_the_words_of_the_level() -> None:
    rows = first_contact_sentences()
    assert len({text for row in rows for text in row.korean}) == sum(len(row.korean) for row in rows) > 340
    for row in rows:
        assert all(text[-1] in ".?!" for text in (*row.korean, *row.english))
        if row.kind == "grammar":
            assert not [word for text in (*row.korean, *row.english[:1]) for word in out_of_vocabulary(text, "course")]
            assert not [fault for text in row.korean for fault in lint(text)]


def test_the_course_has_the_words_that_its_table_names() -> None:
    words = lexicon("course")
    chosen = [word for word in split_list(read_yaml("course.yaml")["words"]) if word not in words.lemmas]
    assert chosen == []
    assert set(lexicon("demo").lemmas) < set(words.lemmas)
    assert "딥러닝" not in lexicon("full").nouns
    assert words.common <= {*words.by_lemma}


def test_no_form_of_a_common_word_is_held_out() -> None:
    course, demo = HeldOut(lexicon("course")), HeldOut(lexicon("demo"))
    forms = [f"비싸다 {ending}" for ending in ("-ㄴ다/는다", "-아서/어서", "-지", "-아요/어요")]
    assert any(map(demo.form, forms))
    assert not any(map(course.form, forms))


def test_sentences_are_clean_and_stay_inside_the_words(course: list[ParallelExample]) -> None:
    levels: Counter[str] = Counter()
    for example in course:
        levels[example.level] += 1
        assert not lint(example.korean), example.korean
        assert not out_of_vocabulary(example.korean, "course"), example.korean
        assert not out_of_vocabulary(example.english, "course"), example.english
        assert splits.split_of(example.english) == "train"
    assert min(levels[level] for level in ("해요", "합쇼", "해", "한다")) > 1000


def test_every_word_is_met_often_enough(course: list[ParallelExample]) -> None:
    met = Counter(lemma for example in course for lemma in set(splits.lemmas(example.frame)))
    assert [word for word in Grammar("course").vocabulary() if met[word] < 8] == []


def test_alignments_cover_every_word(course: list[ParallelExample]) -> None:
    silent = {"i", "you", "it", "there", "we", "that", "who", "he", "she", "do", "they"}
    for example in course[:5000]:
        korean, english = example.korean.split(" "), example.english.split(" ")
        assert {i for i, _ in example.alignment} == set(range(len(korean))), (example.korean, example.english)
        missing = {english[j].strip(".?,").lower() for j in range(len(english))} - {
            english[j].strip(".?,").lower() for _, j in example.alignment
        }
        assert missing <= silent, (example.korean, example.english, missing)


def test_korean_answers_that_are_right_too() -> None:
    grammar, words = Grammar("course"), lexicon("course")
    verbs = {verb.lemma: verb for verb in (*words.verbs, *words.adjectives)}
    street, animal, student, teacher = (words.nouns[noun] for noun in ("길", "동물", "학생", "선생님"))
    reason = Clause(verbs["넓다"], Phrase(street), degree="too", link="-아서/어서", tense="past")
    main = Clause(verbs["건너다"], Phrase(animal), Phrase(street), negation="지", tense="past", topic=True)
    waited = Clause(verbs["기다리다"], Phrase(replace(teacher, elder=False)), Phrase(student), tense="past")

    def right(level: SpeechLevel, *clauses: Clause) -> set[str]:
        frame = SentenceFrame(level, "statement", list(clauses))
        return set(next(e for split in splits.SPLITS if (e := grammar._example(frame, split))).accepted_korean)

    assert right("한다", reason, main) >= {
        "길이 너무 넓어서 동물은 길을 건너지 않았다.",
        "동물은 길이 너무 넓어서 길을 건너지 않았다.",
        "동물은 길이 너무 넓어서 건너지 않았다.",
        "동물은 길이 너무 넓어서 안 건넜다.",
    }
    assert right("해요", waited) >= {"선생님이 학생을 기다렸어요.", "선생님께서 학생을 기다리셨어요."}


def test_fixed_expressions_are_trained_on_in_every_wording_and_other_sentences_are_not() -> None:
    for direction in ("ko-en", "en-ko"):
        adapter = DirectionAdapter(direction)
        rows = [row.rstrip("\n").split("\t") for row in adapter.fixed_rows()]
        sources = {source for source, _ in rows}
        assert adapter.first_contact("fixed").keys() <= sources
        assert not adapter.first_contact("grammar").keys() - adapter.first_contact("fixed").keys() & sources
    assert ["Thank you.", "감사합니다."] in rows
    assert ["[casual] Thanks", "고마워."] in rows
