"""The baseline beside the model: remembered sentences with their words exchanged.

From each training example it keeps a template, in which known words are slots: 사과를 먹었어요 | I ate an apple becomes
[count 을/를] [verb past 해요] | I [verb past] [a count]. A new sentence is answered if its template is known; whoever
beats this has learned more than filling in forms.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from . import english_morphology as forms
from .korean_morphology import attach
from .lexicon import Level, Noun, Predicate, lexicon
from .numerals import native
from .text_checks import inflected

_MARK, _BEFORE_MARK = re.compile(r"([.,?])(?=\s|$)"), re.compile(r" ([.,?])(?=\s|$)")
_SLOT = re.compile(r"\{(\d+) (\w+)\}")
_PARTICLES = ("", "은/는", "이/가", "을/를", "과/와", "(으)로", "에", "에서", "한테", "에게", "께서", "께서는")


@dataclass(frozen=True)
class _Entry:
    """One form of one word: the slot it fills in Korean, and its English in every form."""

    slot: str
    english: dict[str, str]


class TemplateLookup:
    """Learns templates from pairs of sentences and answers with them."""

    def __init__(self, level: Level = "demo") -> None:
        self._entries = _entries(level)
        nouns = [noun.english for noun in lexicon(level).nouns.values()]
        self._names = {"I", *(english.split()[0] for english in nouns if english[0].isupper())}
        self._templates: dict[tuple[str, ...], str] = {}

    def learn(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Learn the templates of (korean, english) pairs; the first English of a template is kept."""
        for korean, english in pairs:
            key, chosen = self._slots(korean)
            if key not in self._templates and (template := self._with_slots(english, chosen)):
                self._templates[key] = template

    def answer(self, korean: str) -> str | None:
        """Return the English of a sentence whose template is known, else None."""
        key, chosen = self._slots(korean)
        template = self._templates.get(key)
        if template is None:
            return None
        line = _SLOT.sub(lambda slot: chosen[int(slot[1])].english.get(slot[2], "?"), template)
        line = _BEFORE_MARK.sub(r"\1", line)
        return line[0].upper() + line[1:]

    def _slots(self, korean: str) -> tuple[tuple[str, ...], list[_Entry]]:
        """Return the Korean template and the words in its slots; of several senses the first."""
        key, chosen = [], []
        for word in _MARK.sub(r" \1", korean).split():
            entry = self._entries.get(word)
            key.append(entry.slot if entry else word)
            if entry:
                chosen.append(entry)
        return tuple(key), chosen

    def _with_slots(self, english: str, chosen: list[_Entry]) -> str:
        """Return the English with a slot for each word, in its longest form; "" if a word is missing."""
        first, _, rest = english.partition(" ")
        opening = first if first in self._names else first[0].lower() + first[1:]
        line = _MARK.sub(r" \1", f" {opening} {rest}") + " "
        for number, entry in enumerate(chosen):
            for form, text in sorted(entry.english.items(), key=lambda item: -len(item[1])):
                if f" {text} " in line:
                    line = line.replace(f" {text} ", f" {{{number} {form}}} ", 1)
                    break
            else:
                return ""
        return line.strip()


@lru_cache(2)
def _entries(level: Level) -> dict[str, _Entry]:
    """Return every eojeol of a noun with a particle or of a predicate with an ending."""
    entries: dict[str, _Entry] = {}
    vocabulary = lexicon(level)
    for noun in vocabulary.nouns.values():
        if " " not in noun.korean:
            for korean, entry in _of_noun(noun):
                entries.setdefault(korean, entry)
    for n in range(1, 100):
        entries[native(n, before_counter=True)] = _Entry("<number>", {"word": forms.in_words(n)})
    for predicate in vocabulary.with_arguments:
        for korean, entry in _of_predicate(predicate):
            entries.setdefault(korean, entry)
    return entries


def _of_noun(noun: Noun) -> Iterator[tuple[str, _Entry]]:
    english = noun.english
    shapes = {"bare": english, "a": f"{forms.article(english)} {english}", "the": f"the {english}"}
    shapes |= {"some": f"some {english}", "many": forms.plural(english), "my": f"my {english}"}
    shapes |= {"your": f"your {english}", "at": noun.at, "to": noun.to}
    kind = f"{noun.kind}{'!' if noun.elder else ''}{'@' if noun.at else ''}"
    for particle in _PARTICLES:
        korean = attach(noun.korean, particle) if particle else noun.korean
        yield korean, _Entry(f"<{kind} {particle}>", {form: text for form, text in shapes.items() if text})


def _of_predicate(predicate: Predicate) -> Iterator[tuple[str, _Entry]]:
    head, *rest = predicate.english.split()
    kind, shapes = "adjective", {"quality": predicate.quality}
    if head != "be":
        inflections = {"base": head, "third": forms.third(head), "past": forms.past(head), "ing": forms.ing(head)}
        kind, shapes = "verb", {name: " ".join([form, *rest]) for name, form in inflections.items()}
    for name, korean in inflected(predicate.verb):
        first = "past" if "-었-" in name and kind == "verb" else next(iter(shapes))  # read is read in both
        yield korean, _Entry(f"<{kind} {name}>", {first: shapes[first], **shapes})
