"""English morphology: the forms of verbs, nouns and adjectives that the corpus needs, and numbers in words."""

from __future__ import annotations

from functools import lru_cache

_PAST = {
    "be": "was", "have": "had", "do": "did", "eat": "ate", "drink": "drank", "read": "read", "write": "wrote",
    "wear": "wore", "see": "saw", "buy": "bought", "sell": "sold", "make": "made", "meet": "met", "sing": "sang",
    "teach": "taught", "take": "took", "ride": "rode", "give": "gave", "send": "sent", "lose": "lost", "know": "knew",
    "forget": "forgot", "build": "built", "sleep": "slept", "swim": "swam", "run": "ran", "get": "got", "sit": "sat",
    "go": "went", "come": "came", "leave": "left", "draw": "drew", "drive": "drove", "find": "found", "stay": "stayed",
    "become": "became", "understand": "understood", "keep": "kept", "catch": "caught", "feed": "fed", "win": "won",
    "begin": "began", "say": "said", "tell": "told", "pay": "paid", "spend": "spent", "break": "broke", "fly": "flew",
    "bring": "brought", "throw": "threw", "choose": "chose", "feel": "felt", "blow": "blew", "think": "thought",
    "lend": "lent", "hold": "held", "cut": "cut",
}  # fmt: skip
_PARTICIPLE = {
    "be": "been", "eat": "eaten", "drink": "drunk", "write": "written", "wear": "worn", "see": "seen", "do": "done",
    "go": "gone", "come": "come", "run": "run", "send": "sent", "begin": "begun", "break": "broken", "become": "become",
}  # fmt: skip
_DOUBLING = {"swim", "run", "get", "sit", "chat", "stop", "plan", "begin", "win", "forget", "jog", "cut", "occur"}
_PLURAL = {
    "child": "children", "person": "people", "man": "men", "woman": "women", "mouse": "mice", "fish": "fish",
    "sheep": "sheep", "knife": "knives", "scarf": "scarves", "tooth": "teeth", "foot": "feet", "wolf": "wolves",
    "tomato": "tomatoes", "potato": "potatoes", "leaf": "leaves", "bookshelf": "bookshelves", "wife": "wives",
}  # fmt: skip
_DEGREES = {
    "cute": ("cuter", "cutest"),
    "good": ("better", "best"),
    "bad": ("worse", "worst"),
    "far": ("farther", "farthest"),
}
_SILENT_H = ("hour", "honest")
_LONG_U = ("uni", "use", "euro", "one")
_ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"


def _with_s(word: str) -> str:
    if _consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


@lru_cache(4096)
def third(verb: str) -> str:
    """The third person singular: study → studies."""
    return {"be": "is", "have": "has", "do": "does", "go": "goes"}.get(verb) or _with_s(verb)


@lru_cache(4096)
def past(verb: str) -> str:
    """The simple past: chase → chased, go → went."""
    if verb in _PAST:
        return _PAST[verb]
    if verb in _DOUBLING:
        return verb + verb[-1] + "ed"
    if _consonant_y(verb):
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")


@lru_cache(4096)
def participle(verb: str) -> str:
    """The past participle: save → saved, write → written."""
    return _PARTICIPLE.get(verb) or past(verb)


@lru_cache(4096)
def ing(verb: str) -> str:
    """The present participle: make → making, swim → swimming."""
    if verb in _DOUBLING:
        return verb + verb[-1] + "ing"
    return (verb[:-1] if verb.endswith("e") and verb not in ("be", "see") else verb) + "ing"


@lru_cache(4096)
def plural(noun: str) -> str:
    """The plural; of several words the last one takes it: bus stop → bus stops."""
    before, space, last = noun.rpartition(" ")
    return before + space + (_PLURAL.get(last) or _with_s(last))


@lru_cache(4096)
def article(word: str) -> str:
    """A or an, by the sound the next word begins with: an apple, an hour, a university."""
    vowel = word[0].lower() in "aeiou" and not word.startswith(_LONG_U)
    return "an" if vowel or word.startswith(_SILENT_H) else "a"


@lru_cache(1024)
def comparative(adjective: str) -> list[str]:
    """Words for more of it: taller; more expensive."""
    return [_degree(adjective, 0)] if _is_short(adjective) else ["more", adjective]


@lru_cache(1024)
def superlative(adjective: str) -> list[str]:
    """Words for most of it: the tallest; the most expensive."""
    return ["the", _degree(adjective, 1)] if _is_short(adjective) else ["the", "most", adjective]


def _is_short(adjective: str) -> bool:
    syllables = sum(a in "aeiouy" and b not in "aeiouy" for a, b in zip(adjective, adjective[1:] + "x", strict=True))
    return adjective in _DEGREES or syllables - adjective.endswith("e") <= 1 or _consonant_y(adjective)


def _degree(adjective: str, which: int) -> str:
    if adjective in _DEGREES:
        return _DEGREES[adjective][which]
    stem = adjective[:-1] + "i" if _consonant_y(adjective) else adjective.removesuffix("e")
    if len(stem) > 2 and stem[-1] in "bdgnt" and stem[-2] in "aeiou" and stem[-3] not in "aeiou":
        stem += stem[-1]  # big → bigger
    return stem + ("er", "est")[which]


@lru_cache(256)
def in_words(n: int) -> str:
    """A number below a hundred: 23 → twenty-three."""
    if not 0 <= n < 100:
        raise ValueError(f"numbers in words are 0 to 99, not {n}")
    if n < 20:
        return _ONES[n]
    return _TENS[n // 10] + (f"-{_ONES[n % 10]}" if n % 10 else "")
