"""The course level: what a newcomer types first: I and you, who one is, too tired, where is; and fixed expressions."""

from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import Literal, cast, get_args

from ..errors import DataError
from .clause_linking import Draft
from .frames import Adjunct, Clause, Negation, Phrase, SentenceFrame, SpeechLevel
from .inventory import WeightedChoice, draw_until
from .lexicon import COPULA, EXIST, HE, WE, WHERE, YOU, I, Noun
from .sentences import SentenceSampler, is_topic
from .tables import read_rows, read_yaml, split_list

_NEGATIONS: tuple[Negation, ...] = ("지", "지", "안", "못")
_PAIRS = (
    (I, YOU), (I, YOU), (None, YOU), (YOU, I), (WE, YOU), (YOU, WE), (I, HE), (HE, I), (HE, YOU), (HE, WE), (WE, HE)
)  # fmt: skip


class CourseSampler(SentenceSampler):
    """Draws sentences of the course level."""

    def __init__(self, random: Random) -> None:
        super().__init__("course", random)
        tables, levels = read_yaml("course.yaml"), self.inventory.weights["speech_levels"]
        self.levels["statement"] = WeightedChoice(levels["course"])
        self.friends: WeightedChoice[SpeechLevel] = WeightedChoice(levels["among_friends"])
        self.bad = [
            (adjective, verb, noun)
            for lemma, verbs in tables["too_bad"].items()
            for adjective in self.lexicon.adjectives
            if adjective.lemma == lemma
            for verb in self.verbs_in(frozenset(split_list(verbs)))
            for noun in adjective.subjects
            if noun in verb.objects
        ]
        self.weak = [
            (self.by_lemma[lemma], [*self.verbs_in(verbs), *(v for v in self.lexicon.motion if v.english in verbs)])
            for lemma, verbs in ((lemma, frozenset(split_list(verbs))) for lemma, verbs in tables["too_weak"].items())
        ]
        self.of_things = self._predicates(tables["of_it"])
        self.to_people = [next(iter(self.verbs_in(frozenset([verb])))) for verb in split_list(tables["to_people"])]
        self.hunting = self.verbs_in(frozenset(["chase", "catch"]))
        self.places = [noun for noun in self.lexicon.nouns.values() if noun.at and noun.kind == "count"]

    def finish(self, draft: Draft) -> SentenceFrame:
        """Return the sentence; now and then, elders are spoken of without honorifics: 선생님이 학생을 기다렸어요."""
        sentence = super().finish(draft)
        for clause in sentence.clauses:
            if clause.subject and clause.subject.noun.elder and self.chance(0.2):
                clause.subject = replace(clause.subject, noun=_without_honorific(clause.subject.noun))
        return sentence

    # Pronouns

    def level_for(self, *people: Noun | None) -> SpeechLevel | None:
        """Return a level on which these pronouns are natural: 너 among friends, 그 in writing; None for any."""
        return "한다" if HE in people else self.friends.draw(self.random) if YOU in people else None

    def of_pronoun(self) -> Draft:
        """Draw a statement about us, you or him: 우리는 영화를 봤어요; 그는 학생이다."""
        who = self.pick((WE, WE, YOU, HE))

        def fits(clause: Clause) -> bool:
            mine = any(phrase.determiner == "my" or phrase.noun.kind == "kin" for phrase in clause.phrases())
            of_me = clause.person == "I" and clause.object is not None
            felt = clause.modal == "want" or "oneself" in clause.predicate.marks
            return (of_me or felt) and clause.person == "I" and not mine and not (felt and who is YOU)

        clause = draw_until(fits, self.core, "clause about oneself")
        clause.subject, clause.topic, clause.person = Phrase(who), True, "I" if who is WE else "other"
        return "statement", [clause], self.level_for(who)

    def to_pronoun(self) -> Draft:
        """Draw what one does to me, you, him or us: 나는 너를 사랑해; 너는 나를 기다렸어?"""
        subject, other = self.pick(_PAIRS)
        if subject is HE and self.chance(0.4):
            subject = self.pick(self.inventory.names)
        clause = Clause(self.pick(self.to_people), Phrase(subject) if subject else None, Phrase(other), topic=True)
        clause.person = "I" if subject in (I, WE, None) else "other"
        asking = subject is YOU and self.chance(0.5)
        self.set_tense(clause, negative=0.0 if asking else 0.18)
        clause.topic = is_topic(clause)
        if asking or (clause.modal == "want" and subject is YOU):
            clause.person = "you"
            return "question", [clause], "해"
        return "statement", [clause], self.level_for(subject, other)

    def roles(self) -> Draft:
        """Draw what one does to another, who could do it to the first: 고양이가 쥐를 잡았다; 쥐가 고양이를 잡았다."""
        if self.chance(0.5):
            (first, second), verbs = self.random.sample(self.inventory.animals, 2), self.hunting
        else:
            first, second = (self.inventory.others.draw(self.random) for _ in range(2))
            verbs = self.to_people
            if first is second or second.kind == "kin":
                first, second = self.random.sample(self.inventory.names, 2)
        clause = Clause(self.pick(verbs), Phrase(first), Phrase(second))
        self.set_tense(clause)
        clause.topic = is_topic(clause)
        return "statement", [clause], None

    # Who one is, and where something is

    def introduction(self) -> Draft:
        """Draw a name, a nationality, a friend or an occupation: 제 이름은 민수예요; 너는 학생이야?"""
        name, friend = Phrase(self.pick(self.inventory.names)), Phrase(self.lexicon.nouns["친구"], "my")
        nationality = Phrase(self.pick(self.lexicon.in_classes("nationalities")))
        job = Phrase(self.pick(self.occupations(students=True)))
        subject: Noun | None = I if self.chance(0.8) else None
        match self.pick(("name", "my name", "nationality", "nationality", "friend", "ours", "job", "question")):
            case "name":
                what = name
            case "my name":
                clause = Clause(COPULA, Phrase(self.lexicon.nouns["이름"], "my"), name, topic=True)
                return "statement", [clause], None
            case "friend":
                subject = self.pick((YOU, HE, HE, name.noun, name.noun))
                what = friend
            case "ours":
                subject, what = WE, self.pick((Phrase(friend.noun), Phrase(friend.noun), job, nationality))
            case "job":
                subject, what = self.pick((I, I, HE, name.noun)), job
            case "question":
                what = self.pick((job, nationality))
                return "question", [Clause(COPULA, Phrase(I) if subject else None, what, person="I", topic=True)], None
            case _:
                what = nationality
        clause = Clause(COPULA, Phrase(subject) if subject else None, what, topic=subject is not None)
        clause.person = "I" if subject in (I, WE, None) else "other"
        if what is not name and self.chance(0.15):
            clause.negation = "lexical"
        return "statement", [clause], self.level_for(subject)

    def where_is(self) -> Draft:
        """Draw a question for a place: 화장실이 어디예요? 민수는 어디에 있어요?"""
        place = Phrase(self.pick(self.places))
        if self.chance(0.5):
            clause = Clause(COPULA, place, Phrase(WHERE), topic=self.chance(0.5), wh_role="object")
            return "question", [clause], None
        subject = place if self.chance(0.5) else Phrase(self.inventory.others.draw(self.random))
        clause = Clause(EXIST, subject, adjuncts=[Adjunct("in", Phrase(WHERE))], topic=True, wh_role="in")
        return "question", [clause], None

    # Degrees, and what is too much

    def of_it(self) -> Draft:
        """Draw a quality of what both know: 정말 맛있어요; 안 비싸요."""
        clause = Clause(self.pick(self.of_things), person="it")
        clause.tense = "past" if self.chance(0.25) else "present"
        if self.chance(0.15):
            clause.negation = self.negation_for(clause.predicate, "present")
        elif self.chance(0.2):
            return "question", [clause], None
        elif self.chance(0.5):
            clause.degree = self.pick(("too", "very", "really"))
        return "statement", [clause], None

    def degree(self) -> Draft:
        """Draw a quality and its degree: 이 가방은 너무 비싸요."""
        clause = self.quality()
        clause.degree = self.pick(("too", "very", "really"))
        clause.tense = "past" if self.chance(0.25) else "present"
        clause.topic = is_topic(clause)
        return "statement", [clause], None

    def liking(self) -> Draft:
        """Draw what somebody likes or loves: 저는 음악을 정말 좋아해요; 커피를 좋아해요?"""
        clause = self.event(self.pick(self.to_people[:2]))
        clause.habit = clause.topic = True
        asking = clause.person == "I" and self.chance(0.25)
        if not asking and self.chance(0.3):
            clause.degree = "really"
        elif not asking and self.chance(0.25):
            clause.negation = self.pick(_NEGATIONS[1:3])
        clause.topic = is_topic(clause)
        return "question" if asking else "statement", [clause], None

    def too_bad(self) -> Draft:
        """Draw a fault and what nobody did because of it: 길이 너무 넓어서 동물은 길을 건너지 않았다."""
        adjective, verb, noun = self.pick(self.bad)
        reason = Clause(adjective, Phrase(noun), degree="too", link="-아서/어서")
        main = Clause(verb, object=Phrase(noun), negation=self.pick(_NEGATIONS))
        self.set_subject(main, dropped=0.35, me=0.25)
        if "animal" in verb.marks and self.chance(0.5):
            main.subject, main.person = Phrase(self.pick(self.inventory.animals)), "other"
        main.tense = reason.tense = "present" if main.negation == "못" and self.chance(0.4) else "past"
        main.topic = main.subject is not None
        main.fronted = main.topic and self.chance(0.5)
        main.drops_object = self.chance(0.6)
        return "statement", [reason, main], None

    def too_weak(self) -> Draft:
        """Draw a state and what it kept somebody from doing: 동물은 너무 피곤해서 길을 건너지 않았다."""
        adjective, verbs = self.pick(self.weak)
        reason = Clause(adjective, degree="too", link="-아서/어서")
        of_animal = adjective.lemma in ("피곤하다", "졸리다", "배고프다") and self.chance(0.4)
        if of_animal:
            reason.subject = Phrase(self.pick(self.inventory.animals))
        else:
            self.set_subject(reason)
            if reason.subject and not reason.subject.noun.pronoun:
                reason.subject = Phrase(self.pick(self.inventory.names))  # somebody of whom English says he or she
        verb = self.pick([verb for verb in verbs if "animal" in verb.marks or not of_animal])
        main = self.go(verb) if "motion" in verb.marks else self.event(verb, of=reason)
        main.person, main.subject, main.shares_subject = reason.person, None, True
        main.negation = self.pick(_NEGATIONS)
        main.tense = reason.tense = "present" if main.negation == "못" and self.chance(0.4) else "past"
        reason.topic = reason.subject is not None
        return "statement", [reason, main], None


@lru_cache(20)
def _without_honorific(noun: Noun) -> Noun:
    return replace(noun, elder=False)


# What people type first

Kind = Literal["fixed", "grammar"]


@dataclass(frozen=True, slots=True)
class FirstContact:
    """A sentence with its other wordings and its English answers, the canonical ones first."""

    kind: Kind
    levels: tuple[SpeechLevel, ...]
    korean: tuple[str, ...]
    english: tuple[str, ...]


@lru_cache(1)
def first_contact_sentences() -> tuple[FirstContact, ...]:
    """Return the hand-written sentences of `first_contact.tsv`: greetings and fixed expressions, then the others."""
    sentences = []
    for row in read_rows("first_contact.tsv", "kind", "levels", "korean", "english"):
        kind = cast("Kind", row.checked("kind", get_args(Kind)))
        korean, english = (tuple(row[language].split(" | ")) for language in ("korean", "english"))
        levels = cast("tuple[SpeechLevel, ...]", tuple(row.listed("levels")))
        if unknown := set(levels) - set(get_args(SpeechLevel)):
            raise DataError(f"{row.place}: no speech level is named {', '.join(unknown)}")
        sentences.append(FirstContact(kind, levels, korean, english))
    return tuple(sentences)
