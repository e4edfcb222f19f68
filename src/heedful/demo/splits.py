"""What a sentence is made of, and the held-out sets: chosen by hash before anything is sampled, so that nothing of them
can reach the training set.

T1  new sentences; every part of them is known
T2  a pair of words never seen together (읽다 + 신문)
T3  a word with an ending it was never seen with (듣다 + -(으)면)
T4  two constructions never seen in one sentence
T5  one clause more than any training sentence has
T6  a number, time, date or amount never seen

What is held out must follow from what is seen: words of several meanings stay, and so does a pair whose verb goes with
few other nouns of that kind.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from hashlib import blake2b
from itertools import combinations
from typing import Literal, get_args

from .frames import Clause, Phrase, SentenceFrame
from .korean_morphology import conjugate
from .lexicon import HE, WE, YOU, Adverb, Lexicon, Predicate
from .tables import read_yaml, split_list

_NAMES = read_yaml("constructions.yaml")
_LINKS, _NEGATIONS, _ROLES = _NAMES["links"], _NAMES["negations"], _NAMES["roles"]
_COMBINED = frozenset(split_list(_NAMES["combined"]))
PROBES = {probe: tuple(split_list(names)) for probe, names in _NAMES["probes"].items()}
"""What a report groups by: the constructions that each probe looks at."""


def constructions(sentence: SentenceFrame) -> frozenset[str]:
    """Return the names of the constructions in a sentence."""
    names: set[str] = {sentence.mood}
    if len(sentence.clauses) > 2:
        names.add("three clauses")
    for clause in _clauses(sentence):
        names.update(_of_clause(clause))
    return frozenset(names)


def lemmas(sentence: SentenceFrame) -> Iterator[str]:
    """Yield the dictionary forms of the words in a sentence."""
    for clause in _clauses(sentence):
        yield clause.predicate.lemma
        for phrase in clause.phrases():
            yield phrase.noun.korean
            if phrase.adjective:
                yield phrase.adjective.lemma
        for adjunct in clause.adjuncts:
            if isinstance(adjunct.constituent, Adverb):
                yield adjunct.constituent.korean


def word_pairs(sentence: SentenceFrame) -> Iterator[str]:
    """Yield the pairs of words that depend on each other: 읽다+책, 크다+방, 가다+학교."""
    for clause in _clauses(sentence):
        lemma = clause.predicate.lemma
        if clause.object and clause.object.noun.kind != "question":
            yield f"{lemma}+{clause.object.noun.korean}"
        elif clause.predicate.verb.adjective and clause.subject and clause.predicate.subjects:
            yield f"{lemma}+{clause.subject.noun.korean}"
        for adjunct in clause.adjuncts:
            if isinstance(adjunct.constituent, Phrase) and adjunct.role in ("to", "at"):
                yield f"{lemma}+{adjunct.constituent.noun.korean}"
        yield from (f"{part.adjective.lemma}+{part.noun.korean}" for part in clause.phrases() if part.adjective)


def quantities(sentence: SentenceFrame) -> Iterator[str]:
    """Yield numbers with their counters, times, dates and amounts: 3 개, clock 3:15."""
    for clause in _clauses(sentence):
        yield from (f"{phrase.number} {phrase.noun.counter}" for phrase in clause.phrases() if phrase.number)
        yield from _quantities(clause)


def _quantities(clause: Clause) -> Iterator[str]:
    """The times, dates and amounts that nouns and adverbs stand for."""
    yield from (phrase.noun.quantity for phrase in clause.phrases() if phrase.noun.quantity)
    for adjunct in clause.adjuncts:
        if isinstance(adjunct.constituent, Adverb) and adjunct.constituent.quantity:
            yield adjunct.constituent.quantity


def _clauses(sentence: SentenceFrame) -> Iterator[Clause]:
    for clause in sentence.clauses:
        yield clause
        for phrase in clause.phrases():
            if phrase.relative:
                yield phrase.relative


def _of_clause(clause: Clause) -> Iterator[str]:
    predicate, marks = clause.predicate, clause.predicate.marks
    holds = {
        "transitive": clause.object and predicate.particle == "을/를",
        "existence": "exist" in marks,
        "possession": "have" in marks,
        "copula": "copula" in marks,
        "weather": "weather" in marks,
        "direction": "motion" in marks,
        "adjective": predicate.verb.adjective and predicate.english.startswith("be "),
        "question word": clause.wh_role,
        "scrambled": clause.scrambled,
        "particle dropped": clause.drops_particle,
        "superlative": clause.degree == "most",
        "degree": clause.degree in ("too", "very", "really"),
        "pronoun": any(phrase.noun in (YOU, WE, HE) for phrase in clause.phrases()),
        "honorific": clause.has_elder_subject,
        "counting": any(phrase.number for phrase in clause.phrases()),
        "attributive": any(phrase.adjective for phrase in clause.phrases()),
        "relative": any(phrase.relative for phrase in clause.phrases()),
    }
    yield from (name for name, present in holds.items() if present)
    if clause.tense != "present":
        yield clause.tense
    if clause.modal or clause.now:
        yield clause.modal or "progressive"
    if clause.negation:
        yield "negation" if clause.modal == "can" else _NEGATIONS[clause.negation]
    if clause.link:
        yield _LINKS[clause.link]
    yield from (_ROLES[adjunct.role] for adjunct in clause.adjuncts if adjunct.role in _ROLES)
    yield from (quantity.split(" ")[0] for quantity in _quantities(clause))


# Held-out sets

Split = Literal["train", "valid", "T1", "T2", "T3", "T4", "T5", "T6"]
SPLITS: tuple[Split, ...] = get_args(Split)

_OF_A_THOUSAND: dict[Split, int] = {"T2": 80, "T3": 45, "T4": 60, "T6": 120}
_VALID, _T1 = 40, 60
_PARTNERS = 4  # a word must keep others to be learned from
_NOT_LEMMAS = ("있다", "없다", "이다", "아니다")


def bucket(text: str) -> int:
    """Return a number below 1000 that depends only on the text, the same on every machine."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "big") % 1000


@lru_cache(None)
def _is_held_out(split: Split, feature: str) -> bool:
    return bucket(feature) < _OF_A_THOUSAND[split]


class HeldOut:
    """Decides which features of one level are held out of training."""

    def __init__(self, vocabulary: Lexicon) -> None:
        predicates = vocabulary.with_arguments
        self._partners: Counter[str] = Counter()
        self._alike: Counter[tuple[str, str]] = Counter()  # a predicate, and how many nouns of a kind it goes with
        self._kinds: dict[str, str] = {}
        for predicate in predicates:
            for noun in {*predicate.objects, *predicate.subjects, *predicate.places}:
                self._partners.update((predicate.lemma, noun.korean))
                self._alike[predicate.lemma, noun.kind] += 1
                self._kinds[noun.korean] = noun.kind
        self._ambiguous = _ambiguous(predicates)
        self._common = vocabulary.common
        self.pair, self.form = lru_cache(None)(self._pair), lru_cache(None)(self._form)

    def kinds(
        self, pairs: Iterable[str], forms: Iterable[str], constructions: frozenset[str], quantities: Iterable[str]
    ) -> dict[Split, list[str]]:
        """Return the held-out sets of a sentence, each with the features that cause it; empty for training."""
        held_out: dict[Split, list[str]] = {
            "T2": list(filter(self.pair, pairs)),
            "T3": list(filter(self.form, forms)),
            "T4": [pair for pair in construction_pairs(constructions) if _is_held_out("T4", f"constructions {pair}")],
            "T6": [quantity for quantity in quantities if _is_held_out("T6", f"quantity {quantity}")],
        }
        return {split: features for split, features in held_out.items() if features}

    def _pair(self, pair: str) -> bool:
        pair_lemmas = pair.split("+")
        if any(word in self._ambiguous or self._partners[word] < _PARTNERS for word in pair_lemmas):
            return False
        kind = self._kinds.get(pair_lemmas[-1], "")
        return self._alike[pair_lemmas[0], kind] >= _PARTNERS and _is_held_out("T2", f"pair {pair}")

    def _form(self, form: str) -> bool:
        lemma = form.split(" -")[0]
        if lemma in self._ambiguous or lemma in self._common or lemma.startswith(_NOT_LEMMAS):
            return False
        return _is_held_out("T3", f"form {form}")


def _ambiguous(predicates: Iterable[Predicate]) -> set[str]:
    """Return words of several meanings (모자를, 편지를 쓰다), and those that share a form (살 거예요: 사다, 살다).

    Their meaning depends on the words beside them, so it could not be inferred in an unseen combination.
    """
    meanings: dict[str, set[str]] = {}
    lemmas: dict[str, set[str]] = {}
    for predicate in predicates:
        meanings.setdefault(predicate.lemma, set()).add(predicate.english)
        lemmas.setdefault(conjugate(predicate.verb, "-(으)ㄹ"), set()).add(predicate.lemma)
    several = {lemma for lemma, senses in meanings.items() if len(senses) > 1}
    return several.union(*(homonyms for homonyms in lemmas.values() if len(homonyms) > 1))


def construction_pairs(constructions: frozenset[str]) -> Iterator[str]:
    """Yield the pairs of constructions in a sentence that can be held out."""
    for first, second in combinations(sorted(constructions & _COMBINED), 2):
        yield f"{first} + {second}"


def split_of(english: str) -> Split:
    """Return the split of a sentence of known parts. All Korean sentences with one meaning go together."""
    place = bucket(f"sentence {english}")
    return "valid" if place < _VALID else "T1" if place < _VALID + _T1 else "train"
