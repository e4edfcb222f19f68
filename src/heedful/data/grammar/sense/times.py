"""Whether something is done at such a time, so often, in such a mood of mind and in such a manner."""

from __future__ import annotations

from heedful.data.grammar import lexicon_sense as data
from heedful.data.grammar.frames import Clause, Phrase
from heedful.data.grammar.sense.parts import (
    adverb_of,
    among,
    has,
    is_a_span,
    is_stranger,
    manner_of,
    phrases,
    place_of,
    thing_of,
)


def time_suits(clause: Clause) -> bool:
    """Whether it is done at such a time, or so often."""
    verb, when, thing, place = clause.predicate.english, adverb_of(clause, "when"), thing_of(clause), place_of(clause)
    if clause.predicate.verb.adjective or "weather" in clause.predicate.marks:
        return when is None or when.korean in data.NEAR
    if when is None:
        lasting = place in data.DAILY_PLACES if verb == "go" else verb in data.HABITS
        part = clause.shared or clause.link or clause.asked or "state" in clause.predicate.marks
        return not clause.habit or lasting or bool(part) or (has(clause, "often") and place not in data.ABROAD)
    name, quantity = when.korean, when.quantity.partition(" ")[0]
    if quantity == "clock":
        sharp = when.english.endswith(("o'clock", ":30")) or not (clause.habit or verb == "eat")
        timely = (
            verb != "sleep"
            and not clause.negation
            and manner_of(clause) not in ("일찍", "늦게")
            and clause.asked != "why"
        )
        return sharp and timely and place not in data.TRIPS and thing not in data.MEALS
    if quantity == "date" or name in data.REMOTE:
        far = verb not in ("go", "come", "come back") or place in data.TRIPS
        dated = verb in (data.DATED if quantity else data.SEASONAL) and not clause.scrambled
        if verb == "buy" and clause.object and clause.object.noun not in among("priced"):
            return False
        return dated and far and (verb, clause.tense) != ("receive", "future")
    if verb == "learn" and not clause.habit:
        return False  # that takes longer
    if name == "방금":
        return verb in data.JUST_DONE and not clause.negation and not clause.asked and not clause.link
    if name in data.OF_THE_DAY and (
        thing in data.MEALS or place in data.ABROAD or verb in ("travel", "wear", "learn", "take off", "forget")
    ):
        return False
    if verb == "build" or (clause.habit and (place in data.TRIPS or verb in ("travel", "sell", "lose"))):
        return False
    if name in ("매주", "매일"):
        return (verb not in data.SMALL or name == "매일") and verb not in ("arrive", "receive") and not clause.negation
    if verb == "draw" and thing in data.IN_THE_SKY:
        return False
    if is_a_span(when):
        if "o'clock" not in when.english:
            return verb in data.FOR_DAYS and (verb == "work" or not is_stranger(clause.subject))
        return verb != "read" or thing in data.READ_FOR_HOURS
    return name in data.NEAR or (verb not in data.SMALL and (place not in data.ROUND_THE_CORNER or clause.habit))


def mode_suits(clause: Clause) -> bool:
    """Whether it is wanted, possible, tried, over, going on or denied."""
    verb, modal, past = clause.predicate.english, clause.modal, clause.tense == "past"
    if verb not in {"want": data.WANTED, "can": data.ABLE, "must": data.DUTIES}.get(modal, [verb]):
        return False
    if clause.negation == "못" and verb not in data.UNABLE:
        return False
    if (clause.habit and verb in data.NOT_HABITUAL) or (
        (clause.now or modal == "progressive") and verb in data.NOT_GOING_ON
    ):
        return False
    if past and (verb in data.NOT_OVER or (verb == "have" and thing_of(clause) not in data.HAD_FOR_A_TIME)):
        return False
    if clause.tense == "future" and verb in ("fail", "occur", "cry"):
        return False
    if clause.negation and not _denial_suits(clause):
        return False
    if clause.now and verb == "wear":
        return False
    if modal == "want" and (
        (clause.person == "other" and verb in ("see", "come"))
        or (verb == "go" and place_of(clause) in data.ROUND_THE_CORNER)
    ):
        return False
    if modal == "try" and clause.object and verb != "learn" and thing_of(clause) not in data.TRIED:
        return False
    if clause.degree and clause.subject and not clause.subject.pointer:
        return _degree_suits(clause, clause.subject)
    return not clause.scrambled or (
        not (clause.negation or has(clause, "at", "how", "often", "with") or verb in ("like", "love"))
        and (not has(clause, "when") or (past and not is_a_span(adverb_of(clause, "when"))))
    )


def _denial_suits(clause: Clause) -> bool:
    verb = clause.predicate.english
    if verb in data.NOT_DENIED or has(clause, "with") or (verb == "have" and thing_of(clause) in data.NOT_LACKED):
        return False
    if (clause.tense == "future" and verb in data.NOT_REFUSED) or (verb == "forget" and has(clause, "when")):
        return False
    return not has(clause, "at") or verb in data.DENIED_SOMEWHERE


def _degree_suits(clause: Clause, subject: Phrase) -> bool:
    """Without *this*, only people, foods and drinks are compared, and only what has a name is the most of all."""
    if clause.degree == "most":
        return subject.noun.kind in ("bare", "name") and clause.predicate.quality != "good"
    than = next(phrase for phrase in phrases(clause) if phrase is not subject)
    return subject.noun.animate or any({subject.noun, than.noun} <= among(kind) for kind in ("food", "drink"))


def manner_suits(clause: Clause) -> bool:
    """Whether it is done so, on such a way, and not too much is said at once."""
    verb, how = clause.predicate.english, manner_of(clause)
    if how and verb == "read" and thing_of(clause) not in data.READ_SOMEWHERE:
        return False
    if how == "다시" and (clause.habit or clause.modal == "can"):
        return False
    if (how in ("일찍", "늦게") and clause.modal == "can") or (how == "늦게" and clause.modal):
        return False
    if (how == "혼자" and has(clause, "with")) or (how not in ("", "혼자") and has(clause, "often")):
        return False
    if how == "빨리" and verb == "come" and clause.person != "you":
        return False
    if verb == "go" and (how == "빨리" or (how == "늦게" and place_of(clause) not in data.DAILY_PLACES)):
        return False
    if how == "천천히" and (clause.modal or clause.tense == "future" or has(clause, "when")):
        return False
    if (
        how == "잘"
        and verb != "sleep"
        and (clause.tense != "present" or clause.now or has(clause, "when", "often", "at", "with"))
    ):
        return False  # a skill, not a single event
    if (verb == "run" and has(clause, "from")) or (has(clause, "by") and place_of(clause) in data.ROUND_THE_CORNER):
        return False
    adorned = sum(phrase.adjective is not None or phrase.number > 0 for phrase in phrases(clause))
    extras = sum(extra.role not in ("to", "give", "from", "than") for extra in clause.extras)
    return extras + adorned + (clause.negation != "") <= 2
