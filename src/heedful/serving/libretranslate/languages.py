"""Languages: their names, the translators between them, and the detection of a text's language.

A language is detected first by its script: how much of the text is written in it. Languages that share a script are
told apart by their most frequent words and by letters that only they have. The confidence, from 0 to 100, is relative
to the languages that are served.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from pathlib import Path
from typing import Annotated

from pydantic import Field

from ...data.languages import CODE, SCRIPTS, matches, script_of
from ..errors import APIError
from ..models import Models, Served

# By code: the name; for languages that share a script, frequent words, and letters that the others do not have.
LANGUAGES: dict[str, dict[str, str]] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))


def name_of(code: str) -> str:
    """Return Korean for ko, Portuguese (BR) for pt-BR; the code itself if the language is not in the list."""
    language, *region = re.split("[-_]", code)
    if (entry := LANGUAGES.get(language.lower())) is None:
        return code
    return f"{entry['name']} ({'-'.join(region)})" if region else entry["name"]


@dataclass(frozen=True)
class Translators:
    """The models by their language pair; the first model if several have the same pair."""

    pairs: dict[tuple[str, str], Served]

    @classmethod
    def of(cls, models: Models) -> Translators:
        """Select the served models that have a source and a target language."""
        pairs: dict[tuple[str, str], Served] = {}
        for model in models.values():
            settings = model.predictor.settings
            pair = getattr(settings, "source", ""), getattr(settings, "target", "")
            has_languages = all(isinstance(code, str) and CODE.fullmatch(code) for code in pair)
            if has_languages and model.task in ("translation", "text-to-text"):
                pairs.setdefault(pair, model)
        return cls(pairs)

    @property
    def languages(self) -> list[str]:
        """All codes, sources before targets, in the order of the models."""
        return list(dict.fromkeys(pair[side] for side in (0, 1) for pair in self.pairs))

    def targets(self, source: str) -> list[str]:
        """Return the codes that a language is translated into."""
        return [pair[1] for pair in self.pairs if pair[0] == source]

    def likely_sources(self, target: str) -> list[str]:
        """Return all codes, first those that are translated into the target: the default if detection fails."""
        return list(dict.fromkeys([*(pair[0] for pair in self.pairs if pair[1] == target), *self.languages]))

    def code(self, requested: str) -> str:
        """Return the served code for a language: a model of en also serves en-US. Raise APIError if there is none."""
        narrower = [code for code in self.languages if matches(requested, code)]
        wider = [code for code in self.languages if matches(code, requested)]
        equal = [code for code in narrower if code in wider]
        if not (candidates := equal + narrower + wider):
            allowed = ", ".join(self.languages) or "none, since no translator is served"
            raise APIError(400, f"{requested[:40]!r} is not supported; the languages are: {allowed}")
        return candidates[0]

    def between(self, source: str, target: str) -> Served:
        """Return the translator of a language pair; raise APIError if there is none."""
        if (source, target) not in self.pairs:
            targets = ", ".join(self.targets(source)) or "none"
            raise APIError(
                400,
                f"{name_of(target)} ({target}) is not available as a target language from {name_of(source)} "
                f"({source}); those that are: {targets}",
            )
        return self.pairs[source, target]


MAX_CHARACTERS = 4000  # of a text that are used for detection
HIT_WEIGHT = 1.5  # what a frequent word or a letter of its own adds to a language's log-odds
DEFAULT_HIT_RATE = 1 / 8  # of a language without word list: below the rate of the right language, above the others'

_LETTER = re.compile(r"[^\W\d_]")
_WORD = re.compile(r"[^\W\d_]+")
_KANA = re.compile(r"[\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f]")
_DENSE = ("Hangul", "Japanese", "Chinese")  # scripts with about as much information in a character as in two letters


@dataclass(frozen=True)
class DetectedLanguage:
    """A language that a text may be in."""

    language: str
    confidence: Annotated[float, Field(ge=0, le=100, description="Relative to the served languages; 0 is unknown.")]


def detect(text: str, languages: Sequence[str]) -> list[DetectedLanguage]:
    """Return the languages that a text may be in, likeliest first; the first with 0 for a text without letters."""
    text = text[:MAX_CHARACTERS]
    counts = _count_letters(text, languages)
    total = sum(counts.values())
    by_script: dict[str | None, list[str]] = defaultdict(list)
    for language in dict.fromkeys(languages):
        by_script[script_of(language)].append(language)
    detected = [
        DetectedLanguage(language, round(100 * counts[script] / total * probability, 1))
        for script, candidates in by_script.items()
        if counts[script]
        for language, probability in _probabilities(text, candidates).items()
    ]
    likely = sorted((item for item in detected if item.confidence), key=lambda item: -item.confidence)
    return likely or [DetectedLanguage(language, 0.0) for language in languages[:1]]


def _count_letters(text: str, languages: Sequence[str]) -> dict[str | None, float]:
    """Count the letters of each script, dense scripts twice; all other letters under None."""
    counts: dict[str | None, float] = {
        script: len(letters.findall(text)) * (2 if script in _DENSE else 1) for script, letters in SCRIPTS.items()
    }
    # Japanese has Chinese characters too: they count as Japanese if there is kana, or if Chinese is not served.
    served = {script_of(language) for language in languages}
    if "Japanese" in served and (_KANA.search(text) or "Chinese" not in served):
        counts["Chinese"] = 0
    else:
        counts["Japanese"] -= counts["Chinese"]
    scripts = re.compile("|".join(letters.pattern for letters in SCRIPTS.values()))
    counts[None] = len(_LETTER.findall(scripts.sub("", text)))
    return counts


def _probabilities(text: str, languages: Sequence[str]) -> dict[str, float]:
    """Return the probability of each of several languages with the same script."""
    if len(languages) == 1:
        return {languages[0]: 1.0}
    lowercase = [word.lower() for word in _WORD.findall(text)]
    hits = {language: _hits(lowercase, language) for language in languages}
    most = max(hits.values())
    odds = {language: exp(HIT_WEIGHT * (count - most)) for language, count in hits.items()}
    return {language: value / sum(odds.values()) for language, value in odds.items()}


def _hits(lowercase: Sequence[str], language: str) -> float:
    entry = LANGUAGES.get(re.split("[-_]", language.lower())[0], {})
    if "words" not in entry:
        return DEFAULT_HIT_RATE * len(lowercase)
    frequent, letters = set(entry["words"].split()), set(entry.get("letters", ""))
    return sum((word in frequent) + (not letters.isdisjoint(word)) for word in lowercase)
