"""Languages: what they are called, who translates between them, and which one a text is written in.

A language is detected first by its script: how much of the text is written in that of each language. Where several
share a script, by their commonest words and letters. The confidence, from 0 to 100, is about these languages only: no
other is thought of.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import exp
from pathlib import Path

from ...data.languages import CODE, SCRIPTS, matches, script_of
from ..errors import APIError
from ..models import Models, Served

# By code: the name, and where several languages share a script, common words, and letters that others do not have.
LANGUAGES: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def name_of(code: str) -> str:
    """Korean for ko, Portuguese (BR) for pt-BR; the code itself where the language has no name here."""
    language, *more = re.split("[-_]", code)
    if (entry := LANGUAGES.get(language.lower())) is None:
        return code
    return f"{entry['name']} ({'-'.join(more)})" if more else entry["name"]


TASKS = ("translation", "text-to-text")


@dataclass(frozen=True)
class Translators:
    """The models by the pair of their languages; of several for one pair, the first."""

    pairs: dict[tuple[str, str], Served]

    @classmethod
    def of(cls, models: Models) -> Translators:
        """Those of the served models that say their languages."""
        pairs: dict[tuple[str, str], Served] = {}
        for model in models.of_task(*TASKS):
            if (pair := _languages(model)) is not None:
                pairs.setdefault(pair, model)
        return cls(pairs)

    @property
    def languages(self) -> list[str]:
        """All codes, in the order of the models, sources first."""
        return list(dict.fromkeys(pair[side] for side in (0, 1) for pair in self.pairs))

    def targets(self, source: str) -> list[str]:
        """What a language is translated into."""
        return [target for of, target in self.pairs if of == source]

    def before(self, target: str) -> list[str]:
        """All codes, first those that are translated into a language: one of them, where nothing else is known."""
        return list(dict.fromkeys([*(source for source, into in self.pairs if into == target), *self.languages]))

    def code(self, requested: str) -> str:
        """The code that a language has here: en-US is answered by a model of en. Refused where there is none."""
        result = next(self._codes(requested), None)
        if result is None:
            allowed = ", ".join(self.languages) or "none, since no translator is served"
            raise APIError(400, f"{requested[:40]!r} is not supported; the languages are: {allowed}")
        return result

    def between(self, source: str, target: str) -> Served:
        """The translator of a pair."""
        if (source, target) not in self.pairs:
            into = ", ".join(self.targets(source)) or "none"
            raise APIError(
                400,
                f"{name_of(target)} ({target}) is not available as a target language from {name_of(source)} "
                f"({source}); those that are: {into}",
            )
        return self.pairs[source, target]

    def _codes(self, requested: str) -> Iterator[str]:
        """The same code, then a narrower and a wider one."""
        wanted = requested.lower().replace("_", "-")
        yield from (code for code in self.languages if code.lower().replace("_", "-") == wanted)
        yield from filter(partial(matches, requested), self.languages)
        yield from (code for code in self.languages if matches(code, requested))


def _languages(model: Served) -> tuple[str, str] | None:
    settings = model.predictor.settings
    source, target = getattr(settings, "source", None), getattr(settings, "target", None)
    codes = [code for code in (source, target) if isinstance(code, str) and CODE.fullmatch(code)]
    return (codes[0], codes[1]) if len(codes) == 2 else None


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
    result = [
        Detected(language, round(100 * written[script] / total * part, 1))
        for script, sharers in sharing.items()
        if written[script]
        for language, part in _shared(text, sharers).items()
    ]
    sure = sorted((item for item in result if item.confidence), key=lambda item: -item.confidence)
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
    scripts = re.compile("|".join(letters.pattern for letters in SCRIPTS.values()))
    written[None] = len(_LETTER.findall(scripts.sub("", text)))
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
    return {language: item / total for language, item in odds.items()}


def _hits(words: Sequence[str], language: str) -> float:
    entry = LANGUAGES.get(re.split("[-_]", language.lower())[0], {})
    if "words" not in entry:
        return USUAL * len(words)
    common, letters = set(entry["words"].split()), set(entry.get("letters", ""))
    return sum((word in common) + (not letters.isdisjoint(word)) for word in words)
