"""Particular constructions: messages, gifts, needs, comparisons, attempts, relative clauses, and what is measured."""

from dataclasses import replace
from random import Random

from . import lexicon as lex
from . import numerals
from .clause_linking import Draft
from .clauses import ClauseSampler
from .frames import Adjunct, Clause, Determiner, Phrase, SpeechLevel
from .inventory import Inventory, draw_until
from .lexicon import COPULA, I, Noun, Predicate
from .semantics import ADJECTIVES, NOUNS, VERBS

_DETERMINERS: tuple[Determiner, ...] = ("this", "that", "")


def _statement(clause: Clause, level: SpeechLevel | None = None) -> Draft:
    return "statement", [clause], level


def _question(clause: Clause, word: Phrase) -> Draft:
    clause.object, clause.wh_role = word, "object"
    return "question", [clause], None


class ConstructionSampler(ClauseSampler):
    """Draws single constructions: messages, transfers, comparisons, relative clauses, and what is measured."""

    def __init__(self, inventory: Inventory, random: Random) -> None:
        super().__init__(inventory, random)
        vocabulary, among = self.lexicon, self.lexicon.in_classes
        self.software = [verb for verb in vocabulary.verbs if "software" in verb.marks]
        of_things = [a for a in vocabulary.adjectives if len(a.subjects) > 3 and not a.subjects[0].animate]
        self.comparable = [adjective for adjective in of_things if adjective.quality not in ADJECTIVES["not_compared"]]
        self.of_people = [
            adjective for adjective in vocabulary.adjectives if adjective.quality in ADJECTIVES["of_people"]
        ]
        self.meeting = self.verbs_in(VERBS["meeting"])
        describing = [adjective for adjective in vocabulary.adjectives if adjective.quality not in ("good", "bad")]
        self.described = [
            (verb, noun, adjectives)
            for verb in vocabulary.verbs
            for noun in verb.objects
            if _can_be_described(verb, noun, among("interesting"))
            and (adjectives := [adjective for adjective in describing if noun in adjective.subjects])
        ]
        self.obtained_and_used = [
            (first, noun, second)
            for first in self.verbs_in(VERBS["obtaining"])
            for second in self.verbs_in(VERBS["using"])
            for noun in first.objects
            if noun in second.objects
            and noun.kind in ("count", "mass", "plural")
            and (first.english, second.english) != ("borrow", "sell")
        ]
        self.in_town, self.far_cities, self.tasty = among("in-town"), among("far-cities"), among("tasty")
        self.weekdays = [t for t in vocabulary.times if t.english.startswith("on ") and "weekend" not in t.english]
        self.lasting = self.verbs_in(VERBS["taking_hours"])
        self.goods = [noun for noun in among("priced") if noun.kind != "plural" and noun.korean != "자동차"]

    def verbs_in(self, names: frozenset[str]) -> list[Predicate]:
        """Return the verbs of the level that a list of semantics.yaml names."""
        return [verb for verb in self.lexicon.verbs if verb.english in names]

    # Messages of programs

    def message(self) -> Draft:
        """Draw a message of a program, formal and without a subject: 파일을 저장할 수 없습니다."""
        verb = self.pick(self.software)
        clause = Clause(verb, object=Phrase(self.pick(verb.objects)), person="I")
        self.set_mode(clause, self.inventory.modes["message"].draw(self.random))
        if self.chance({"can": 0.75}.get(clause.modal, 0.3 if clause.tense == "past" else 0)):
            clause.negation = "못"
        return _statement(clause, "합쇼")

    def offer(self) -> Draft:
        """Draw an offer of a program: 파일을 삭제하시겠습니까?"""
        verb = self.pick(self.software)
        return "offer", [Clause(verb, object=Phrase(self.pick(verb.objects)), person="you")], "합쇼"

    def status_message(self) -> Clause:
        """Draw a status message of a program: 업데이트가 실패했습니다."""
        verb = self.pick(self.lexicon.messages)
        clause = Clause(verb, Phrase(self.pick(verb.subjects)), has_tense=True)
        clause.tense = "past" if self.chance(0.8) else "future"
        return clause

    # People and things

    def transfer(self) -> Clause:
        """Draw a clause of giving or sending; 드리다 if an elder receives."""
        verb = self.pick(self.lexicon.transfer)
        clause = Clause(verb, object=Phrase(self.pick(verb.objects)))
        self.set_subject(clause)
        actor, names = clause.subject.noun if clause.subject else None, self.inventory.names
        receiver = self.pick(self.inventory.companions if clause.person == "I" else names)
        if receiver is actor or (receiver.elder and not self.full):
            receiver = draw_until(lambda name: name is not actor, lambda: self.pick(names), "receiver")
        if receiver.elder:
            clause.predicate = replace(lex.GIVE_TO_ELDER, objects=clause.predicate.objects)
            clause.object = Phrase(self.pick(self.lexicon.in_classes("given")))
        clause.adjuncts.append(Adjunct("give", Phrase(receiver)))
        return clause

    def need(self) -> Clause:
        """Draw a clause like 저는 우산이 필요해요."""
        clause = Clause(lex.NEED, object=Phrase(self.inventory.needed.draw(self.random)))
        self.set_subject(clause, dropped=0.35)
        return clause

    def fancy(self) -> Clause:
        """Draw a clause like 저는 커피가 좋아요: only of the speaker, always with a subject."""
        thing = self.pick(self.lexicon.in_classes("liked"))
        return Clause(lex.FANCY, Phrase(I), Phrase(thing), person="I", topic=True, habit=True, has_tense=True)

    def become(self) -> Clause:
        """Draw a clause like 민수는 의사가 되고 싶어 해요."""
        clause = Clause(lex.BECOME, object=Phrase(self.pick(self.occupations(students=False))), has_tense=True)
        self.set_subject(clause)
        self.name_stranger(clause)
        self.set_mode(clause, self.pick(("past", "future", "want", "want")))
        return clause

    # Comparison and attempt

    def comparison(self) -> Draft:
        """Draw a comparison: 이 가방이 그 가방보다 더 비싸요."""
        adjective = self.pick(self.comparable)
        if self.chance(0.25):
            adjective = self.pick(self.of_people)
            left, right = map(Phrase, self.random.sample(self.inventory.names, 2))
        elif adjective.quality in ADJECTIVES["compared_across_kinds"] and self.chance(0.6):
            left, right = map(Phrase, self.random.sample(adjective.subjects, 2))
        else:
            noun = self.pick([noun for noun in adjective.subjects if noun.kind in ("count", "mass")])
            left, right = Phrase(noun, "this"), Phrase(noun, "that")
        clause = Clause(adjective, left, adjuncts=[Adjunct("than", right)], degree="more")
        clause.tense = "past" if self.chance(0.2) else "present"
        return _statement(clause)

    def superlative(self) -> Draft:
        """Draw a superlative like 이 가방이 가장 비싸요."""
        adjective = self.pick(self.comparable)
        noun = self.pick(adjective.subjects)
        subject = Phrase(noun, "this" if noun.kind in ("count", "mass") and self.chance(0.6) else "")
        return _statement(Clause(adjective, subject, degree="most", tense="past" if self.chance(0.2) else "present"))

    def attempt(self) -> Draft:
        """Draw an attempt like 김치를 먹어 봤어요."""
        verbs = self.verbs_in(VERBS["attempted"])
        clause = draw_until(
            lambda c: not (c.is_of_animal_or_thing or c.has_elder_subject),
            lambda: self.event(self.pick(verbs)),
            "attempt",
        )
        clause.modal, clause.tense = "try", "past"
        clause.topic = clause.subject is not None
        return _statement(clause)

    # Relative clauses

    def relative(self, verb: Predicate, noun: Noun, *, past: bool) -> Phrase:
        """Return the noun with a relative clause, in which somebody does this to it: 제가 산 가방."""
        clause = Clause(verb)
        self.set_subject(clause, dropped=0, me=0.4)
        if "state" in verb.marks:
            clause.habit = True
        elif past or verb.marks & {"once", "creates"} or verb.english == "buy" or self.chance(0.6):
            clause.tense = "past"
        else:
            clause.now = True
        if clause.tense == "past" and self.chance(0.25):
            clause.adjuncts.append(Adjunct("when", self.inventory.times["past"].draw(self.random)))
        return Phrase(noun, relative=clause)

    def of_relative(self) -> Draft:
        """Draw a subject with a relative clause: 제가 산 가방은 비싸요."""
        verb, noun, adjectives = self.pick(self.described)
        adjective = self.pick(adjectives)
        subject = self.relative(verb, noun, past=False)
        clause = Clause(adjective, subject, topic=True)
        if subject.relative and subject.relative.tense == "past" and self.chance(0.4):
            clause.tense = "past"
        return _statement(clause)

    def with_relative(self) -> Draft:
        """Draw an object with a relative clause: 민수가 만든 빵을 먹었어요."""
        if self.chance(0.5):
            return self.of_person()
        first, noun, second = self.pick(self.obtained_and_used)
        clause = Clause(second, object=self.relative(first, noun, past=True), person="I")
        if second.english == "like":
            clause.habit = True
        else:
            self.set_mode(clause, self.pick(("past", "past", "future", "want")))
        return self.by_speaker(clause)

    def of_person(self) -> Draft:
        """Draw a person with a relative clause: 책을 읽는 학생은 친절해요; 책을 읽은 학생을 만났어요."""
        inner = draw_until(
            _tells_people_apart, lambda: self.person_event(objects=True), "action that tells people apart"
        )
        assert inner.object is not None
        inner.subject, inner.person = None, "other"
        people = [noun for noun in self.lexicon.in_classes("person") if noun is not inner.object.noun]
        head = Phrase(self.pick(people), relative=inner)
        if self.chance(0.5):
            inner.now = True
            return _statement(Clause(self.pick(self.of_people), head, topic=True))
        inner.tense = "past"
        return self.by_speaker(Clause(self.pick(self.meeting), object=head, person="I", tense="past"))

    def by_speaker(self, clause: Clause) -> Draft:
        """Return a statement of the speaker, with or without 저는."""
        if self.chance(0.5):
            clause.subject, clause.topic = Phrase(I), True
        return _statement(clause)

    # Distances, hours, dates, prices, ages and numbers

    def journey(self) -> Draft:
        """Draw a journey like 서울에서 부산까지 기차로 갔어요."""
        start, end = self.random.sample(self.in_town if self.chance(0.6) else self.far_cities, 2)
        go = self.lexicon.by_lemma["가다"]
        on_foot = [v for v in self.lexicon.verbs if v.lemma in ("걷다", "달리다") and start not in self.far_cities]
        clause = Clause(self.pick([go, *on_foot]))
        self.set_subject(clause)
        clause.adjuncts = [Adjunct("from", Phrase(start)), Adjunct("until", Phrase(end))]
        if clause.predicate is go and self.chance(0.6):
            clause.adjuncts.append(Adjunct("by", Phrase(self.vehicle_to(end))))
        return self._in_mode(clause, ("past", "past", "future"))

    def _in_mode(self, clause: Clause, modes: tuple[str, ...]) -> Draft:
        """Return a statement in one of these tenses; I and habits are topics."""
        self.set_mode(clause, self.pick(modes))
        clause.topic = clause.subject is not None and (clause.subject.noun is I or clause.habit)
        return _statement(clause)

    def vehicle_to(self, place: Noun) -> Noun:
        """Draw a vehicle: trains and planes go far, the others stay in town; only planes cross the sea."""
        if place.korean in NOUNS["abroad"]:
            return self.lexicon.nouns["비행기"]
        far = place in self.far_cities
        return self.lexicon.nouns[self.pick(("기차", "버스", "비행기") if far else ("버스", "지하철", "택시"))]

    def by_vehicle(self) -> Draft:
        """Draw a trip by vehicle like 버스로 학교에 가요."""
        clause = self.go(self.lexicon.by_lemma["가다"])
        *_, goal = clause.phrases()
        clause.adjuncts.append(Adjunct("by", Phrase(self.vehicle_to(goal.noun))))
        return self._in_mode(clause, ("past", "habit", "future"))

    def hours(self) -> Draft:
        """Draw a span of time: 세 시부터 다섯 시까지 공부했어요; 월요일부터 금요일까지 일해요."""
        clause = self.of_somebody(self.lasting)
        draft = self._in_mode(clause, ("past", "past", "habit"))
        start, length = self.pick(range(1, 10)), self.pick(range(1, 4))
        span = numerals.between_clocks(start, start + length)
        if self.chance(0.3):
            first = self.pick(range(4))
            span = numerals.between_days(self.weekdays[first], self.weekdays[first + self.pick((1, 2))])
        clause.adjuncts.append(Adjunct("when", span))
        return draft

    def month_and_day(self) -> tuple[int, int]:
        """Draw a date that exists in every month."""
        return self.pick(range(1, 13)), self.pick(range(1, 29))

    def on_date(self) -> Draft:
        """Draw an action on a date: 유월 십오 일에 만났어요."""
        clause = draw_until(lambda c: c.predicate.english != "get up", self.person_event, "dated action")
        self.set_mode(clause, "past" if "done" in clause.predicate.marks else self.pick(("past", "past", "future")))
        clause.adjuncts.append(Adjunct("when", numerals.at_time("on", numerals.date(*self.month_and_day()))))
        clause.topic = clause.subject is not None and clause.subject.noun is I
        return _statement(clause)

    def price(self) -> Draft:
        """Draw a price: 이 가방은 3만 5천 원이에요; 이 가방은 얼마예요?"""
        noun = self.pick(self.goods)
        clause = Clause(COPULA, Phrase(noun, self.pick(_DETERMINERS)), topic=True)
        if self.chance(0.25):
            return _question(clause, Phrase(lex.HOW_MUCH))
        if noun.korean in NOUNS["expensive_goods"]:
            won = 10_000 * self.pick(range(10, 100))
        elif noun in self.tasty or noun.korean == "꽃":
            won = 500 * self.pick(range(2, 20))
        else:
            won = 1000 * self.pick(range(5, 100))
        clause.object = Phrase(numerals.money(won))
        return _statement(clause)

    def birthday(self) -> Draft:
        """Draw a birthday: 제 생일은 유월 십오 일이에요; 민수의 생일은 언제예요?"""
        possessor = self.pick(self.inventory.names) if self.chance(0.5) else None
        subject = Phrase(lex.BIRTHDAY, "" if possessor else "my", possessor=possessor)
        clause = Clause(COPULA, Phrase(lex.TODAY) if self.chance(0.3) else subject, topic=True)
        if clause.subject is subject and possessor and self.chance(0.4):
            return _question(clause, Phrase(lex.WHICH_DAY))
        clause.object = Phrase(numerals.date(*self.month_and_day()))
        return _statement(clause)

    def age(self) -> Draft:
        """Draw an age: 저는 스무 살이에요; 민수는 몇 살이에요?"""
        young = [noun for noun in self.lexicon.in_classes("kin") if noun.pronoun and "older" not in noun.english]
        subject = self.pick((I, *self.inventory.names, *young))
        clause = Clause(COPULA, Phrase(subject), topic=True)
        if subject is I:
            clause.person = "I"
        elif self.chance(0.3):
            return _question(clause, Phrase(lex.HOW_OLD))
        clause.object = Phrase(numerals.age(self.pick(range(5, 55))))
        return _statement(clause)

    def time(self) -> Draft:
        """Draw a clock time: 지금 세 시 십오 분이에요; 지금 몇 시예요?"""
        clause = Clause(lex.CLOCK, adjuncts=[self.inventory.now])
        if self.chance(0.1):
            return _question(clause, Phrase(lex.WHAT_TIME))
        clause.object = Phrase(numerals.clock(*self.hour_and_minute()))
        return _statement(clause)

    def how_many(self) -> Draft:
        """Draw a question for a number: 사과 몇 개를 샀어요?"""
        clause = draw_until(_is_countable, lambda: self.person_event(objects=True), "action with a number")
        assert clause.object is not None
        clause.tense, clause.topic = "past", True
        return _question(clause, Phrase(clause.object.noun, "how many"))


def _tells_people_apart(clause: Clause) -> bool:
    """Return False for 옷을 입은 사람 or for one's own hands, which are true of everybody."""
    shared = clause.object is None or clause.object.noun.kind in ("own", "kin") or clause.object_noun == "옷"
    return not shared and "once" not in clause.predicate.marks


def _can_be_described(verb: Predicate, noun: Noun, interesting: tuple[Noun, ...]) -> bool:
    """Return True if *the noun that I …* can have an adjective; what is liked must be interesting."""
    thing = not noun.animate and noun.kind in ("count", "mass", "plural") and not noun.at
    return thing and ("state" not in verb.marks or (verb.english == "like" and noun in interesting))


def _is_countable(clause: Clause) -> bool:
    noun = clause.object.noun if clause.object else None
    is_counted = clause.predicate.english not in VERBS["uncounted"]
    return is_counted and noun is not None and noun.counter != "" and noun.kind == "count"
