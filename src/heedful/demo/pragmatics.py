"""What people say to each other: which clauses they ask, command, request, prohibit and suggest, and what they link."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from .english_realization import is_message
from .frames import Clause, SentenceFrame
from .semantics import ADJECTIVES, NOUNS, VERBS, is_stranger, noun_class, suits
from .tables import read_yaml, split_list, word_sets_by_key


def makes_sense(sentence: SentenceFrame) -> bool:
    """Whether somebody would say this."""
    clauses, mood = sentence.clauses, sentence.mood
    if not all(map(suits, clauses)) or (mood != "statement" and any(clause.scrambled for clause in clauses)):
        return False
    if len(clauses) > 1:
        return all(map(is_everyday, clauses)) and follow(clauses)
    clause = clauses[0]
    if clause.drops_particle and (clause.has_elder_subject or clause.object_noun == "이"):
        return False
    if sentence.level == "합쇼" and clause.tense == "future" and is_message(clause):
        return False  # programs do not announce what they will do
    return mood not in _MOODS or _MOODS[mood](clause)


# Moods


def may_be_asked(clause: Clause) -> bool:
    """Whether one asks for this; yes or no may be asked of anything."""
    verb, role, thing, when = clause.predicate.english, clause.wh_role, clause.object, clause.adverb("when")
    if any(phrase.determiner == "my" or phrase.number == 1 for phrase in clause.phrases()):
        return False
    by_clock = when is not None and when.quantity.startswith("clock")
    if when and by_clock and not when.english.endswith(("o'clock", ":30")):
        return False
    if when and when.korean not in NOUNS.near_times and any(phrase.number for phrase in clause.phrases()):
        return False
    if not role or "copula" in clause.predicate.marks or (thing and thing.determiner == "how many"):
        return True
    crowded = sum(adjunct.role not in ("to", role) for adjunct in clause.adjuncts) > 1
    if crowded or clause.modal or is_stranger(clause.subject) or (thing and thing.adjective):
        return False
    match role:
        case "object":
            place, places = clause.place, {noun.korean for noun in clause.predicate.places}
            broad = not by_clock and (when is None or when.korean not in NOUNS.times_of_day)
            verbs = VERBS.asked_who if clause.object_noun == "누구" else VERBS.asked_what
            return verb in verbs and (not place or place in places) and broad
        case "when":
            return verb in (VERBS.asked_when_habitual if clause.habit else VERBS.asked_when)
        case "at":
            return verb in VERBS.asked_where
        case "why":
            lasting = not clause.habit or verb in ("learn", "dislike")
            return verb in VERBS.asked_why and clause.tense != "future" and lasting
        case "to":
            return not clause.habit or verb == "live" or clause.has_role("when", "often")
        case "how":
            return not clause.habit and not clause.has_role("with")
    return role != "subject" or not clause.habit or verb in VERBS.habitual


def may_be_commanded(clause: Clause) -> bool:
    """Whether one tells somebody to do this."""
    return clause.predicate.english in VERBS.commanded and _is_fit_command(clause)


def _is_fit_command(clause: Clause) -> bool:
    verb, thing, manner = clause.predicate.english, clause.object, clause.manner
    if thing and thing.adjective:
        fit = verb in ("buy", "wear", "read") and thing.adjective.quality not in ADJECTIVES.faults
    else:
        fit = thing is None or not thing.number or verb in VERBS.commanded_with_number
    return fit and not (
        (is_stranger(thing) and verb != "call")
        or (verb in ("eat", "drink") and manner)
        or (verb == "write" and clause.object_noun not in NOUNS.jotted_down)
        or (verb in ("go", "come") and clause.place in NOUNS.abroad)
        or manner in NOUNS.manners_not_commanded
        or (clause.has_role("at") and verb not in VERBS.commanded_with_place)
    )


def may_be_requested(clause: Clause) -> bool:
    """Whether one asks somebody to do this for one."""
    of_oneself = clause.object is not None and clause.object.noun.kind == "own"
    verb_fits = clause.predicate.english in VERBS.commanded | VERBS.requested_too
    return verb_fits and not of_oneself and not clause.has_role("at") and _is_fit_command(clause)


def may_be_prohibited(clause: Clause) -> bool:
    """Whether one tells somebody not to do this."""
    verb, place, goes = clause.predicate.english, clause.place, clause.predicate.english in ("go", "come")
    if (
        clause.object_noun == "쓰레기"  # *don't litter*
        or is_stranger(clause.object)
        or verb in ("write", "enter")
        or (goes and place in NOUNS.abroad)
        or (verb == "sleep" and clause.has_role("at"))
        or (verb == "watch" and clause.object_noun not in word_sets_by_key("everyday")["watch"])
    ):
        return False
    plain = all(adjunct.role == "to" for adjunct in clause.adjuncts)
    near = not goes or place in NOUNS.daily_places
    return plain or (verb in VERBS.prohibited_with_manner and clause.manner in NOUNS.manners_prohibited and near)


def may_be_suggested(clause: Clause) -> bool:
    """Whether one does this together."""
    thing, verb = clause.object, clause.predicate.english
    if thing and (thing.adjective or thing.determiner or thing.number > 1 or (thing.number and verb != "drink")):
        return False
    if thing and verb in ("buy", "eat") and thing.noun.korean not in word_sets_by_key("everyday")[verb]:
        return False
    return clause.place not in NOUNS.no_joint_visit and clause.object_noun not in ("약", "비타민")


_MOODS: dict[str, Callable[[Clause], bool]] = {
    "question": may_be_asked,
    "command": may_be_commanded,
    "prohibition": may_be_prohibited,
    "request": may_be_requested,
    "suggestion": may_be_suggested,
}


# Linked clauses


def is_everyday(clause: Clause) -> bool:
    """In linked clauses people one knows do everyday things."""
    if is_stranger(clause.subject) or is_stranger(clause.object):
        return False
    verb, everyday = clause.predicate.english, word_sets_by_key("everyday")
    named = clause.place if verb == "go" else clause.object_noun
    return not named or verb not in everyday or named in everyday[verb]


def follow(clauses: list[Clause]) -> bool:
    """One thing after another; nobody goes on after going away or to bed, and two people do the same kind of thing."""
    opening, verbs = clauses[0], [clause.predicate.english for clause in clauses]
    when = opening.adverb("when")
    if (
        not all(_follows(second, first) for first, second in pairwise(clauses))
        or (when and when.korean not in NOUNS.near_times and VERBS.minor & {*verbs})
        or (verbs[0] == "be bored" and clauses[1].object_noun == "이메일")
        or (verbs[0] in ("be sad", "be glad") and (len(clauses) > 2 or verbs[1] == "eat"))
    ):
        return False
    trouble = word_sets_by_key("after_trouble").get(opening.link)
    return len(clauses) < 3 or trouble is None or verbs[2] in trouble


def _follows(second: Clause, first: Clause) -> bool:
    verb, next_verb = first.predicate.english, second.predicate.english
    if first.predicate is second.predicate and not second.shares_subject:
        by_two = (not first.habit or verb in VERBS.habitual) and verb not in ("know", "understand", "wear", "love")
        return by_two and _have_comparable_objects(first, second)
    if verb == "have":
        return next_verb in VERBS.with_free_time
    if verb == "be glad":
        return second.tense == "past"
    if first.predicate.verb.adjective and second.predicate.verb.adjective:
        return verb not in word_sets_by_key("poor_merits").get(next_verb, ())
    return first.link != "-고" or leads_to(first, second)


def leads_to(first: Clause, second: Clause) -> bool:
    """Whether one does the second thing after the first."""
    verb, next_verb = first.predicate.english, second.predicate.english
    if first.habit or verb in VERBS.sequence_final or (next_verb in ("sleep", "rest") and verb not in VERBS.before_bed):
        return False
    if next_verb == "go" and second.place in word_sets_by_key("no_goal_after").get(verb, ()):
        return False
    if (only := word_sets_by_key("next_actions").get(verb)) is not None:
        return next_verb in only
    return not {verb, next_verb} <= {"take a walk", "exercise", "swim"}


def _have_comparable_objects(first: Clause, second: Clause) -> bool:
    if not first.object or not second.object:
        return True
    both = {first.object.noun, second.object.noun}
    classes = split_list(read_yaml("semantics.yaml")["comparable_classes"])
    return any(both <= noun_class(name) for name in classes)
