"""Whether the parts of one clause suit each other: who does what to what, and what is said of it."""

from __future__ import annotations

from heedful.data.grammar import lexicon_sense as data
from heedful.data.grammar.frames import Clause, Phrase
from heedful.data.grammar.sense.parts import (
    adverb_of,
    among,
    at_most,
    has,
    is_elder,
    is_person,
    is_stranger,
    manner_of,
    phrases,
    place_of,
    thing_of,
)
from heedful.data.grammar.sense.times import manner_suits, mode_suits, time_suits


def suits(clause: Clause) -> bool:
    """Whether subject, object, time, number and manner of a clause suit its predicate."""
    relatives = [phrase.relative for phrase in phrases(clause) if phrase.relative]
    return (
        subject_suits(clause)
        and object_suits(clause)
        and time_suits(clause)
        and mode_suits(clause)
        and manner_suits(clause)
        and all(phrase_suits(phrase, clause) for phrase in phrases(clause))
        and all(may_be_said_of(clause, relative) and suits(relative) for relative in relatives)
    )


def subject_suits(clause: Clause) -> bool:
    """Whether this subject does, or is, such a thing."""
    verb, marks = clause.predicate.english, clause.predicate.marks
    if clause.subject is None or clause.predicate.verb.adjective or "copula" in marks:
        return True
    noun, place = clause.subject.noun, place_of(clause)
    if "exist" in marks:
        astray = noun.korean in data.DOES and noun.korean not in data.AT_HOME and place in data.ROOMS
        astray = astray or (
            noun.korean in data.DOES and noun.korean not in data.AT_SCHOOL and place in ("학교", "교실")
        )
        cups = clause.subject.number > 0 and noun.counter == "잔"
        return not astray and not cups and place not in data.UNSUITED.get(noun.korean, ())
    if noun.animate and noun.pronoun == "it":
        return _animal_suits(clause, noun.korean)
    if "machines" in marks and has(clause, "often"):
        return False
    if noun.korean in data.DOES:
        idle = clause.habit and not clause.extras and verb in data.ANY_JOB - {"work", "live"}
        idle = idle or clause.modal == "try" or (clause.negation != "" and clause.tense == "future")
        idle = idle or ((clause.scrambled or clause.now or clause.modal in ("can", "want")) and verb in data.ANY_JOB)
        if (place == "학교" and noun.korean not in data.AT_SCHOOL) or (
            place == "회사" and noun.korean in data.NOT_AT_WORK
        ):
            return False
        if verb in ("meet", "wait for") and (clause.modal or place):
            return False
        return verb in data.DOES[noun.korean] and not idle and not has(clause, "by") and len(clause.extras) < 2
    return not noun.elder or (verb not in data.NOT_THE_OLD and "technical" not in marks)


def _animal_suits(clause: Clause, animal: str) -> bool:
    verb, thing, place = clause.predicate.english, thing_of(clause), place_of(clause)
    if clause.modal not in ("", "progressive") or clause.tense == "future" or clause.negation == "못":
        return False
    if place and (place == "동물원") == (animal in data.PETS):
        return False
    if verb in ("eat", "drink") and clause.negation:
        return False
    if thing == "생선":
        return animal in data.FISHERS
    if verb in ("eat", "like") and clause.object and not clause.object.noun.animate:
        return animal in (data.HUNTERS if thing in data.MEAT else data.GRAZERS)
    if verb in ("like", "see") and clause.object:
        return verb == "like" and animal in data.PETS and is_person(clause.object.noun)
    if verb == "drink":
        return thing == "물" or animal in data.MILK_DRINKERS
    if verb in ("walk", "run"):
        return animal not in data.NOT_ON_FOOT and len(clause.extras) > 0
    return verb == "sleep" or (animal in data.HUNTERS and thing in data.PREY)


def object_suits(clause: Clause) -> bool:
    """Whether this is done to such a thing, by such a subject, in such a place."""
    verb, thing = clause.predicate.english, clause.object
    if thing is None:
        return True
    noun, place = thing.noun, place_of(clause)
    if "copula" in clause.predicate.marks:
        return not (is_elder(clause) and noun.korean == "배우")  # 배우셨어요 is read as *learned*
    if verb == "become":
        return not is_elder(clause)
    if is_person(noun) and clause.habit and verb not in ("like", "love") and not has(clause, "often", "when"):
        return False
    if is_stranger(thing):
        return _stranger_suits(clause, thing)
    if verb == "give" and noun.korean in data.FOR_CHILDREN:
        receiver = next(extra.thing for extra in clause.extras if extra.role == "give")
        if isinstance(receiver, Phrase) and receiver.noun.kind == "kin" and receiver.noun.korean not in data.CHILDLIKE:
            return False
    if verb in ("give", "send") and clause.habit:
        return noun.korean in data.GIVEN_OFTEN and len(clause.extras) > 1
    if verb in ("have", "need") and is_stranger(clause.subject):
        return noun.korean in data.JOB_NEEDS
    if verb == "wear" and clause.subject and clause.subject.noun.pronoun == "he":
        return noun.korean not in data.FOR_WOMEN
    if verb == "wash":
        return place != ("부엌" if noun.kind == "own" else "화장실")
    if verb == "buy" and clause.habit:
        return noun.korean in data.HABITUALLY_BOUGHT
    if verb == "see" and not is_person(noun):
        return clause.tense == "past" and not clause.negation and not has(clause, "at")
    if verb == "receive" and clause.tense == "future":
        return noun.korean in data.AWAITED_GIFTS
    if verb == "read" and place:
        return noun.korean in data.READ_SOMEWHERE
    if (verb, place) in data.AT:
        return noun.korean in data.AT[verb, place]
    if verb == "sell":
        seller = clause.subject is not None and clause.subject.noun.korean in data.SELLERS
        return seller or noun.korean in data.SOLD_BY_ANYONE or has(clause, "at")
    return not (clause.predicate.marks & {"creates", "own"} and thing.pointer)


def _stranger_suits(clause: Clause, thing: Phrase) -> bool:
    """One meets a reporter, once; one calls only those who come when called."""
    verb = clause.predicate.english
    known = thing.noun.korean in data.CALLED if verb == "call" else verb not in ("like", "love", "invite")
    once = not (clause.habit or clause.modal or clause.negation)
    return known and once and not thing.number and not has(clause, "at")


def phrase_suits(phrase: Phrase, clause: Clause) -> bool:
    """Whether what stands before a noun suits it and what is done to it."""
    noun, verb = phrase.noun, clause.predicate.english
    planned = clause.tense == "future" and has(clause, "when")
    plain = clause.now or clause.modal in ("progressive", "can") or manner_of(clause) != ""
    if phrase.adjective and phrase is clause.object:
        moved = clause.scrambled and clause.tense == "future"
        if (
            plain
            or moved
            or clause.modal == "must"
            or is_stranger(clause.subject)
            or phrase.adjective.quality not in data.DESCRIBED.get(verb, ())
        ):
            return False
    if phrase.number == 1 and clause.modal:
        return False
    if (phrase.number or phrase.pointer == "how many") and (plain or planned or not at_most(noun, verb)):
        return False
    if phrase.pointer in ("this", "that"):
        return noun.korean not in data.ONE_OF_A_KIND
    owned = among("clothes", "headwear", "owned", "footwear")
    mine = noun.korean in data.MINE or (noun in owned and noun.korean not in data.NOT_MINE)
    return phrase.pointer != "my" or mine


def may_be_said_of(clause: Clause, relative: Clause) -> bool:
    """Whether the main clause says something that the relative clause leads to."""
    outer, inner, when = clause.predicate, relative.predicate.english, adverb_of(relative, "when")
    if relative.subject is None:  # 책을 읽는 학생
        person = next(phrase for phrase in phrases(clause) if phrase.relative is relative).noun.korean
        return (
            inner in data.TELLS_APART.get(person, ()) and outer.english != "wait for" and thing_of(relative) != "문자"
        )
    if relative.subject.noun.korean in data.DOES or (when and when.korean in data.OF_THE_DAY):
        return False
    if outer.verb.adjective:
        if relative.tense == "past" and clause.tense == "present" and inner in data.USED_UP:
            return False
        return outer.quality in data.DESCRIBED.get(inner, ()) and (not relative.now or inner in data.GOING_ON)
    if outer.english in ("eat", "drink") and when and when.korean in data.REMOTE | {"지난주에"}:
        return False
    if outer.english == "like" and inner == "buy" and clause.object and clause.object.noun in among("tasty", "food"):
        return False
    if inner == "write" and relative.person == "I" and outer.english == "read":
        return False
    if inner == "draw" or (inner == "buy" and outer.english == "read" and thing_of(clause) == "엽서"):
        return False
    if outer.english == "sell" and thing_of(clause) not in data.SOLD_BY_ANYONE:
        return False
    return outer.english not in ("lose", "use") or clause.tense == "past"
