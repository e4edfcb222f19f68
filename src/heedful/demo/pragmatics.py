"""What people say to each other: which clauses they ask, command, request, prohibit and suggest, and what they link.

The decision lists of tables/restrictions.yaml with the names of moods, `linked` and `next` say most of it.
"""

from itertools import pairwise

from .english_realization import is_message
from .frames import Clause, SentenceFrame
from .semantics import NOUNS, VERBS, allows, clause_facts, is_stranger, noun_class, satisfies_restrictions, with_prefix
from .tables import read_yaml, split_list, word_sets


def is_felicitous(sentence: SentenceFrame) -> bool:
    """Return True if somebody would say this sentence."""
    clauses, mood = sentence.clauses, sentence.mood
    if not all(map(satisfies_restrictions, clauses)) or (
        mood != "statement" and any(clause.scrambled for clause in clauses)
    ):
        return False
    if len(clauses) > 1:
        return all(allows("linked", clause_facts(clause)) for clause in clauses) and is_coherent(clauses)
    clause = clauses[0]
    if clause.drops_particle and (clause.has_elder_subject or clause.object_noun == "이"):
        return False
    if sentence.level == "합쇼" and clause.tense == "future" and is_message(clause):
        return False  # programs do not announce what they will do
    if mood == "question":
        return is_felicitous_question(clause)
    return mood in ("statement", "offer") or allows(mood, clause_facts(clause))


def is_felicitous_question(clause: Clause) -> bool:
    """Return True if people ask this; a yes-no question has few restrictions."""
    facts, role, thing, phrases = clause_facts(clause), clause.wh_role, clause.object, list(clause.phrases())
    if (
        any(phrase.determiner == "my" or phrase.number == 1 for phrase in phrases)
        or (facts["time"] == "clock" and not facts["sharp"])
        or (facts["when"] not in ("", *NOUNS["near_times"]) and any(phrase.number for phrase in phrases))
    ):
        return False
    if not role or "copula" in clause.predicate.marks or (thing and thing.determiner == "how many"):
        return True
    crowded = sum(adjunct.role not in ("to", role) for adjunct in clause.adjuncts) > 1
    elsewhere = clause.place not in ("", *(noun.korean for noun in clause.predicate.places))
    if crowded or clause.modal or is_stranger(clause.subject) or (thing and thing.adjective):
        return False
    return not (role == "object" and elsewhere) and allows("question", facts)


def is_coherent(clauses: list[Clause]) -> bool:
    """Return True if the clauses can follow each other, and two people do the same kind of thing."""
    opening, verbs = clauses[0], [clause.predicate.english for clause in clauses]
    when = opening.adverb("when")
    if (
        not all(_coheres(second, first) for first, second in pairwise(clauses))
        or (when and when.korean not in NOUNS["near_times"] and VERBS["minor"] & {*verbs})
        or (verbs[0] == "be bored" and clauses[1].object_noun == "이메일")
        or (verbs[0] in ("be sad", "be glad") and (len(clauses) > 2 or verbs[1] == "eat"))
    ):
        return False
    trouble = word_sets("after_trouble").get(opening.link)
    return len(clauses) < 3 or trouble is None or verbs[2] in trouble


def _coheres(second: Clause, first: Clause) -> bool:
    verb = first.predicate.english
    if first.predicate is second.predicate and not second.shares_subject:
        by_two = (not first.habit or verb in VERBS["habitual"]) and verb not in ("know", "understand", "wear", "love")
        return by_two and _have_comparable_objects(first, second)
    return allows("next", {**with_prefix("next_", second), **clause_facts(first)})


def _have_comparable_objects(first: Clause, second: Clause) -> bool:
    if not first.object or not second.object:
        return True
    both = {first.object.noun, second.object.noun}
    classes = split_list(read_yaml("semantics.yaml")["comparable_classes"])
    return any(both <= noun_class(name) for name in classes)
