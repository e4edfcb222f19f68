"""The language of the terminal, and the translation of Heedful's sentences into it.

The program is written in English. A catalog has for each English sentence its translation, both with placeholders:
"step {n}" matches "step 1,600". A sentence that no entry matches is printed in English.
"""

import json
import os
import re
from functools import cache
from pathlib import Path

from ..errors import ConfigError, unknown

LANGUAGES = ("en", "ko")
VARIABLE = "HEEDFUL_LANGUAGE"
# Placeholders whose values are Heedful's words too, as in the pages' script; all others are names, numbers and texts.
TRANSLATED = {"metric", "rival", "reason", "what", "unit", "kind", "role", "other_role", "more"}
_LOCALES = ("LC_ALL", "LC_MESSAGES", "LANG")  # the first that is set counts
_FOLDERS = (Path(__file__).parent / "locales", Path(__file__).parents[1] / "lens" / "page" / "locales")
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_VALUES = {"n": r"[\d.,]+%?", "more": ".*?"}  # what placeholders match, others than any text
# Korean particles, after a final consonant and after a vowel; and which Hangul final consonant each digit's name has.
_PARTICLES = {
    "이(가)": ("이", "가"),
    "을(를)": ("을", "를"),
    "은(는)": ("은", "는"),
    "과(와)": ("과", "와"),
    "(으)로": ("으로", "로"),
    "(이)라면": ("이라면", "라면"),
    "(이)어야": ("이어야", "여야"),
}
_FILLED = re.compile(rf"\{{(\w+)\}}([^\w\s{{(]*)({'|'.join(map(re.escape, _PARTICLES))})?")
_DIGIT_FINALS = (21, 8, 0, 16, 0, 0, 1, 8, 8, 0)
_RIEUL = 8

_language: str | None = None


def choose(language: str | None) -> None:
    """Set the language of the terminal; None is that of HEEDFUL_LANGUAGE or of the locale, else English.

    Raises:
        ConfigError: There is no such language; the error itself is in English.
    """
    global _language
    _language = LANGUAGES[0]
    variable = os.environ.get(VARIABLE)
    if language is None and not variable:
        locale = next(filter(None, map(os.environ.get, _LOCALES)), "")
        _language = "ko" if re.match(r"ko\b|ko_", locale) else LANGUAGES[0]
    elif (name := language or variable) in LANGUAGES:
        _language = name
    else:
        raise ConfigError(f"{'--language' if language else VARIABLE}: {unknown('language', name, LANGUAGES)}")


def current() -> str:
    """Return the language of the terminal, which the pages and pictures of a command have too."""
    if _language is None:
        choose(None)
    return _language or LANGUAGES[0]


def translate(text: str) -> str:
    """Return a sentence or a name of Heedful in the language of the terminal, or unchanged if no catalog has it."""
    language = current()
    return text if language == LANGUAGES[0] else _Catalog.of(language).translation(text) or text


class _Catalog:
    """The sentences of a language: those without placeholders by their text, the others as patterns."""

    def __init__(self, language: str) -> None:
        terminal, pages, english = (
            json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            for folder, name in ((_FOLDERS[0], language), (_FOLDERS[1], language), (_FOLDERS[1], LANGUAGES[0]))
        )
        self.names: dict[str, str] = pages["names"]
        entries = {english["phrases"][key]: text for key, text in pages["phrases"].items()}
        for section in terminal.values():
            entries |= section
        self.sentences = {source: text for source, text in entries.items() if not _PLACEHOLDER.search(source)}
        templates = [source for source in entries if source not in self.sentences]
        templates.sort(key=lambda source: -len(_PLACEHOLDER.sub("", source)))  # the most specific first
        self.templates = [(max(_PLACEHOLDER.split(each)[::2], key=len), each, entries[each]) for each in templates]

    @classmethod
    @cache
    def of(cls, language: str) -> "_Catalog":
        """Return the catalog of a language, read once."""
        return cls(language)

    def translation(self, text: str) -> str | None:
        """Return the translation of a sentence, of one after "file: ", or of two joined by a semicolon; else None."""
        if label := self._label(text):
            return label
        for literal, source, target in self.templates:
            if literal in text and (match := _pattern(source).fullmatch(text)):
                return self._filled(target, match.groupdict())
        head, _, tail = text.partition(": ")
        if tail and (translated := self.translation(tail)):
            return f"{self._label(head) or head}: {translated}"
        parts = [self.translation(part) for part in text.split("; ")] if "; " in text else []
        return "; ".join(filter(None, parts)) if parts and all(parts) else None

    def _label(self, text: str) -> str | None:
        """Return the translation of a name or of a sentence without values."""
        return self.sentences.get(text) or self.names.get(text.lower().replace(" ", "_"))

    def _filled(self, target: str, values: dict[str, str]) -> str:
        """Put values into a translation, each with the particle that its last sound takes."""

        def fill(match: re.Match[str]) -> str:
            name, closing, particle = match.groups()
            value = values[name]
            value = (self.translation(value) or value) if name in TRANSLATED else value
            return value + closing + (_particle(particle, value) if particle else "")

        return _FILLED.sub(fill, target)


@cache
def _pattern(source: str) -> re.Pattern[str]:
    """Return what a sentence with placeholders matches: each has text, {n} only numbers, {more} perhaps nothing."""
    first, *rest = _PLACEHOLDER.split(source)  # literals, with the names between them
    pattern = re.escape(first)
    for name, literal in zip(rest[::2], rest[1::2], strict=True):
        value = _VALUES.get(name, ".+?" if pattern else "(?:(?!: ).)+?")  # what is before ": " is left to `translation`
        pattern += f"(?P<{name}>{value}){re.escape(literal)}"
    return re.compile(pattern, re.DOTALL)


def _particle(particle: str, value: str) -> str:
    """Return the form of a particle after a value; unchanged if its last sound is unknown."""
    last = re.sub(r"\W+$", "", value)[-1:]
    if "가" <= last <= "힣":
        final = (ord(last) - ord("가")) % 28
    elif last.isdecimal():
        final = _DIGIT_FINALS[int(last)]
    else:
        return particle
    after_consonant, after_vowel = _PARTICLES[particle]
    return after_vowel if not final or (final == _RIEUL and after_vowel == "로") else after_consonant
