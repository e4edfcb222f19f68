"""English verb groups: auxiliaries, negation and the form of the verb, with the keys of what they express."""

from __future__ import annotations

from functools import lru_cache

from heedful.data.grammar.english_forms import ing, past, third
from heedful.data.grammar.frames import MODAL, NEGATION, TENSE, VERB, Word

_BE = {"I": ("am", "was"), "you": ("are", "were"), "they": ("are", "were")}
_PLURAL = ("I", "you", "they")  # as far as verbs can tell


@lru_cache(200_000)
def verb_words(
    english: str, person: str, tense: str, modal: str, negated: bool, question: bool, contracted: bool
) -> tuple[tuple[Word, ...], tuple[Word, ...]]:
    """An auxiliary (or none) and the rest of the verb group, with keys; a question puts the subject between them."""
    head, *rest = english.split(" ")
    after = [(word, VERB) for word in rest]
    key = VERB
    if modal in ("want", "must", "try"):
        after = [(ing(head), VERB), *after] if modal == "try" else [("to", MODAL), (head, VERB), *after]
        head, key = {"want": "want", "must": "have", "try": "try"}[modal], MODAL
    if modal == "can":
        auxiliary = "could" if tense == "past" else "can"
        return with_not(auxiliary, MODAL, negated, contracted), ((head, VERB), *after)
    if tense == "future":
        return with_not("will", TENSE, negated, contracted), ((head, key), *after)
    if modal == "progressive" or head == "be":
        form = _BE.get(person, ("is", "was"))[tense == "past"]
        if modal == "progressive":
            after = [(ing(head), VERB), *after]
        return with_not(form, MODAL if modal == "progressive" else VERB, negated, contracted), tuple(after)
    simple = past(head) if tense == "past" else third(head) if person not in _PLURAL else head
    if not negated and not question:
        return (), ((simple, key), *after)
    does = past("do") if tense == "past" else third("do") if person not in _PLURAL else "do"
    return with_not(does, key, negated, contracted), ((head, key), *after)


def with_not(auxiliary: str, key: int, negated: bool, contracted: bool) -> tuple[Word, ...]:
    """An auxiliary, and perhaps not: is, isn't, is not, cannot."""
    if not negated:
        return ((auxiliary, key),)
    if auxiliary == "am":
        return ((auxiliary, key), ("not", NEGATION))
    if contracted:
        return (({"can": "can't", "will": "won't"}.get(auxiliary, auxiliary + "n't"), NEGATION),)
    if auxiliary == "can":
        return (("cannot", NEGATION),)
    return ((auxiliary, key), ("not", NEGATION))
