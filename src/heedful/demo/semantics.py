"""Selectional restrictions: whether the parts of a clause suit each other, so that somebody would say it.

Who does what to what, when, how often and how is data (tables/semantics.yaml); the full level keeps to it, and the
demo's few words do without.
"""

from __future__ import annotations

from functools import lru_cache

from .frames import Clause, Phrase
from .lexicon import Adverb, Noun, lexicon
from .tables import WordSets, read_yaml, word_sets_by_key

VERBS, ADJECTIVES, NOUNS = WordSets("verbs"), WordSets("adjectives"), WordSets("nouns")


@lru_cache(100)
def noun_class(*names: str) -> frozenset[Noun]:
    """The nouns of these classes."""
    return frozenset(lexicon("full").in_classes(*names))


def max_count(noun: Noun, verb: str) -> int:
    """How many of these one buys, eats, has, …; 0 where nobody counts."""
    most: int = read_yaml("semantics.yaml")["counts"].get(verb, 0)
    return min(most, 2) if noun.counter == "대" or noun.korean in NOUNS.few_at_once else most


def is_span(when: Adverb | None) -> bool:
    """From one hour, or one day, to another."""
    return when is not None and when.quantity.startswith("from-to")


def is_person(noun: Noun) -> bool:
    """Somebody, and not an animal or a question word."""
    return noun.is_person and noun.kind != "question"


def is_stranger(phrase: Phrase | None) -> bool:
    """Somebody known by an occupation, not by a name or as kin."""
    return phrase is not None and is_person(phrase.noun) and phrase.noun.kind == "count"


def suits(clause: Clause) -> bool:
    """Whether subject, object, time, number and manner of a clause suit its predicate."""
    relatives = [phrase.relative for phrase in clause.phrases() if phrase.relative]
    return (
        subject_suits(clause)
        and object_suits(clause)
        and time_suits(clause)
        and mode_suits(clause)
        and manner_suits(clause)
        and all(phrase_suits(phrase, clause) for phrase in clause.phrases())
        and all(relative_suits(clause, relative) and suits(relative) for relative in relatives)
    )


# Arguments and attributes


def subject_suits(clause: Clause) -> bool:
    """Whether this subject does, or is, such a thing."""
    verb, marks = clause.predicate.english, clause.predicate.marks
    if clause.subject is None or clause.predicate.verb.adjective or "copula" in marks:
        return True
    noun, place, occupations = clause.subject.noun, clause.place, word_sets_by_key("occupations")
    name, by_occupation = noun.korean, noun.korean in occupations
    if "exist" in marks:
        astray = (name not in NOUNS.at_home and place in NOUNS.living_quarters) or (
            name not in NOUNS.at_school and place in ("학교", "교실")
        )
        cups = clause.subject.number > 0 and noun.counter == "잔"
        unsuited = place in word_sets_by_key("unsuited_places").get(name, ())
        return not (by_occupation and astray) and not cups and not unsuited
    if noun.animate and noun.pronoun == "it":
        return _animal_suits(clause, name)
    if "machines" in marks and clause.has_role("often"):
        return False
    if not by_occupation:
        return not noun.elder or (verb not in VERBS.not_by_elders and "technical" not in marks)
    common = verb in VERBS.any_occupation
    return (common or verb in occupations[name]) and not (
        (clause.habit and not clause.adjuncts and common and verb not in ("work", "live"))
        or clause.modal == "try"
        or (clause.negation != "" and clause.tense == "future")
        or (common and (clause.scrambled or clause.now or clause.modal in ("can", "want")))
        or (place == "학교" and name not in NOUNS.at_school)
        or (place == "회사" and name in NOUNS.not_at_work)
        or (verb in ("meet", "wait for") and (clause.modal or place))
        or clause.has_role("by")
        or len(clause.adjuncts) > 1
    )


def _animal_suits(clause: Clause, animal: str) -> bool:
    verb, thing, place = clause.predicate.english, clause.object_noun, clause.place
    if (
        clause.modal not in ("", "progressive")
        or clause.tense == "future"
        or clause.negation == "못"
        or (place and (place == "동물원") == (animal in NOUNS.pets))
        or (verb in ("eat", "drink") and clause.negation)
    ):
        return False
    if thing == "생선":
        return animal in NOUNS.fish_eaters
    if verb in ("eat", "like") and clause.object and not clause.object.noun.animate:
        return animal in (NOUNS.hunters if thing in NOUNS.meat else NOUNS.grazers)
    if verb in ("like", "see") and clause.object:
        return verb == "like" and animal in NOUNS.pets and is_person(clause.object.noun)
    if verb == "drink":
        return thing == "물" or animal in NOUNS.milk_drinkers
    if verb in ("walk", "run"):
        return animal not in NOUNS.not_walking and len(clause.adjuncts) > 0
    return verb == "sleep" or (animal in NOUNS.hunters and thing in NOUNS.prey)


def object_suits(clause: Clause) -> bool:
    """Whether this is done to such a thing, by such a subject, in such a place."""
    verb, thing = clause.predicate.english, clause.object
    if thing is None:
        return True
    noun, name, place = thing.noun, thing.noun.korean, clause.place
    if "copula" in clause.predicate.marks:
        return not (clause.has_elder_subject and name == "배우")  # 배우셨어요 is read as *learned*
    if verb == "become":
        return not clause.has_elder_subject
    if is_person(noun) and clause.habit and verb not in ("like", "love") and not clause.has_role("often", "when"):
        return False
    if is_stranger(thing):
        return _stranger_suits(clause, thing)
    if verb == "give" and name in NOUNS.for_children:
        receiver = next(adjunct.constituent for adjunct in clause.adjuncts if adjunct.role == "give")
        if isinstance(receiver, Phrase) and receiver.noun.kind == "kin" and receiver.noun.korean not in NOUNS.childlike:
            return False
    if verb in ("give", "send") and clause.habit:
        return name in NOUNS.sent_often and len(clause.adjuncts) > 1
    if verb in ("have", "need") and is_stranger(clause.subject):
        return name in NOUNS.occupation_needs
    if verb == "wear" and clause.subject and clause.subject.noun.pronoun == "he":
        return name not in NOUNS.for_women
    if verb == "wash":
        return place != ("부엌" if noun.kind == "own" else "화장실")
    if verb == "buy" and clause.habit:
        return name in NOUNS.bought_habitually
    if verb == "see" and not is_person(noun):
        return clause.tense == "past" and not clause.negation and not clause.has_role("at")
    if verb == "receive" and clause.tense == "future":
        return name in NOUNS.awaited_gifts
    if verb == "read" and place:
        return name in NOUNS.read_somewhere
    if (here := word_sets_by_key("objects_at").get(f"{verb}/{place}")) is not None:
        return name in here
    if verb == "sell":
        seller = clause.subject is not None and clause.subject.noun.korean in NOUNS.sellers
        return seller or name in NOUNS.sold_by_anyone or clause.has_role("at")
    return not (clause.predicate.marks & {"creates", "own"} and thing.determiner)


def _stranger_suits(clause: Clause, thing: Phrase) -> bool:
    """One meets a reporter, once; one calls only those who come when called."""
    verb = clause.predicate.english
    suited = thing.noun.korean in NOUNS.summoned if verb == "call" else verb not in ("like", "love", "invite")
    once = not (clause.habit or clause.modal or clause.negation)
    return suited and once and not thing.number and not clause.has_role("at")


def phrase_suits(phrase: Phrase, clause: Clause) -> bool:
    """Whether what stands before a noun suits it and what is done to it."""
    noun, verb = phrase.noun, clause.predicate.english
    planned = clause.tense == "future" and clause.has_role("when")
    plain = clause.now or clause.modal in ("progressive", "can") or clause.manner != ""
    if phrase.adjective and phrase is clause.object:
        moved = clause.scrambled and clause.tense == "future"
        fitting = phrase.adjective.quality in word_sets_by_key("described").get(verb, ())
        if plain or moved or clause.modal == "must" or is_stranger(clause.subject) or not fitting:
            return False
    if phrase.number == 1 and clause.modal:
        return False
    if (phrase.number or phrase.determiner == "how many") and (plain or planned or not max_count(noun, verb)):
        return False
    if phrase.determiner in ("this", "that"):
        return noun.korean not in NOUNS.no_demonstrative
    possessed = noun in noun_class("clothes", "headwear", "owned", "footwear") and noun.korean not in NOUNS.not_mine
    return phrase.determiner != "my" or noun.korean in NOUNS.mine or possessed


def relative_suits(clause: Clause, relative: Clause) -> bool:
    """Whether the main clause says something that the relative clause leads to."""
    outer, inner, when = clause.predicate, relative.predicate.english, relative.adverb("when")
    if relative.subject is None:  # 책을 읽는 학생
        person = next(phrase for phrase in clause.phrases() if phrase.relative is relative).noun.korean
        return _distinguishes(inner, person) and outer.english != "wait for" and relative.object_noun != "문자"
    if relative.subject.noun.korean in word_sets_by_key("occupations") or (when and when.korean in NOUNS.times_of_day):
        return False
    if outer.verb.adjective:
        if relative.tense == "past" and clause.tense == "present" and inner in VERBS.consuming:
            return False
        described = outer.quality in word_sets_by_key("described").get(inner, ())
        return described and (not relative.now or inner in VERBS.progressive_in_relatives)
    thing, verb = clause.object_noun, outer.english
    return not (
        (verb in ("eat", "drink") and when and when.korean in NOUNS.remote_times | {"지난주에"})
        or (verb == "like" and inner == "buy" and clause.object and clause.object.noun in noun_class("tasty", "food"))
        or (inner == "write" and relative.person == "I" and verb == "read")
        or inner == "draw"
        or (inner == "buy" and verb == "read" and thing == "엽서")
        or (verb == "sell" and thing not in NOUNS.sold_by_anyone)
        or (verb in ("lose", "use") and clause.tense != "past")
    )


def _distinguishes(verb: str, person: str) -> bool:
    """Whether doing this tells people of one occupation apart."""
    if verb == "help":
        return person in NOUNS.helpers and person in word_sets_by_key("occupations")
    typical = word_sets_by_key("occupations").get(person, frozenset())
    return verb in typical - VERBS.any_occupation - VERBS.done_by_everyone


# Tense, aspect, modality, negation and manner


def time_suits(clause: Clause) -> bool:
    """Whether it is done at such a time, or so often."""
    verb, when, thing, place = clause.predicate.english, clause.adverb("when"), clause.object_noun, clause.place
    if clause.predicate.verb.adjective or "weather" in clause.predicate.marks:
        return when is None or when.korean in NOUNS.near_times
    if when is None:
        lasting = place in NOUNS.daily_places if verb == "go" else verb in VERBS.habitual
        part = clause.shares_subject or clause.link or clause.wh_role or "state" in clause.predicate.marks
        often = clause.has_role("often") and place not in NOUNS.abroad
        return not clause.habit or lasting or bool(part) or often
    name, quantity = when.korean, when.quantity.partition(" ")[0]
    if quantity == "clock":
        sharp = when.english.endswith(("o'clock", ":30")) or not (clause.habit or verb == "eat")
        timely = verb != "sleep" and not clause.negation and clause.wh_role != "why"
        timely = timely and clause.manner not in ("일찍", "늦게")
        return sharp and timely and place not in NOUNS.trip_goals and thing not in NOUNS.meals
    if quantity == "date" or name in NOUNS.remote_times:
        far = verb not in ("go", "come", "come back") or place in NOUNS.trip_goals
        dated = verb in (VERBS.datable if quantity else VERBS.seasonal) and not clause.scrambled
        cheap = verb == "buy" and clause.object and clause.object.noun not in noun_class("priced")
        return not cheap and dated and far and (verb, clause.tense) != ("receive", "future")
    if verb == "learn" and not clause.habit:
        return False  # that takes longer
    if name == "방금":
        return verb in VERBS.just_done and not clause.negation and not clause.wh_role and not clause.link
    too_long = ("travel", "wear", "learn", "take off", "forget")
    if (
        (name in NOUNS.times_of_day and (thing in NOUNS.meals or place in NOUNS.abroad or verb in too_long))
        or verb == "build"
        or (clause.habit and (place in NOUNS.trip_goals or verb in ("travel", "sell", "lose")))
    ):
        return False
    if name in ("매주", "매일"):
        often = verb not in VERBS.minor or name == "매일"
        return often and verb not in ("arrive", "receive") and not clause.negation
    if verb == "draw" and thing in NOUNS.in_the_sky:
        return False
    if is_span(when):
        if "o'clock" not in when.english:
            return verb in VERBS.lasting_days and (verb == "work" or not is_stranger(clause.subject))
        return verb != "read" or thing in NOUNS.read_for_hours
    small = verb in VERBS.minor or (place in NOUNS.nearby_places and not clause.habit)
    return name in NOUNS.near_times or not small


def mode_suits(clause: Clause) -> bool:
    """Whether it is wanted, possible, tried, over, going on or denied."""
    verb, modal, thing, past = clause.predicate.english, clause.modal, clause.object_noun, clause.tense == "past"
    modals = {"want": VERBS.wanted, "can": VERBS.abilities, "must": VERBS.duties}
    if (
        (modal in modals and verb not in modals[modal])
        or (clause.negation == "못" and (verb == "learn" or verb not in VERBS.abilities | VERBS.duties))
        or (clause.habit and verb in VERBS.not_habitual)
        or ((clause.now or modal == "progressive") and verb in VERBS.not_progressive)
        or (past and (verb in VERBS.not_past or (verb == "have" and thing not in NOUNS.temporary)))
        or (clause.tense == "future" and verb in ("fail", "occur", "cry"))
        or (clause.negation and not _negation_suits(clause))
        or (clause.now and verb == "wear")
        or (modal == "want" and clause.person == "other" and verb in ("see", "come"))
        or (modal == "want" and verb == "go" and clause.place in NOUNS.nearby_places)
        or (modal == "try" and thing and verb != "learn" and thing not in NOUNS.worth_trying)
    ):
        return False
    if clause.degree and clause.subject and not clause.subject.determiner:
        return _degree_suits(clause, clause.subject)
    if not clause.scrambled:
        return True
    crowded = clause.negation or clause.has_role("at", "how", "often", "with") or verb in ("like", "love")
    timed = clause.has_role("when")
    return not crowded and (not timed or (past and not is_span(clause.adverb("when"))))


def _negation_suits(clause: Clause) -> bool:
    verb = clause.predicate.english
    return not (
        verb in VERBS.not_negated
        or clause.has_role("with")
        or (verb == "have" and clause.object_noun in NOUNS.not_lacked)
        or (clause.tense == "future" and verb in VERBS.not_refused)
        or (verb == "forget" and clause.has_role("when"))
        or (clause.has_role("at") and verb not in VERBS.negated_with_place)
    )


def _degree_suits(clause: Clause, subject: Phrase) -> bool:
    """Without *this*, only people, foods and drinks are compared, and only what has a name is the most of all."""
    if clause.degree == "most":
        return subject.noun.kind in ("bare", "name") and clause.predicate.quality != "good"
    than = next(phrase for phrase in clause.phrases() if phrase is not subject)
    return subject.noun.animate or any({subject.noun, than.noun} <= noun_class(kind) for kind in ("food", "drink"))


def manner_suits(clause: Clause) -> bool:
    """Whether it is done so, on such a way, and not too much is said at once."""
    verb, how, modal, place = clause.predicate.english, clause.manner, clause.modal, clause.place
    event = clause.tense != "present" or clause.now or clause.has_role("when", "often", "at", "with")
    if (
        (how and verb == "read" and clause.object_noun not in NOUNS.read_somewhere)
        or (how == "다시" and (clause.habit or modal == "can"))
        or (how in ("일찍", "늦게") and modal == "can")
        or (how == "늦게" and modal)
        or (how == "혼자" and clause.has_role("with"))
        or (how not in ("", "혼자") and clause.has_role("often"))
        or (how == "빨리" and verb == "come" and clause.person != "you")
        or (how == "빨리" and verb == "go")
        or (how == "늦게" and verb == "go" and place not in NOUNS.daily_places)
        or (how == "천천히" and (modal or clause.tense == "future" or clause.has_role("when")))
        or (how == "잘" and verb != "sleep" and event)  # a skill, not a single event
        or (verb == "run" and clause.has_role("from"))
        or (clause.has_role("by") and place in NOUNS.nearby_places)
    ):
        return False
    adorned = sum(phrase.adjective is not None or phrase.number > 0 for phrase in clause.phrases())
    adjuncts = sum(adjunct.role not in ("to", "give", "from", "than") for adjunct in clause.adjuncts)
    return adjuncts + adorned + (clause.negation != "") <= 2
