"""What somebody would say: whether the parts of a clause suit each other, and what people ask, command and link.

Who does what to what, when, how often and how is data: decision lists over the facts of a clause
(tables/restrictions.yaml) and the words they name (tables/semantics.yaml). The full level keeps to them, and the
demo's few words do without.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from operator import itemgetter
from typing import Any

from ..errors import DataError, unknown
from .english_realization import is_message
from .frames import Clause, Phrase, SentenceFrame
from .lexicon import COPULA, Adverb, Noun, lexicon
from .tables import read_yaml, split_list, word_sets

VERBS, ADJECTIVES, NOUNS = word_sets("verbs"), word_sets("adjectives"), word_sets("nouns")
Facts = dict[str, Any]
"""What rules speak of: words, flags and sets of words by the name of the fact."""
Test = tuple[Callable[[Facts], Any], Callable[[Any], bool], bool]
"""Which facts to look at, what to ask of them, and the answer that is needed."""
_SETS = ("marks", "roles")


@lru_cache(100)
def noun_class(*names: str) -> frozenset[Noun]:
    """Return the nouns of these classes as a set."""
    return frozenset(lexicon("full").in_classes(*names))


def max_count(noun: Noun, verb: str) -> int:
    """Return how many of these one buys, eats, has, …; 0 where nobody counts."""
    most: int = read_yaml("semantics.yaml")["counts"].get(verb, 0)
    return min(most, 2) if noun.counter == "대" or noun.korean in NOUNS["few_at_once"] else most


def satisfies_restrictions(clause: Clause) -> bool:
    """Return True if subject, object, time, number and manner of a clause suit its predicate."""
    facts = clause_facts(clause)
    if not all(allows(rules, facts) for rules in ("subject", "object", "time", "mode", "manner")):
        return False
    adorned, relatives = 0, []
    for phrase in clause.phrases():
        if not attributes_allowed(phrase, clause):
            return False
        adorned += phrase.adjective is not None or phrase.number > 0
        relatives += [(phrase.noun.korean, phrase.relative)] if phrase.relative else []
    adjuncts = sum(adjunct.role not in ("to", "give", "from", "than") for adjunct in clause.adjuncts)
    if adjuncts + adorned + (clause.negation != "") > 2:
        return False  # not too much is said at once
    subject = clause.subject
    if clause.degree and subject and not subject.determiner and not _comparison_allowed(clause, subject):
        return False
    return all(
        allows("relative", {**with_prefix("inner_", clause), **facts, "head": head}) and satisfies_restrictions(clause)
        for head, clause in relatives
    )


# Facts and rules


def clause_facts(clause: Clause) -> Facts:
    """Return the facts that the rules of restrictions.yaml may name."""
    predicate, subject, thing, modal, link = clause.predicate, clause.subject, clause.object, clause.modal, clause.link
    roles = {adjunct.role: adjunct.constituent for adjunct in clause.adjuncts}
    receiver, place = roles.get("give"), clause.place
    return {
        "verb": predicate.english, "quality": predicate.quality, "marks": predicate.marks,
        "adjective": predicate.verb.adjective, "verb_at_place": f"{predicate.english}/{place}",
        "subject": subject.noun.korean if subject else "", "subject_is": _animacy(subject),
        "subject_pronoun": subject.noun.pronoun if subject else "", "elder": clause.has_elder_subject,
        "counted_in": subject.noun.counter if subject and subject.number else "",
        "object": clause.object_noun, "object_is": _animacy(thing), "object_kind": thing.noun.kind if thing else "",
        "object_determiner": thing.determiner if thing else "",
        "object_number": str(thing.number) if thing and thing.number else "",
        "object_quality": thing.adjective.quality if thing and thing.adjective else "",
        "kin_receiver": receiver.noun.korean if isinstance(receiver, Phrase) and receiver.noun.kind == "kin" else "",
        "place": place, "how": clause.manner, "roles": roles.keys(), "other_roles": roles.keys() - {"to"},
        "several_adjuncts": len(clause.adjuncts) > 1, **time_facts(clause.adverb("when")),
        "tense": clause.tense, "modal": modal, "negation": clause.negation, "habit": clause.habit, "now": clause.now,
        "person": clause.person, "scrambled": clause.scrambled, "wh": clause.wh_role, "link": link,
        "linked": link or clause.shares_subject,
    }  # fmt: skip


def time_facts(when: Adverb | None) -> Facts:
    """Return the facts of an adverb of time: its name, its kind, and whether it is a full or half hour."""
    if when is None:
        return {"when": "", "time": "", "sharp": False}
    kind = when.quantity.partition(" ")[0] or ("remote" if when.korean in NOUNS["remote_times"] else "named")
    if kind == "from-to":
        kind = "hours" if "o'clock" in when.english else "days"
    return {"when": when.korean, "time": kind, "sharp": when.english.endswith(("o'clock", ":30"))}


def with_prefix(prefix: str, clause: Clause) -> Facts:
    """Return the facts of a second clause under prefixed names."""
    return {prefix + name: value for name, value in clause_facts(clause).items()}


def _animacy(phrase: Phrase | None) -> str:
    """Return thing, animal, person, stranger (known by an occupation) or who; "" without a phrase."""
    if phrase is None:
        return ""
    noun = phrase.noun
    if not noun.is_person:
        return "animal" if noun.animate else "thing"
    return {"question": "who", "count": "stranger"}.get(noun.kind, "person")


def allows(rules: str, facts: Facts) -> bool:
    """Return True if a decision list of restrictions.yaml allows these facts: the first rule that matches decides."""
    for condition, requirement in _rules(rules, facts["verb"]):
        for get, test, wanted in condition:
            if test(get(facts)) is not wanted:
                break
        else:
            return requirement is not None and all(test(get(facts)) is wanted for get, test, wanted in requirement)
    return True


@lru_cache(5000)
def _rules(name: str, verb: str) -> list[tuple[list[Test], list[Test] | None]]:
    """Return the rules that can match a verb: the tests of `if` and of `only_if`."""
    rules = []
    for condition, requirement in _all_rules(name):
        of_verb = condition.get("verb")
        if of_verb is None or of_verb[1](verb) is of_verb[2]:
            tests = [test for fact, test in condition.items() if fact != "verb"]
            rules.append((tests, None if requirement is None else [*requirement.values()]))
    return rules


@lru_cache(50)
def _all_rules(name: str) -> list[tuple[dict[str, Test], dict[str, Test] | None]]:
    rules = []
    for number, rule in enumerate(read_yaml("restrictions.yaml")[name], 1):
        place = f"restrictions.yaml: rule {number} of {name}"
        if not isinstance(rule, dict) or "if" not in rule or rule.keys() - {"if", "only_if"}:
            raise DataError(f"{place} must have `if` and perhaps `only_if`, not {rule}")
        tests = {part: {fact: _test(fact, spec, place) for fact, spec in rule[part].items()} for part in rule}
        rules.append((tests["if"], tests.get("only_if")))
    return rules


def _test(fact: str, spec: str | bool, place: str) -> Test:
    names = fact.split("+")
    for name in names:
        if name.removeprefix("inner_").removeprefix("next_") not in (facts := {*clause_facts(Clause(COPULA)), "head"}):
            raise DataError(f"{place}: {unknown('fact', name, facts)}")
    get = itemgetter(*names)
    if isinstance(spec, bool):
        return get, bool, spec
    listed, _, without = spec.removeprefix("not ").partition(" but not ")
    members = _members(fact, listed, place) - _members(fact, without, place)
    if fact in _SETS:
        return get, members.isdisjoint, spec.startswith("not ")
    return get, members.__contains__, not spec.startswith("not ")


def _members(fact: str, text: str, place: str) -> frozenset[Any]:
    """Return the words of a condition: words, lists, keys or pairs of tables, classes of nouns."""
    members: set[Any] = set()
    lists = VERBS if fact.endswith("verb") else ADJECTIVES if fact.endswith("quality") else NOUNS
    for item in text.split("|") if text else ():
        name = item.removeprefix("$")
        if name == item:
            members.add("" if item == "none" else item)
        elif name in read_yaml("semantics.yaml")["tables"]:
            table = word_sets(name)
            members |= {(key, word) for key in table for word in table[key]} if "+" in fact else table.keys()
        elif name in lists:
            members |= lists[name]
        elif name in lexicon("full").classes:
            members |= {noun.korean for noun in noun_class(name)}
        else:
            raise DataError(f"{place}: no list, table or class of nouns is named {name}")
    return frozenset(members)


# Attributes


def attributes_allowed(phrase: Phrase, clause: Clause) -> bool:
    """Return True if what stands before a noun suits it and the predicate."""
    noun, verb = phrase.noun, clause.predicate.english
    planned = clause.tense == "future" and clause.has_role("when")
    plain = clause.now or clause.modal in ("progressive", "can") or clause.manner != ""
    if phrase.adjective and phrase is clause.object:
        moved = clause.scrambled and clause.tense == "future"
        fitting = phrase.adjective.quality in word_sets("described").get(verb, ())
        if plain or moved or clause.modal == "must" or _animacy(clause.subject) == "stranger" or not fitting:
            return False
    if phrase.number == 1 and clause.modal:
        return False
    if (phrase.number or phrase.determiner == "how many") and (plain or planned or not max_count(noun, verb)):
        return False
    if phrase.determiner in ("this", "that"):
        return noun.korean not in NOUNS["no_demonstrative"]
    possessed = noun in noun_class("clothes", "headwear", "owned", "footwear") and noun.korean not in NOUNS["not_mine"]
    return phrase.determiner != "my" or noun.korean in NOUNS["mine"] or possessed


def _comparison_allowed(clause: Clause, subject: Phrase) -> bool:
    """Return True if the compared nouns go together.

    Without *this*, only people, foods and drinks are compared, and only named things are the most of all.
    """
    if clause.degree == "most":
        return subject.noun.kind in ("bare", "name") and clause.predicate.quality != "good"
    than = next(phrase for phrase in clause.phrases() if phrase is not subject)
    return subject.noun.animate or any({subject.noun, than.noun} <= noun_class(kind) for kind in ("food", "drink"))


# What people say to each other: the lists with the names of moods, `linked` and `next`


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
    if crowded or clause.modal or _animacy(clause.subject) == "stranger" or (thing and thing.adjective):
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
