"""English noun phrases: which determiner, which number.

`use` says how the noun is meant: "subject" (the one spoken of), "at hand" (the file, the light), "general" (habits and
likings: apples), "event" (one of them: an apple, some bread), "any" (as in a question or a
negation: an apple, bread), "have" (like any, but of kin: a sister), "own" (what one takes off: my hat).
"""

from __future__ import annotations

from heedful.data.grammar.english_forms import article, in_words, plural
from heedful.data.grammar.frames import ADJECTIVE, COUNTER, HEAD, NUMBER, POINTER, Phrase, Word

_POSSESSIVE = {
    "who": "their",
    "I": "my",
    "you": "your",
    "he": "his",
    "she": "her",
    "it": "its",
    "they": "their",
    "we": "our",
}
_MEASURES = {"잔": "cup"}


def noun_words(phrase: Phrase, key: int, use: str, actor: str, *, asking: bool, the: bool) -> list[Word]:
    """Determiner, adjective and noun; `the` makes an event's object definite, which is right as well."""
    noun = phrase.noun
    adjective = phrase.adjective.quality if phrase.adjective else ""
    part, determiner, english = HEAD, "", noun.english
    if phrase.owner:
        part, determiner = POINTER, f"{phrase.owner.english}'s"
    elif phrase.pointer == "how many":
        part, determiner, english = NUMBER, "how many", plural(english)
    elif phrase.pointer:
        part, determiner = POINTER, phrase.pointer
    elif phrase.number:
        part, determiner, english = NUMBER, in_words(phrase.number), _counted(phrase)
    elif phrase.relative:
        determiner = "the"
    else:
        determiner = _determiner(phrase, use, actor, asking, the, adjective or english)
        if use == "general" and noun.kind == "count":
            english = plural(english)
    words = [(word, key + part) for word in determiner.split(" ")] if determiner else []
    if adjective:
        words.append((adjective, key + ADJECTIVE))
    if " of " in english:
        measure, _, english = english.partition(" of ")
        words += [(measure, key + COUNTER), ("of", key + COUNTER)]
    return words + [(word, key + HEAD) for word in english.split(" ")]


def _counted(phrase: Phrase) -> str:
    noun, many = phrase.noun, phrase.number > 1
    if noun.kind == "mass":
        cup = _MEASURES[noun.counter]
        return f"{plural(cup) if many else cup} of {noun.english}"
    return plural(noun.english) if many else noun.english


def _determiner(phrase: Phrase, use: str, actor: str, asking: bool, the: bool, following: str) -> str:
    kind = phrase.noun.kind
    if kind in ("name", "question", "pronoun") or (kind == "bare" and use != "at hand"):
        return ""
    if kind == "kin" and use != "have":
        return "your" if asking else "my"
    if use == "own" or (kind == "own" and use != "subject"):
        return _POSSESSIVE[actor]
    if kind in ("definite", "own") or use in ("subject", "at hand"):
        return "the"
    if use == "general" or kind in ("plural", "bare"):
        return ""
    if kind == "mass":
        return "" if use != "event" else "the" if the else "some"
    return "the" if the and use == "event" else article(following)
