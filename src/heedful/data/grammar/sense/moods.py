"""What is asked, ordered, requested, forbidden and suggested."""

from __future__ import annotations

from collections.abc import Callable

from heedful.data.grammar import lexicon_sense as data
from heedful.data.grammar.frames import Clause
from heedful.data.grammar.sense.parts import adverb_of, has, is_stranger, manner_of, phrases, place_of, thing_of


def may_be_asked(clause: Clause) -> bool:
    """Whether one asks for this; yes or no may be asked of anything."""
    verb, asked, thing = clause.predicate.english, clause.asked, clause.object
    if any(phrase.pointer == "my" or phrase.number == 1 for phrase in phrases(clause)):
        return False
    when = adverb_of(clause, "when")
    clock = when is not None and when.quantity.startswith("clock")
    if when and clock and not when.english.endswith(("o'clock", ":30")):
        return False
    counted = any(phrase.number for phrase in phrases(clause))
    if counted and when and when.korean not in data.NEAR:
        return False
    if not asked or "copula" in clause.predicate.marks or (thing and thing.pointer == "how many"):
        return True
    crowded = sum(extra.role not in ("to", asked) for extra in clause.extras) > 1
    if crowded or clause.modal or is_stranger(clause.subject) or (thing and thing.adjective):
        return False
    if asked == "object":
        broad = not clock and (when is None or when.korean not in data.OF_THE_DAY)
        place, places = place_of(clause), {noun.korean for noun in clause.predicate.places}
        asked_for = data.ASK_WHO if thing_of(clause) == "누구" else data.ASK_WHAT
        return verb in asked_for and (not place or place in places) and broad
    if asked == "when":
        return verb in (data.ASK_WHEN_HABITUAL if clause.habit else data.ASK_WHEN)
    if asked == "at":
        return verb in data.ASK_WHERE
    if asked == "why":
        return verb in data.ASK_WHY and clause.tense != "future" and (not clause.habit or verb in ("learn", "dislike"))
    if asked == "to":
        return not clause.habit or verb == "live" or has(clause, "when", "often")
    if asked == "how":
        return not clause.habit and not has(clause, "with")
    return asked != "subject" or not clause.habit or verb in data.HABITS


def may_be_ordered(clause: Clause) -> bool:
    """Whether one tells somebody to do this."""
    return clause.predicate.english in data.ORDERED and _is_fit_order(clause)


def _is_fit_order(clause: Clause) -> bool:
    verb, thing, name = clause.predicate.english, clause.object, thing_of(clause)
    if thing and ((is_stranger(thing) and verb != "call") or not _is_fit_detail(clause)):
        return False
    if verb in ("eat", "drink") and manner_of(clause):
        return False
    if verb == "write" and name not in data.WRITTEN_DOWN:
        return False
    if (verb in ("go", "come") and place_of(clause) in data.ABROAD) or manner_of(clause) in data.NOT_TO_ORDER:
        return False
    return not has(clause, "at") or verb in data.ORDERED_SOMEWHERE


def _is_fit_detail(clause: Clause) -> bool:
    verb, thing = clause.predicate.english, clause.object
    if thing and thing.adjective:
        return verb in ("buy", "wear", "read") and thing.adjective.quality not in data.FAULTS
    return thing is None or not thing.number or verb in data.ORDERED_IN_NUMBERS


def may_be_requested(clause: Clause) -> bool:
    """Whether one asks somebody to do this for one."""
    own = clause.object is not None and clause.object.noun.kind == "own"
    asked = clause.predicate.english in data.ORDERED | data.REQUESTED_TOO
    return asked and not own and not has(clause, "at") and _is_fit_order(clause)


def may_be_forbidden(clause: Clause) -> bool:
    """Whether one tells somebody not to do this."""
    verb = clause.predicate.english
    abroad = verb in ("go", "come") and place_of(clause) in data.ABROAD
    if thing_of(clause) == "쓰레기":  # *don't litter*
        return False
    if is_stranger(clause.object) or verb in ("write", "enter") or abroad or (verb == "sleep" and has(clause, "at")):
        return False
    if verb == "watch" and thing_of(clause) not in data.IN_PASSING["watch"]:
        return False
    plain = all(extra.role == "to" for extra in clause.extras)
    near = verb not in ("go", "come") or place_of(clause) in data.DAILY_PLACES
    return plain or (verb in data.FORBIDDEN_HOW and manner_of(clause) in data.NOT_SO and near)


def may_be_suggested(clause: Clause) -> bool:
    """Whether one does this together."""
    thing, verb = clause.object, clause.predicate.english
    if thing and (thing.adjective or thing.pointer or thing.number > 1 or (thing.number and verb != "drink")):
        return False
    if thing and verb in ("buy", "eat") and thing.noun.korean not in data.IN_PASSING[verb]:
        return False
    return place_of(clause) not in data.NOT_TOGETHER and thing_of(clause) not in ("약", "비타민")


JUDGES: dict[str, Callable[[Clause], bool]] = {
    "question": may_be_asked,
    "command": may_be_ordered,
    "prohibition": may_be_forbidden,
    "request": may_be_requested,
    "suggestion": may_be_suggested,
}
