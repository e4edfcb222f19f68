"""Which of some languages a text is written in.

First by its script: how much of the text is written in that of each language. Where several share a script, by their
commonest words and letters. The confidence, from 0 to 100, is about these languages only: no other is thought of.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from ...data.languages import SCRIPTS, script_of
from .common_words import LETTERS, WORDS

ENOUGH = 4000  # characters of a text that are looked at
A_HIT = 1.5  # what a common word adds to the log-odds of its language
USUAL = 1 / 8  # of its words are hits where none is known: fewer than its own language has, more than another's

_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_KANA = re.compile(r"[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_DENSE = ("Hangul", "Japanese", "Chinese")  # a character says about as much as two letters do


@dataclass(frozen=True)
class Detected:
    """A language, and how sure that is."""

    language: str
    confidence: float


def detect(text: str, languages: Sequence[str]) -> list[Detected]:
    """Those it may be in, the likeliest first. Of a text without letters nothing is known: the first, with 0."""
    text = text[:ENOUGH]
    written = _letters_of(text, languages)
    total = sum(written.values())
    sharing: dict[str | None, list[str]] = defaultdict(list)
    for language in dict.fromkeys(languages):
        sharing[script_of(language)].append(language)
    found = [
        Detected(language, round(100 * written[script] / total * part, 1))
        for script, sharers in sharing.items()
        if written[script]
        for language, part in _shared(text, sharers).items()
    ]
    sure = sorted((one for one in found if one.confidence), key=lambda one: -one.confidence)
    return sure or [Detected(language, 0.0) for language in languages[:1]]


def _letters_of(text: str, languages: Sequence[str]) -> dict[str | None, float]:
    """How much of the text is in each script; under None, what is in no script that is known."""
    written: dict[str | None, float] = defaultdict(float)
    for script, letters in SCRIPTS.items():
        written[script] = len(letters.findall(text)) * (2 if script in _DENSE else 1)
    # Chinese characters are in Japanese texts too: where there is kana, or nobody speaks of Chinese, they are Japanese.
    served = {script_of(language) for language in languages}
    japanese = "Japanese" in served and (_KANA.search(text) or "Chinese" not in served)
    if japanese:
        written["Chinese"] = 0
    else:
        written["Japanese"] -= written["Chinese"]
    known = re.compile("|".join(letters.pattern for letters in SCRIPTS.values()))
    written[None] = len(_LETTER.findall(known.sub("", text)))
    return written


def _shared(text: str, languages: Sequence[str]) -> dict[str, float]:
    """The probability of each of several languages of one script."""
    if len(languages) == 1:
        return {languages[0]: 1.0}
    words = [word.lower() for word in _WORD.findall(text)]
    hits = {language: _hits(words, language) for language in languages}
    most = max(hits.values())
    odds = {language: exp(A_HIT * (count - most)) for language, count in hits.items()}
    total = sum(odds.values())
    return {language: one / total for language, one in odds.items()}


def _hits(words: Sequence[str], language: str) -> float:
    code = re.split("[-_]", language.lower())[0]
    if code not in WORDS:
        return USUAL * len(words)
    common, letters = WORDS[code], set(LETTERS.get(code, ""))
    return sum((word in common) + (not letters.isdisjoint(word)) for word in words)
