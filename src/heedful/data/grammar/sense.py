"""What people would say: of the sentences that the grammar allows, the full level keeps those whose parts suit each
other. What suits what is data (`lexicon_sense`); the demo's few words do without.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from heedful.data.grammar import lexicon_sense as data
from heedful.data.grammar.frames import Clause, Phrase, Sentence
from heedful.data.grammar.lexicon import Adverb, Noun, lexicon


def makes_sense(sentence: Sentence) -> bool:
    """Whether somebody would say this."""
    clauses, mood = sentence.clauses, sentence.mood
    if not all(map(suits, clauses)) or (mood != "statement" and any(clause.scrambled for clause in clauses)):
        return False
    if mood == "question" and any(_has_kin(clause) for clause in clauses):
        return False
    if len(clauses) > 1:
        return all(map(_in_passing, clauses)) and _follow(clauses)
    clause = clauses[0]
    if clause.bare_object and (_is_elder(clause) or _thing(clause) == "이"):
        return False
    judge = {
        "question": _may_be_asked, "command": _may_be_ordered, "prohibition": _may_be_forbidden,
        "request": _may_be_requested, "suggestion": _may_be_suggested,
    }.get(mood)  # fmt: skip
    return judge is None or judge(clause)


def suits(clause: Clause) -> bool:
    """Whether subject, object, time, number and manner of a clause suit its predicate."""
    relatives = [phrase.relative for phrase in _phrases(clause) if phrase.relative]
    return (
        _subject_suits(clause)
        and _object_suits(clause)
        and _time_suits(clause)
        and _mode_suits(clause)
        and all(_phrase_suits(phrase, clause) for phrase in _phrases(clause))
        and all(_may_be_said_of(clause, relative) and suits(relative) for relative in relatives)
    )


def at_most(noun: Noun, verb: str) -> int:
    """How many of these one buys, eats, has, …; 0 where nobody counts."""
    most = data.COUNTED.get(verb, 0)
    return min(most, 2) if noun.counter == "대" or noun.korean in data.DEAR else most


def _phrases(clause: Clause) -> Iterator[Phrase]:
    yield from (phrase for phrase in (clause.subject, clause.object) if phrase)
    yield from (extra.thing for extra in clause.extras if isinstance(extra.thing, Phrase))


def _thing(clause: Clause) -> str:
    return clause.object.noun.korean if clause.object else ""


def _adverb(clause: Clause, role: str) -> Adverb | None:
    return next((e.thing for e in clause.extras if e.role == role and isinstance(e.thing, Adverb)), None)


def _how(clause: Clause) -> str:
    adverb = _adverb(clause, "how")
    return adverb.korean if adverb else ""


def _place(clause: Clause) -> str:
    places = (e.thing for e in clause.extras if e.role not in ("with", "give", "by", "from", "than"))
    return next((place.noun.korean for place in places if isinstance(place, Phrase)), "")


def _has(clause: Clause, *roles: str) -> bool:
    return any(extra.role in roles for extra in clause.extras)


def _is_elder(clause: Clause) -> bool:
    return clause.subject is not None and clause.subject.noun.elder


def _is_person(noun: Noun) -> bool:
    return noun.animate and noun.pronoun != "it" and noun.kind != "question"


def _is_stranger(phrase: Phrase | None) -> bool:
    """Somebody known by a job, not by a name or as kin."""
    return phrase is not None and _is_person(phrase.noun) and phrase.noun.kind == "count"


def _has_kin(clause: Clause) -> bool:
    """Kin as an object, of which English would say *a younger sister*; of a friend it may."""
    kin = clause.object is not None and clause.object.noun.kind == "kin" and clause.object.noun.korean != "친구"
    return kin and "have" not in clause.predicate.marks


def _subject_suits(clause: Clause) -> bool:
    verb, marks = clause.predicate.english, clause.predicate.marks
    if clause.subject is None or clause.predicate.verb.adjective or marks & {"copula", "exist"}:
        return True
    noun = clause.subject.noun
    if noun.animate and noun.pronoun == "it":
        return _animal_suits(clause, noun.korean)
    if noun.korean in data.DOES:
        idle = clause.habit and not clause.extras and verb in data.ANY_JOB - {"work", "live"}
        idle = idle or ((clause.scrambled or clause.now or clause.modal == "can") and verb in data.ANY_JOB)
        return verb in data.DOES[noun.korean] and not idle and not _has(clause, "by")
    return not noun.elder or (verb not in data.NOT_THE_OLD and "technical" not in marks)


def _animal_suits(clause: Clause, animal: str) -> bool:
    verb, thing, place = clause.predicate.english, _thing(clause), _place(clause)
    if clause.modal not in ("", "progressive") or clause.tense == "future" or clause.negation == "못":
        return False
    if place and (place == "동물원") == (animal in data.PETS):
        return False
    if verb in ("eat", "like") and clause.object and not clause.object.noun.animate:
        return animal in (data.HUNTERS if thing in data.MEAT else data.GRAZERS)
    if verb in ("like", "see") and clause.object:
        return verb == "like" and animal in data.PETS and _is_person(clause.object.noun)
    if verb == "drink":
        return thing == "물" or animal in data.MILK_DRINKERS
    return animal in data.HUNTERS if verb == "chase" else verb == "sleep" or animal not in data.NOT_ON_FOOT


def _object_suits(clause: Clause) -> bool:
    verb, thing = clause.predicate.english, clause.object
    if thing is None:
        return True
    noun, elder = thing.noun, _is_elder(clause)
    if "copula" in clause.predicate.marks:
        return not (elder and noun.korean == "배우")  # 배우셨어요 is read as *learned*
    if verb == "become":
        return not elder
    if _is_person(noun) and clause.habit and verb not in ("like", "love") and not _has(clause, "often", "when"):
        return False
    if _has_kin(clause) and (clause.negation or clause.now or clause.modal == "progressive"):
        return False
    if _is_stranger(thing):
        known = noun.korean in data.CALLED if verb == "call" else verb not in ("like", "love", "invite")
        famous = thing.adjective is None or (thing.adjective.quality == "famous" and verb in ("meet", "see"))
        return (
            known and famous and not clause.habit and not clause.modal and not thing.number and not _has(clause, "at")
        )
    if verb == "wear" and clause.subject and clause.subject.noun.pronoun == "he":
        return noun.korean not in ("원피스", "치마", "블라우스")
    if verb == "wash" and _place(clause) == ("부엌" if noun.kind == "own" else "화장실"):
        return False
    if "creates" in clause.predicate.marks and thing.pointer:
        return False
    if verb == "buy" and clause.habit:
        return noun.korean in data.HABITUALLY_BOUGHT
    if _place(clause) == "가게" and verb == "fix":
        return False
    if verb == "see" and not _is_person(noun):
        return clause.tense == "past" and not clause.negation and not _has(clause, "at")
    if verb == "eat" and _place(clause) == "카페":
        return noun.korean in data.EATEN_AT_A_CAFE
    if verb == "sell":
        seller = clause.subject is not None and clause.subject.noun.korean in data.SELLERS
        return seller or noun.korean in data.SOLD_BY_ANYONE or _has(clause, "at")
    if verb in ("give", "send") and clause.habit:
        return noun.korean in ("편지", "이메일", "문자", "메시지", "사진", "돈") and len(clause.extras) > 1
    if verb in ("have", "need") and _is_stranger(clause.subject):
        return noun.korean in data.JOB_NEEDS
    return True


def _time_suits(clause: Clause) -> bool:
    verb, when, thing, place = clause.predicate.english, _adverb(clause, "when"), _thing(clause), _place(clause)
    if clause.predicate.verb.adjective or "weather" in clause.predicate.marks:
        return when is None or when.korean in data.NEAR
    if when is None:
        lasting = place in data.DAILY_PLACES if verb == "go" else verb in data.HABITS
        part = clause.shared or clause.link or clause.asked or "state" in clause.predicate.marks
        return not clause.habit or lasting or bool(part) or (_has(clause, "often") and place not in data.ABROAD)
    name, quantity = when.korean, when.quantity.partition(" ")[0]
    if quantity == "clock":
        sharp = when.english.endswith(("o'clock", ":30")) or not clause.habit
        timely = not clause.negation and _how(clause) not in ("일찍", "늦게") and clause.asked != "why"
        return sharp and timely and place not in data.TRIPS and thing not in data.MEALS
    if quantity == "date" or name in data.REMOTE:
        far = verb not in ("go", "come", "come back") or place in data.TRIPS
        dated = verb in (data.DATED if quantity else data.SEASONAL) and not clause.scrambled
        if verb == "buy" and clause.object and clause.object.noun not in lexicon("full").among("priced"):
            return False
        return dated and far and (verb, clause.tense) != ("receive", "future")
    if name == "방금":
        return verb in data.JUST_DONE and not clause.negation and not clause.asked
    if name in data.OF_THE_DAY and (thing in data.MEALS or place in data.ABROAD or verb == "travel"):
        return False
    if verb == "build" or (clause.habit and (place in data.TRIPS or verb in ("travel", "sell", "lose"))):
        return False
    if name in ("매주", "매일"):
        return (verb not in data.SMALL or name == "매일") and verb not in ("arrive", "receive") and not clause.negation
    if quantity == "from-to":
        return verb != "sleep" or "o'clock" in when.english
    return verb not in data.SMALL or name in data.NEAR


def _mode_suits(clause: Clause) -> bool:
    verb, how, modal = clause.predicate.english, _how(clause), clause.modal
    if verb not in {"want": data.WANTED, "can": data.ABLE, "must": data.DUTIES}.get(modal, [verb]):
        return False
    if clause.negation == "못" and verb not in data.ABLE | data.DUTIES:
        return False
    if (clause.habit and verb in data.NOT_HABITUAL) or (modal == "progressive" and verb in data.NOT_GOING_ON):
        return False
    if clause.tense == "past" and (
        verb in ("know", "love") or (verb == "have" and _thing(clause) not in data.HAD_FOR_A_TIME)
    ):
        return False
    if (verb in ("fail", "occur") and clause.tense == "future") or (clause.habit and how == "다시"):
        return False
    if (verb == "cut" and clause.negation) or (modal == "can" and clause.object and clause.object.adjective):
        return False
    if (verb, clause.negation) == ("dislike", "안") or (verb, clause.tense) == ("cry", "future"):
        return False
    if verb == "go" and (how == "빨리" or (modal == "want" and _place(clause) in data.ROUND_THE_CORNER)):
        return False
    if (clause.now and verb in ("wear", "buy", "sell")) or (how in ("일찍", "늦게") and modal == "can"):
        return False
    if (modal == "want" and clause.person == "other" and verb in ("see", "come")) or (
        modal == "try" and clause.object and verb not in ("learn", "use") and _thing(clause) not in data.TRIED
    ):
        return False
    if clause.scrambled and (clause.negation or _has(clause, "at", "how", "often", "with") or verb in ("like", "love")):
        return False
    if clause.degree == "more" and clause.subject and not clause.subject.pointer and not clause.subject.noun.animate:
        than = next(phrase for phrase in _phrases(clause) if phrase is not clause.subject)
        return any({clause.subject.noun, than.noun} <= {*lexicon("full").among(kind)} for kind in ("food", "drink"))
    if verb == "run" and _has(clause, "from"):
        return False
    if _has(clause, "by") and _place(clause) in data.ROUND_THE_CORNER:
        return False
    if clause.degree == "most" and clause.subject and not clause.subject.pointer:
        return clause.subject.noun.kind in ("bare", "name")
    adorned = sum(phrase.adjective is not None or phrase.number > 0 for phrase in _phrases(clause))
    extras = sum(extra.role not in ("to", "give", "from", "than") for extra in clause.extras)
    return extras + adorned + (clause.negation != "") <= 2


def _phrase_suits(phrase: Phrase, clause: Clause) -> bool:
    noun, verb = phrase.noun, clause.predicate.english
    if phrase.adjective and phrase is clause.object and verb not in data.DESCRIBED_OBJECTS:
        return False
    if (phrase.number or phrase.pointer == "how many") and (
        clause.now or clause.modal == "progressive" or _how(clause)
    ):
        return False
    if phrase.pointer == "how many" and not at_most(noun, verb):
        return False
    if (
        phrase is clause.subject
        and "exist" in clause.predicate.marks
        and _place(clause) in data.UNSUITED.get(noun.korean, ())
    ):
        return False
    if phrase.pointer in ("this", "that"):
        return noun.korean not in data.ONE_OF_A_KIND
    owned = lexicon("full").among("clothes", "headwear", "owned", "footwear")
    mine = noun.korean in data.MINE or (noun in owned and noun.korean not in data.NOT_MINE)
    return phrase.pointer != "my" or mine


def _may_be_said_of(clause: Clause, relative: Clause) -> bool:
    """Whether the main clause says something that the relative clause leads to."""
    outer, inner, when = clause.predicate, relative.predicate.english, _adverb(relative, "when")
    if relative.subject is None:  # 책을 읽는 학생
        person = next(phrase for phrase in _phrases(clause) if phrase.relative is relative).noun.korean
        own = (data.DOES[person] - data.ANY_JOB) | {"help"} if person in data.DOES else frozenset()
        return inner in own - {"help" if person == "손님" else "use", "use", "have", "like", "take off", "call", "lose"}
    if relative.subject.noun.korean in data.DOES or (when and when.korean in data.OF_THE_DAY):
        return False
    if outer.verb.adjective:
        return outer.quality in data.DESCRIBED.get(inner, ()) and (not relative.now or inner in data.GOING_ON)
    if outer.english == "sell" and _thing(clause) not in data.SOLD_BY_ANYONE:
        return False
    return not (outer.english in ("lose", "use") and clause.tense != "past") and inner != "draw"


def _in_passing(clause: Clause) -> bool:
    """In joined clauses people one knows do everyday things."""
    if _is_stranger(clause.subject) or _is_stranger(clause.object):
        return False
    verb = clause.predicate.english
    named = _place(clause) if verb == "go" else _thing(clause)
    return not named or verb not in data.IN_PASSING or named in data.IN_PASSING[verb]


def _follow(clauses: list[Clause]) -> bool:
    """One thing after another; nobody goes on after going away or to bed, and two people do the same kind of thing."""
    for first, second in pairwise(clauses):
        verb, then = first.predicate.english, second.predicate.english
        if first.predicate is second.predicate and not second.shared:
            if (
                (first.habit and verb not in data.HABITS)
                or verb in ("know", "understand", "wear")
                or not _alike(first, second)
            ):
                return False
        elif (
            (first.link == "-고" and not _leads_to(first, second))
            or (verb == "have" and then in ("sleep", "wash", "work"))
            or (verb == "be glad" and second.tense != "past")
        ):
            return False
    when = _adverb(clauses[0], "when")
    if when and when.korean not in data.NEAR and any(clause.predicate.english in data.SMALL for clause in clauses):
        return False
    if clauses[0].predicate.english == "be bored" and _thing(clauses[1]) == "이메일":
        return False
    moved = clauses[0].predicate.english in ("be sad", "be glad")
    if moved and (len(clauses) > 2 or clauses[1].predicate.english == "eat"):
        return False
    trouble = data.AFTER_TROUBLE.get(clauses[0].link)
    return len(clauses) < 3 or trouble is None or clauses[2].predicate.english in trouble


def _leads_to(first: Clause, second: Clause) -> bool:
    verb, then = first.predicate.english, second.predicate.english
    if first.habit or verb in data.LAST or (then in ("sleep", "rest") and verb not in data.THEN_BED):
        return False
    if verb in ("cook", "make"):
        return then in data.AFTER_COOKING
    return verb != "walk" and not {verb, then} <= {"take a walk", "exercise", "swim"}


def _alike(first: Clause, second: Clause) -> bool:
    """Whether two objects are of one kind."""
    if not first.object or not second.object:
        return True
    both = {first.object.noun, second.object.noun}
    return any(both <= {*lexicon("full").among(kind)} for kind in data.KINDS)


def _may_be_asked(clause: Clause) -> bool:
    verb, asked = clause.predicate.english, clause.asked
    if not asked or "copula" in clause.predicate.marks or (clause.object and clause.object.pointer == "how many"):
        return True
    if (
        sum(extra.role not in ("to", asked) for extra in clause.extras) > 1
        or clause.modal
        or _is_stranger(clause.subject)
    ):
        return False
    if (clause.object and clause.object.adjective and asked != "subject") or (verb, clause.tense) == ("like", "past"):
        return False
    if asked == "object":
        place, places = _place(clause), {noun.korean for noun in clause.predicate.places}
        asked_for = data.ASK_WHO if _thing(clause) == "누구" else data.ASK_WHAT
        return verb in asked_for and (not place or place in places)
    if asked == "when":
        return verb in (data.ASK_WHEN_HABITUAL if clause.habit else data.ASK_WHEN)
    if asked == "at":
        return verb in data.ASK_WHERE
    if asked == "why":
        return verb in data.ASK_WHY and clause.tense != "future" and (not clause.habit or verb in ("learn", "dislike"))
    if asked == "to":
        return not clause.habit or verb == "live" or _has(clause, "when", "often")
    return asked != "subject" or not clause.habit or verb in data.HABITS


def _may_be_ordered(clause: Clause) -> bool:
    return clause.predicate.english in data.ORDERED and _is_fit_order(clause)


def _is_fit_order(clause: Clause) -> bool:
    verb, thing, name = clause.predicate.english, clause.object, _thing(clause)
    if (_is_stranger(thing) and verb != "call") or (thing and thing.adjective and verb not in ("buy", "wear", "read")):
        return False
    if (verb == "take off" and name in data.KEPT_ON) or (verb == "write" and name not in data.WRITTEN_DOWN):
        return False
    if (verb in ("go", "come") and _place(clause) in data.ABROAD) or _how(clause) in ("잘", "혼자", "많이", "늦게"):
        return False
    if verb in ("eat", "drink") and thing and thing.number > 1:
        return False
    return not _has(clause, "at") or verb in data.ORDERED_SOMEWHERE


def _may_be_requested(clause: Clause) -> bool:
    own = clause.object is not None and clause.object.noun.kind == "own"
    asked = clause.predicate.english in data.ORDERED | data.REQUESTED_TOO
    return asked and not own and not _has(clause, "at") and _is_fit_order(clause)


def _may_be_forbidden(clause: Clause) -> bool:
    verb = clause.predicate.english
    abroad = verb in ("go", "come") and _place(clause) in data.ABROAD
    if _is_stranger(clause.object) or verb in ("write", "enter") or abroad or (verb == "sleep" and _has(clause, "at")):
        return False
    plain = all(extra.role == "to" for extra in clause.extras)
    return plain or (verb in data.FORBIDDEN_HOW and _how(clause) not in ("잘", "일찍", "천천히", "다시", "빨리"))


def _may_be_suggested(clause: Clause) -> bool:
    thing, verb = clause.object, clause.predicate.english
    if thing and (thing.adjective or thing.pointer or thing.number > 1 or (thing.number and verb != "drink")):
        return False
    if thing and verb == "buy" and thing.noun.korean not in data.IN_PASSING["buy"]:
        return False
    return _place(clause) not in data.NOT_TOGETHER and _thing(clause) not in ("약", "비타민")
