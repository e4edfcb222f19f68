"""The corpus: a grammar that draws examples, each with both languages, its alignment and its features."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import get_args

from heedful.data.grammar import features
from heedful.data.grammar.choices import inventory
from heedful.data.grammar.frames import (
    CLAUSE,
    HEAD,
    MODAL,
    NEGATION,
    NUMBER,
    OBJECT,
    TENSE,
    VERB,
    Sentence,
    SpeechLevel,
    Word,
)
from heedful.data.grammar.lexicon import Level, lexicon
from heedful.data.grammar.sentences import SentenceSampler
from heedful.data.grammar.splits import SPLITS, HeldOut, Split, of_sentence
from heedful.data.grammar.to_english import EnglishWriter
from heedful.data.grammar.to_korean import KoreanWriter
from heedful.data.grammar.variants import english_variants, korean_variants
from heedful.errors import DataError, unknown

TAGS: dict[SpeechLevel, str] = {"해요": "", "합쇼": "[formal] ", "해": "[casual] "}
_MANY = 20
_PATIENCE = 200_000  # draws without a new sentence before giving up


@dataclass(frozen=True, slots=True)
class Example:
    """A Korean sentence and its English, with gold word alignment (words are what spaces separate)."""

    korean: str
    english: str
    alignment: tuple[tuple[int, int], ...]
    constructions: frozenset[str]
    features: frozenset[str]
    held_out: tuple[str, ...]  # the features that put it into a held-out set
    level: SpeechLevel
    frame: Sentence = field(repr=False, compare=False)

    @property
    def accepted(self) -> tuple[str, ...]:
        """Every English answer that is right, the canonical one first."""
        return english_variants(self.frame)

    @property
    def accepted_korean(self) -> tuple[str, ...]:
        """Every Korean sentence of this level that is right for the English, this one first."""
        return korean_variants(self.frame)

    @property
    def tagged_english(self) -> str:
        """The English with the speech level the Korean has; 해요체 needs no tag."""
        return TAGS[self.level] + self.english


class Grammar:
    """Draws examples of a level: the demo's few hundred words, or all of them."""

    def __init__(self, level: Level = "demo", seed: int = 0) -> None:
        if level not in get_args(Level):
            raise DataError(unknown("level of the grammar", level, get_args(Level)))
        self.level, self.seed = level, seed
        self.held_out = HeldOut(lexicon(level))

    def vocabulary(self) -> tuple[str, ...]:
        """Every Korean word of the level, in its dictionary form."""
        return lexicon(self.level).lemmas

    def n_sentences(self) -> int:
        """An estimate from below: single events in their tenses, and the same done by two people to two things."""
        stock = inventory(self.level)
        actors, levels = len(stock.others.items) + 2, len(TAGS)
        times = {tense: 1 + len(choice.items) for tense, choice in stock.times.items()}
        said = 4 * times["past"] + 2 * times["future"] + 4 * times["habit"]  # with and without a negation
        total = 0
        for verb in stock.words.verbs:
            if not verb.marks & {"animals", "machines", "state", "done"}:
                things = sum(1 + 9 * bool(noun.counter) + len(stock.attributes.get(noun, ())) for noun in verb.objects)
                spoken = 3 * levels - 1 if things else levels  # scrambled; with the particle dropped
                total += max(things, 1) * actors * said * (1 + len(verb.places) + len(verb.adverbs)) * spoken
                total += (actors * len(verb.objects)) ** 2 * 4 * levels  # -고 and -지만, habit and past
        return total

    def sample(self, n: int, split: Split = "train") -> Iterator[Example]:
        """n examples of a split, the same for the same level, split and seed; all different, except in training.

        Training sees short sentences as often as the grammar makes them, or rare shapes would be hard to learn.
        No one word is behind more than a twentieth of T2 or T3, so that their scores are of many.
        """
        if split not in SPLITS:
            raise DataError(unknown("split", split, SPLITS))
        sampler = SentenceSampler(self.level, Random(f"{self.level} {split} {self.seed}"))
        draw = sampler.draw_deeper if split == "T5" else sampler.draw
        seen: set[str] = set()
        behind: Counter[str] = Counter()
        drawn = misses = 0
        while drawn < n:
            example = self._example(draw(), split)
            if example is None or example.korean in seen or any(behind[name] * _MANY >= n for name in example.held_out):
                misses += 1
                if misses > _PATIENCE:
                    raise DataError(
                        f"the {self.level} grammar has only {drawn} sentences for {split}, not {n}; ask for fewer"
                    )
                continue
            if split != "train":
                seen.add(example.korean)
                behind.update(example.held_out if split in ("T2", "T3") else ())
            drawn, misses = drawn + 1, 0
            yield example

    def _example(self, sentence: Sentence, split: Split) -> Example | None:
        """The sentence in both languages, if it belongs to the split."""
        korean = KoreanWriter(sentence)
        pairs, quantities = tuple(features.pairs(sentence)), tuple(features.quantities(sentence))
        constructions = features.constructions(sentence)
        kinds = self.held_out.kinds(pairs, korean.forms, constructions, quantities)
        known_parts = split in ("train", "valid", "T1", "T5")
        if kinds.keys() != (set() if known_parts else {split}):
            return None
        english = EnglishWriter(sentence)
        text = english.text()
        if known_parts and split != "T5" and of_sentence(text) != split:
            return None
        return Example(
            korean.text(),
            text,
            _align(korean.words, english.words),
            constructions,
            frozenset((*pairs, *korean.forms, *quantities)),
            tuple(kinds.get(split, ())),
            sentence.level,
            sentence,
        )


def _align(korean: list[Word], english: list[Word]) -> tuple[tuple[int, int], ...]:
    """Words that express the same part of the frame; a part that one side does not say apart is looked for nearby."""
    places, words = _by_key(korean), _by_key(english)
    pairs = {(i, j) for j, (_, key) in enumerate(english) for i in _nearest(places, key)}
    spoken = {i for i, _ in pairs}
    pairs.update((i, j) for i, (_, key) in enumerate(korean) if i not in spoken for j in _nearest(words, key))
    return tuple(sorted(pairs))


def _by_key(words: list[Word]) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for place, (_, key) in enumerate(words):
        places.setdefault(key, []).append(place)
    return places


def _nearest(places: dict[int, list[int]], key: int) -> list[int]:
    """Where a key stands, or its neighbour: in the verb, in the noun before 이다, in the number before a counter."""
    if key in places or key < 0:
        return places.get(key, [])
    decade, clause = key - key % 10, key - key % CLAUSE
    inside = (MODAL, NEGATION, TENSE, VERB, OBJECT) if decade == clause else (NUMBER, HEAD)
    start = clause if decade == clause else decade
    return next((places[start + part] for part in inside if start + part in places), places.get(clause + VERB, []))
