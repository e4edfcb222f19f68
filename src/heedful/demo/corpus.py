"""The corpus: a grammar that draws examples, with all accepted answers in both languages, alignment and features."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import islice, product
from random import Random

from ..errors import DataError, unknown
from . import frames as f
from . import splits
from .course import CourseSampler
from .english_realization import EnglishRealizer, Style, is_message
from .frames import Clause, Negation, Phrase, SentenceFrame, SpeechLevel, Token
from .inventory import inventory
from .korean_realization import KoreanRealizer
from .lexicon import FANCY, I, Level, lexicon
from .sentences import SentenceSampler, is_topic, may_drop_particle, may_scramble
from .splits import SPLITS, HeldOut, Split
from .tables import read_rows

TAGS: dict[SpeechLevel, str] = {"해요": "", "합쇼": "[formal] ", "해": "[casual] ", "한다": "[plain] "}
_MIN_SOURCES = 20
_MAX_MISSES = 200_000  # draws without a new sentence before giving up


@dataclass(frozen=True, slots=True)
class ParallelExample:
    """A Korean sentence and its English, with gold word alignment (words are separated by spaces)."""

    korean: str
    english: str
    alignment: tuple[tuple[int, int], ...]
    constructions: frozenset[str]
    features: frozenset[str]
    held_out: tuple[str, ...]  # the features that put it into a held-out set
    level: SpeechLevel
    frame: SentenceFrame = field(repr=False, compare=False)

    @property
    def accepted(self) -> tuple[str, ...]:
        """Every English answer that is right, the canonical one first."""
        readings = [self.frame, *_progressive_reading(self.frame)]
        texts = [EnglishRealizer(reading, style).text() for reading in readings for style in STYLES]
        if self.frame.mood == "command" and len(self.frame.clauses) == 1:
            texts += [f"Please {text[0].lower()}{text[1:]}" for text in texts]
        if self.frame.mood == "statement":
            texts += [_contract(text) for text in texts]
        return tuple(dict.fromkeys(texts))

    @property
    def accepted_korean(self) -> tuple[str, ...]:
        """Every Korean sentence of this level that is right for the English, this one first."""
        choices = product(*(_clause_variants(clause, self.frame) for clause in self.frame.clauses))
        sentences = (replace(self.frame, clauses=list(clauses)) for clauses in islice(choices, _MAX_VARIANTS))
        return tuple(dict.fromkeys(KoreanRealizer(variant).text() for variant in (self.frame, *sentences)))

    @property
    def plain_korean(self) -> str:
        """The plainest of the accepted Korean sentences, which a translator is to learn.

        저는 is said, the object stands after it with its particle, and what is not done is 안 in speech and -지 않다 in
        writing.
        """
        plainest = [
            min(_clause_variants(clause, self.frame), key=lambda variant: _fanciness(variant, self.level))
            for clause in self.frame.clauses
        ]
        return KoreanRealizer(replace(self.frame, clauses=plainest)).text()

    @property
    def tagged_english(self) -> str:
        """The English with the speech level the Korean has; 해요체 needs no tag."""
        return TAGS[self.level] + self.english


@lru_cache(1)
def handwritten_sentences() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return one hundred sentences that the grammar did not make: (korean, accepted English answers)."""
    rows = read_rows("handwritten.tsv", "korean", "answers")
    return tuple((row["korean"], tuple(row["answers"].split(" | "))) for row in rows)


class Grammar:
    """Draws examples of a level: the demo's few hundred words, or all of them."""

    def __init__(self, level: Level = "demo", seed: int = 0) -> None:
        self.level, self.seed = level, seed
        self.held_out = HeldOut(lexicon(level))

    def vocabulary(self) -> tuple[str, ...]:
        """Return every Korean word of the level in its dictionary form."""
        return lexicon(self.level).lemmas

    def n_sentences(self) -> int:
        """Return a lower bound: single events in all tenses, and the same done by two people to two objects."""
        choices = inventory(self.level)
        actors, levels = len(choices.others.items) + 2, len(TAGS)
        times = {tense: 1 + len(choice.items) for tense, choice in choices.times.items()}
        tensed = 4 * times["past"] + 2 * times["future"] + 4 * times["habit"]  # with and without a negation
        total = 0
        for verb in choices.lexicon.verbs:
            if not verb.marks & {"animals", "machines", "state", "done"}:
                n_objects = sum(1 + 9 * bool(n.counter) + len(choices.attributes.get(n, ())) for n in verb.objects)
                variants = 3 * levels - 1 if n_objects else levels  # scrambled; with the particle dropped
                total += max(n_objects, 1) * actors * tensed * (1 + len(verb.places) + len(verb.adverbs)) * variants
                total += (actors * len(verb.objects)) ** 2 * 4 * levels  # -고 and -지만, habit and past
        return total

    def sample(self, n: int, split: Split = "train") -> Iterator[ParallelExample]:
        """Yield n examples of a split; level, split and seed determine them. All differ, except in training.

        Training repeats short sentences as often as the grammar draws them, or rare shapes would be hard to learn.
        No single feature causes more than a twentieth of T2 or T3, so that their scores cover many features.

        Raises:
            DataError: the split is unknown, or the grammar has fewer than n sentences for it.
        """
        if split not in SPLITS:
            raise DataError(unknown("split", split, SPLITS))
        random = Random(f"{self.level} {split} {self.seed}")
        sampler = CourseSampler(random) if self.level == "course" else SentenceSampler(self.level, random)
        draw = sampler.draw_deeper if split == "T5" else sampler.draw
        seen: set[str] = set()
        behind: Counter[str] = Counter()
        drawn = misses = 0
        while drawn < n:
            example = self._example(draw(), split)
            frequent = example is not None and any(behind[name] * _MIN_SOURCES >= n for name in example.held_out)
            if example is None or example.korean in seen or frequent:
                misses += 1
                if misses > _MAX_MISSES:
                    had = f"the {self.level} grammar has only {drawn} sentences for {split}"
                    raise DataError(f"{had}, not {n}; ask for fewer")
                continue
            if split != "train":
                seen.add(example.korean)
                behind.update(example.held_out if split in ("T2", "T3") else ())
            drawn, misses = drawn + 1, 0
            yield example

    def _example(self, sentence: SentenceFrame, split: Split) -> ParallelExample | None:
        """Return the sentence in both languages if it belongs to the split, else None."""
        korean = KoreanRealizer(sentence)
        pairs, quantities = tuple(splits.word_pairs(sentence)), tuple(splits.quantities(sentence))
        constructions = splits.constructions(sentence)
        kinds = self.held_out.kinds(pairs, korean.forms, constructions, quantities)
        trained_parts = split in ("train", "valid", "T1", "T5")
        if kinds.keys() != (set() if trained_parts else {split}):
            return None
        english = EnglishRealizer(sentence)
        text = english.text()
        if trained_parts and split != "T5" and splits.split_of(text) != split:
            return None
        alignment, features = _align(korean.tokens, english.tokens), frozenset((*pairs, *korean.forms, *quantities))
        source, held_out = korean.text(), tuple(kinds.get(split, ()))
        return ParallelExample(source, text, alignment, constructions, features, held_out, sentence.level, sentence)


def _align(korean: list[Token], english: list[Token]) -> tuple[tuple[int, int], ...]:
    """Align words that express the same part of the frame; a part that one side lacks goes to its neighbor."""
    korean_places, english_places = _by_key(korean), _by_key(english)
    pairs = {(i, j) for j, (_, key) in enumerate(english) for i in _nearest(korean_places, key)}
    spoken = {i for i, _ in pairs}
    pairs.update((i, j) for i, (_, key) in enumerate(korean) if i not in spoken for j in _nearest(english_places, key))
    return tuple(sorted(pairs))


def _by_key(tokens: list[Token]) -> dict[int, list[int]]:
    places: dict[int, list[int]] = {}
    for place, (_, key) in enumerate(tokens):
        places.setdefault(key, []).append(place)
    return places


def _nearest(places: dict[int, list[int]], key: int) -> list[int]:
    """Return where a key or its neighbor stands: in the verb, in the noun before 이다, in the number of a counter."""
    if key in places or key < 0:
        return places.get(key, [])
    decade, clause = key - key % 10, key - key % f.CLAUSE
    inside = (f.MODAL, f.NEGATION, f.TENSE, f.VERB, f.OBJECT) if decade == clause else (f.NUMBER, f.HEAD)
    start = clause if decade == clause else decade
    return next((places[start + part] for part in inside if start + part in places), places.get(clause + f.VERB, []))


# Where more than one answer is right: the English ones of a frame, and the Korean ones on its speech level

_MAX_VARIANTS = 64
STYLES = [Style(*flags) for flags in product((True, False), (False, True), (False, True), (False, True))]
_CONTRACTIONS = {
    "I am": "I'm", "You are": "You're", "We are": "We're", "He is": "He's",
    "It is": "It's", "it is": "it's", "he is": "he's", "she is": "she's",
    "I will": "I'll", "he will": "he'll", "she will": "she'll", "(have|has) to": "must",
}  # fmt: skip


def _contract(text: str) -> str:
    for written, spoken in _CONTRACTIONS.items():
        text = re.sub(rf"\b{written} ", f"{spoken} ", text)
    return text


def _progressive_reading(sentence: SentenceFrame) -> list[SentenceFrame]:
    """Return the progressive reading of a habit: 책을 읽어요 can mean both."""
    clause = sentence.clauses[0]
    lasting = clause.predicate.marks & {"state", "moment"} or clause.predicate.verb.adjective
    fixed = lasting or clause.negation == "못" or clause.has_role("when", "often")
    if len(sentence.clauses) > 1 or not clause.habit or fixed:
        return []
    return [replace(sentence, clauses=[replace(clause, habit=False, now=True)])]


def _clause_variants(clause: Clause, sentence: SentenceFrame) -> list[Clause]:
    variants = [clause]
    for vary in (*(_negations, _subjects, _progressives, _orders, _particles, _reasons, _elders, _likings),):
        variants += [other for variant in variants for other in vary(variant, sentence)]
    return variants


def _fanciness(clause: Clause, level: SpeechLevel) -> int:
    """Return how many things of a clause could be said more plainly."""
    noun, is_spoken = clause.subject.noun if clause.subject else None, level in ("해요", "해")
    lasting = (
        clause.now and clause.modal == "" and "weather" not in clause.predicate.marks
    )  # 책을 읽고 있어요, 비가 와요
    return sum(
        (
            *(clause.scrambled, clause.drops_particle, clause.predicate is FANCY, lasting),
            *(not clause.fronted, not clause.drops_object, clause.person == "I" and noun is None),
            *(clause.negation == ("지" if is_spoken else "안"), noun is not None and bool(_elders(clause))),
        )
    )


def _negations(clause: Clause, _: SentenceFrame) -> list[Clause]:
    """안 가요 and 가지 않아요; 못 가요 and 갈 수 없어요."""
    if clause.modal == "can" and clause.negation == "못":
        return [replace(clause, modal="")] if clause.predicate.lemma != "이해하다" else []
    if clause.modal in ("", "want") and clause.negation == "못":
        return [replace(clause, modal="can")]
    swapped: dict[str, Negation] = {"안": "지", "지": "안"}
    short = not clause.predicate.verb.adjective or len(clause.predicate.lemma) <= 3
    return [replace(clause, negation=swapped[clause.negation])] if clause.negation in swapped and short else []


def _subjects(clause: Clause, sentence: SentenceFrame) -> list[Clause]:
    """Express or drop 저는, unless a program speaks."""
    message = sentence.level == "합쇼" and is_message(replace(clause, subject=None))
    fixed = clause.shares_subject or clause.fronted or clause.predicate is FANCY or message
    if clause.person != "I" or fixed or sentence.mood != "statement":
        return []
    if clause.subject is None:
        return [replace(clause, subject=Phrase(I), topic=True)]
    if clause.subject.noun is not I:
        return []
    return [replace(clause, subject=None, topic=False, scrambled=False)]


def _progressives(clause: Clause, _: SentenceFrame) -> list[Clause]:
    """지금 읽어요 and 지금 읽고 있어요."""
    return [replace(clause, modal="progressive")] if clause.now and not clause.negation else []


def _orders(clause: Clause, sentence: SentenceFrame) -> list[Clause]:
    if clause.scrambled:
        plain = replace(clause, scrambled=False)
        return [replace(plain, topic=is_topic(plain))]
    movable = len(sentence.clauses) == 1 and _has_marked_object(clause) and may_scramble(clause)
    return [replace(clause, scrambled=True, topic=False, drops_particle=False)] if movable else []


def _particles(clause: Clause, sentence: SentenceFrame) -> list[Clause]:
    if clause.drops_particle:
        return [replace(clause, drops_particle=False)]
    spoken = sentence.level != "합쇼" and not clause.scrambled
    droppable = spoken and _has_marked_object(clause) and may_drop_particle(clause)
    return [replace(clause, drops_particle=True)] if droppable else []


def _reasons(clause: Clause, sentence: SentenceFrame) -> list[Clause]:
    """길이 너무 넓어서 동물은 건너지 않았다 and 동물은 길이 너무 넓어서 길을 건너지 않았다."""
    reason = sentence.reason
    if reason is None or clause is reason or clause.shares_subject:
        return []
    flags = product((False, True) if clause.subject else (False,), (False, True))
    return [replace(clause, fronted=fronted, drops_object=drops) for fronted, drops in flags]


def _likings(clause: Clause, _: SentenceFrame) -> list[Clause]:
    """저는 커피가 좋아요 and 저는 커피를 좋아해요; on the course level, which has both."""
    like = lexicon("course").by_lemma["좋아하다"]
    course = clause.object is not None and clause.object.noun in like.objects
    return [replace(clause, predicate=like)] if clause.predicate is FANCY and course else []


def _elders(clause: Clause, _: SentenceFrame | None = None) -> list[Clause]:
    """Return the clause with the honorific that its subject lacks."""
    noun = clause.subject.noun if clause.subject else None
    elder = lexicon("course").nouns.get(noun.korean) if noun else None
    if clause.subject is None or noun is None or elder is None or elder.elder == noun.elder or noun.elder:
        return []
    return [replace(clause, subject=replace(clause.subject, noun=elder))]


def _has_marked_object(clause: Clause) -> bool:
    return clause.object is not None and clause.predicate.particle == "을/를"
