"""Where more than one answer is right: the English ones of a frame, and the Korean ones on its speech level."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import islice, product

from heedful.data.grammar.frames import Clause, Negation, Phrase, Sentence
from heedful.data.grammar.lexicon import FANCY, I
from heedful.data.grammar.sentences import is_topic, may_drop, may_scramble
from heedful.data.grammar.to_english import EnglishWriter, Style, is_message
from heedful.data.grammar.to_korean import KoreanWriter

_AT_MOST = 64


_STYLES = [Style(*flags) for flags in product((True, False), (False, True), (False, True), (False, True))]
_CONTRACTIONS = {
    "I am": "I'm", "You are": "You're", "It is": "It's", "it is": "it's", "he is": "he's", "she is": "she's",
    "I will": "I'll", "he will": "he'll", "she will": "she'll", "(have|has) to": "must",
}  # fmt: skip


def english_variants(sentence: Sentence) -> tuple[str, ...]:
    """Every accepted English sentence, the canonical one first."""
    readings = [sentence, *_going_on(sentence)]
    found = [EnglishWriter(reading, style).text() for reading in readings for style in _STYLES]
    if sentence.mood == "command" and len(sentence.clauses) == 1:
        found += [f"Please {text[0].lower()}{text[1:]}" for text in found]
    if sentence.mood == "statement":
        found += [_contract(text) for text in found]
    return tuple(dict.fromkeys(found))


def _contract(text: str) -> str:
    for written, spoken in _CONTRACTIONS.items():
        text = re.sub(rf"\b{written} ", f"{spoken} ", text)
    return text


def _going_on(sentence: Sentence) -> list[Sentence]:
    """책을 읽어요 is read as a habit; it may also be going on now."""
    clause = sentence.clauses[0]
    marks, roles = clause.predicate.marks, [extra.role for extra in clause.extras]
    lasting = "state" in marks or "moment" in marks or clause.predicate.verb.adjective
    if (
        len(sentence.clauses) > 1
        or not clause.habit
        or lasting
        or clause.negation == "못"
        or {"when", "often"} & {*roles}
    ):
        return []
    return [replace(sentence, clauses=[replace(clause, habit=False, now=True)])]


def korean_variants(sentence: Sentence) -> tuple[str, ...]:
    """Every accepted Korean sentence, the given one first."""
    choices = [_clause_variants(clause, sentence) for clause in sentence.clauses]
    sentences = (replace(sentence, clauses=list(clauses)) for clauses in islice(product(*choices), _AT_MOST))
    return tuple(dict.fromkeys(KoreanWriter(variant).text() for variant in (sentence, *sentences)))


def _clause_variants(clause: Clause, sentence: Sentence) -> list[Clause]:
    found = [clause]
    for vary in (_negations, _subjects, _progressives, _orders, _particles):
        found += [variant for known in found for variant in vary(known, sentence)]
    return found


def _negations(clause: Clause, _: Sentence) -> list[Clause]:
    """안 가요 and 가지 않아요; 못 가요 and 갈 수 없어요."""
    if clause.modal == "can" and clause.negation == "못":
        return [replace(clause, modal="")] if clause.predicate.lemma != "이해하다" else []
    if clause.modal in ("", "want") and clause.negation == "못":
        return [replace(clause, modal="can")]
    swapped: dict[str, Negation] = {"안": "지", "지": "안"}
    short = not clause.predicate.verb.adjective or len(clause.predicate.lemma) <= 3
    return [replace(clause, negation=swapped[clause.negation])] if clause.negation in swapped and short else []


def _subjects(clause: Clause, sentence: Sentence) -> list[Clause]:
    """저는 may be said or left out, unless a program speaks."""
    told = sentence.level == "합쇼" and is_message(replace(clause, subject=None))
    if clause.person != "I" or clause.shared or clause.predicate is FANCY or told or sentence.mood != "statement":
        return []
    if clause.subject is None:
        return [replace(clause, subject=Phrase(I), topic=True)]
    return [replace(clause, subject=None, topic=False, scrambled=False)]


def _progressives(clause: Clause, _: Sentence) -> list[Clause]:
    """지금 읽어요 and 지금 읽고 있어요."""
    return [replace(clause, modal="progressive")] if clause.now and not clause.negation else []


def _orders(clause: Clause, sentence: Sentence) -> list[Clause]:
    if clause.scrambled:
        plain = replace(clause, scrambled=False)
        return [replace(plain, topic=is_topic(plain))]
    movable = len(sentence.clauses) == 1 and clause.object and clause.predicate.particle == "을/를"
    return [replace(clause, scrambled=True, topic=False, bare_object=False)] if movable and may_scramble(clause) else []


def _particles(clause: Clause, sentence: Sentence) -> list[Clause]:
    if clause.bare_object:
        return [replace(clause, bare_object=False)]
    spoken = (
        sentence.level != "합쇼" and clause.object and clause.predicate.particle == "을/를" and not clause.scrambled
    )
    return [replace(clause, bare_object=True)] if spoken and may_drop(clause) else []
