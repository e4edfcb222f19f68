"""Whether joined clauses follow from each other."""

from __future__ import annotations

from itertools import pairwise

from heedful.data.grammar import lexicon_sense as data
from heedful.data.grammar.frames import Clause
from heedful.data.grammar.sense.parts import adverb_of, among, is_stranger, place_of, thing_of


def is_said_in_passing(clause: Clause) -> bool:
    """In joined clauses people one knows do everyday things."""
    if is_stranger(clause.subject) or is_stranger(clause.object):
        return False
    verb = clause.predicate.english
    named = place_of(clause) if verb == "go" else thing_of(clause)
    return not named or verb not in data.IN_PASSING or named in data.IN_PASSING[verb]


def follow(clauses: list[Clause]) -> bool:
    """One thing after another; nobody goes on after going away or to bed, and two people do the same kind of thing."""
    opening, verbs = clauses[0], [clause.predicate.english for clause in clauses]
    if not all(_follows(second, first) for first, second in pairwise(clauses)):
        return False
    when = adverb_of(opening, "when")
    if when and when.korean not in data.NEAR and data.SMALL & {*verbs}:
        return False
    if verbs[0] == "be bored" and thing_of(clauses[1]) == "이메일":
        return False
    if verbs[0] in ("be sad", "be glad") and (len(clauses) > 2 or verbs[1] == "eat"):
        return False
    trouble = data.AFTER_TROUBLE.get(opening.link)
    return len(clauses) < 3 or trouble is None or verbs[2] in trouble


def _follows(second: Clause, first: Clause) -> bool:
    verb, then = first.predicate.english, second.predicate.english
    if first.predicate is second.predicate and not second.shared:
        return _is_done_by_two(verb, first.habit) and _alike(first, second)
    if verb == "have":
        return then in data.GIVEN_TIME
    if verb == "be glad":
        return second.tense == "past"
    if first.predicate.verb.adjective and second.predicate.verb.adjective:
        return verb not in data.POOR_MERITS.get(then, ())
    return first.link != "-고" or leads_to(first, second)


def _is_done_by_two(verb: str, habit: bool) -> bool:
    return (not habit or verb in data.HABITS) and verb not in ("know", "understand", "wear", "love")


def leads_to(first: Clause, second: Clause) -> bool:
    """Whether one does the second thing after the first."""
    verb, then = first.predicate.english, second.predicate.english
    if first.habit or verb in data.LAST or (then in ("sleep", "rest") and verb not in data.THEN_BED):
        return False
    if then == "go" and place_of(second) in data.NOT_THEN_TO.get(verb, ()):
        return False
    if verb in data.THEN:
        return then in data.THEN[verb]
    return not {verb, then} <= {"take a walk", "exercise", "swim"}


def _alike(first: Clause, second: Clause) -> bool:
    """Whether two objects are of one kind."""
    if not first.object or not second.object:
        return True
    both = {first.object.noun, second.object.noun}
    return any(both <= among(kind) for kind in data.KINDS)
