"""English morphology: the forms of nouns, verbs and adjectives, numbers in words, and verb groups with auxiliaries."""

from functools import lru_cache

from .frames import MODAL, NEGATION, TENSE, VERB, Tokens
from .tables import read_yaml, split_list

_TABLE = read_yaml("english_morphology.yaml")
_IRREGULAR: dict[str, dict[str, str]] = _TABLE  # by the name of the form
_DOUBLING, _SILENT_H, _LONG_U, _ONES, _TENS, MONTHS = (
    tuple(split_list(_TABLE[name])) for name in ("doubling", "silent_h", "long_u", "ones", "tens", "months")
)


def _consonant_y(word: str) -> bool:
    return word.endswith("y") and word[-2] not in "aeiou"


def _with_s(word: str) -> str:
    if _consonant_y(word):
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("s", "x", "z", "ch", "sh")) else "s")


@lru_cache(4096)
def third(verb: str) -> str:
    """Return the third person singular: study → studies."""
    return _IRREGULAR["third"].get(verb) or _with_s(verb)


@lru_cache(4096)
def past(verb: str) -> str:
    """Return the simple past: chase → chased, go → went."""
    if irregular := _IRREGULAR["past"].get(verb):
        return irregular
    if verb in _DOUBLING:
        return verb + verb[-1] + "ed"
    if _consonant_y(verb):
        return verb[:-1] + "ied"
    return verb + ("d" if verb.endswith("e") else "ed")


@lru_cache(4096)
def participle(verb: str) -> str:
    """Return the past participle: save → saved, write → written."""
    return _IRREGULAR["participle"].get(verb) or past(verb)


@lru_cache(4096)
def ing(verb: str) -> str:
    """Return the present participle: make → making, swim → swimming."""
    if verb in _DOUBLING:
        return verb + verb[-1] + "ing"
    return (verb[:-1] if verb.endswith("e") and verb not in ("be", "see") else verb) + "ing"


@lru_cache(4096)
def plural(noun: str) -> str:
    """Return the plural; of several words the last one is inflected: bus stop → bus stops."""
    before, space, last = noun.rpartition(" ")
    return before + space + (_IRREGULAR["plural"].get(last) or _with_s(last))


@lru_cache(4096)
def article(word: str) -> str:
    """Return a or an, by the first sound of the next word: an apple, an hour, a university."""
    vowel = word[0].lower() in "aeiou" and not word.startswith(_LONG_U)
    return "an" if vowel or word.startswith(_SILENT_H) else "a"


@lru_cache(1024)
def comparative(adjective: str) -> list[str]:
    """Return the words of the comparative: taller; more expensive."""
    return [_degree(adjective, "comparative", "er")] if _is_short(adjective) else ["more", adjective]


@lru_cache(1024)
def superlative(adjective: str) -> list[str]:
    """Return the words of the superlative: the tallest; the most expensive."""
    return ["the", _degree(adjective, "superlative", "est")] if _is_short(adjective) else ["the", "most", adjective]


def _is_short(adjective: str) -> bool:
    syllables = sum(a in "aeiouy" and b not in "aeiouy" for a, b in zip(adjective, adjective[1:] + "x", strict=True))
    return adjective in _IRREGULAR["comparative"] or syllables - adjective.endswith("e") <= 1 or _consonant_y(adjective)


def _degree(adjective: str, form: str, ending: str) -> str:
    if irregular := _IRREGULAR[form].get(adjective):
        return irregular
    stem = adjective[:-1] + "i" if _consonant_y(adjective) else adjective.removesuffix("e")
    if len(stem) > 2 and stem[-1] in "bdgnt" and stem[-2] in "aeiou" and stem[-3] not in "aeiou":
        stem += stem[-1]  # big → bigger
    return stem + ending


@lru_cache(256)
def in_words(n: int) -> str:
    """Return a number below a hundred in words: 23 → twenty-three."""
    if not 0 <= n < 100:
        raise ValueError(f"numbers in words are 0 to 99, not {n}")
    return _ONES[n] if n < 20 else _TENS[n // 10] + (f"-{_ONES[n % 10]}" if n % 10 else "")


# Verb groups: auxiliaries, negation and the form of the verb, with the keys of what they express

_BE = {"I": ("am", "was"), "you": ("are", "were"), "they": ("are", "were"), "we": ("are", "were")}
_WITHOUT_S = ("I", "you", "they", "we")  # as far as verbs can tell


@lru_cache(200_000)
def verb_words(
    english: str, person: str, tense: str, modal: str, negated: bool, question: bool, contracted: bool
) -> tuple[Tokens, Tokens]:
    """Return an auxiliary (or nothing) and the rest of the verb group; a question puts the subject between them."""
    head, *rest = english.split(" ")
    following = [(word, VERB) for word in rest]
    key = VERB
    if modal in ("want", "must", "try"):
        following = [(ing(head), VERB), *following] if modal == "try" else [("to", MODAL), (head, VERB), *following]
        head, key = {"want": "want", "must": "have", "try": "try"}[modal], MODAL
    if modal == "can":
        auxiliary = "could" if tense == "past" else "can"
        return with_not(auxiliary, MODAL, negated, contracted), ((head, VERB), *following)
    if tense == "future":
        return with_not("will", TENSE, negated, contracted), ((head, key), *following)
    if modal == "progressive" or head == "be":
        form = _BE.get(person, ("is", "was"))[tense == "past"]
        if modal == "progressive":
            following = [(ing(head), VERB), *following]
        return with_not(form, MODAL if modal == "progressive" else VERB, negated, contracted), tuple(following)
    inflect = past if tense == "past" else str if person in _WITHOUT_S else third
    if not negated and not question:
        return (), ((inflect(head), key), *following)
    return with_not(inflect("do"), key, negated, contracted), ((head, key), *following)


def with_not(auxiliary: str, key: int, negated: bool, contracted: bool) -> Tokens:
    """Return an auxiliary, negated if asked for: is, isn't, is not, cannot."""
    if not negated:
        return ((auxiliary, key),)
    if auxiliary != "am" and contracted:
        return (({"can": "can't", "will": "won't"}.get(auxiliary, auxiliary + "n't"), NEGATION),)
    return (("cannot", NEGATION),) if auxiliary == "can" else ((auxiliary, key), ("not", NEGATION))
