"""Language codes: how they match, what they are called, and in which script a language is written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import DataError

CODE = re.compile(r"[a-z]{2,3}([-_][a-z0-9]{1,8})*", re.IGNORECASE)

SCRIPTS = {
    "Latin": re.compile(
        r"[A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02af\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a]"
    ),
    "Hangul": re.compile(r"[\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb]"),
    "Japanese": re.compile(r"[\u3041-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f]"),
    "Chinese": re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"),
    "Cyrillic": re.compile(r"[\u0400-\u052f\u1c80-\u1c88\u2de0-\u2dff\ua640-\ua69f]"),
    "Greek": re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]"),
    "Arabic": re.compile(r"[\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc]"),
    "Hebrew": re.compile(r"[\u0590-\u05f4\ufb1d-\ufb4f]"),
    "Thai": re.compile(r"[\u0e01-\u0e5b]"),
    "Devanagari": re.compile(r"[\u0900-\u097f]"),
}

# Languages written in one script only; a language that is not here is not checked.
_WRITTEN_IN = {
    "Latin": "af ca cs cy da de en eo es et eu fi fr ga gl hr hu id is it la lt lv ms mt nb nl nn no pl pt ro sk sl "
    "sq sv sw tl tr vi",
    "Hangul": "ko",
    "Japanese": "ja",
    "Chinese": "zh",
    "Cyrillic": "be bg kk ky mk mn ru tg uk",
    "Greek": "el",
    "Arabic": "ar fa ps ur",
    "Hebrew": "he yi",
    "Thai": "th",
    "Devanagari": "hi mr ne sa",
}
_SCRIPT_OF = {code: script for script, codes in _WRITTEN_IN.items() for code in codes.split()}

# What a header row may call a language, beside its code.
_NAMES = {
    "ar": "arabic العربية",
    "de": "german deutsch 독일어",
    "en": "english 영어",
    "es": "spanish español 스페인어",
    "fr": "french français 프랑스어",
    "ja": "japanese 日本語 일본어",
    "ko": "korean 한국어",
    "ru": "russian русский 러시아어",
    "zh": "chinese 中文 중국어",
}


def script_of(code: str) -> str | None:
    """The one script a language is written in, a key of SCRIPTS, where that is known."""
    return _SCRIPT_OF.get(_parts(code)[0])


def matches(wanted: str, found: str) -> bool:
    """Whether a tag is of the wanted language: ko matches ko and ko-KR, pt-BR matches pt_BR and not pt."""
    parts = _parts(wanted)
    return _parts(found)[: len(parts)] == parts


def _parts(code: str) -> list[str]:
    return re.split("[-_.@]", code.strip().lower())  # gettext also writes ko_KR.UTF-8 and sr@latin


@dataclass(frozen=True)
class Languages:
    """The direction wanted. `columns`, where given, names the languages of unnamed columns in their order."""

    source: str
    target: str
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for code in (self.source, self.target):
            if not CODE.fullmatch(code):
                raise DataError(f"{code!r} is not a language code; it looks like ko, en or pt-BR")
        if matches(self.source, self.target) or matches(self.target, self.source):
            raise DataError(f"source and target are the same language: {self.source!r} and {self.target!r}")
        if self.places(self.order) is None:
            raise DataError(
                f"the columns {','.join(self.columns)} do not name both languages; say for example "
                f"{self.source},{self.target} or {self.target},{self.source}, and anything for a column to leave out"
            )

    def __str__(self) -> str:
        return f"{self.source} and {self.target}"

    @property
    def order(self) -> tuple[str, ...]:
        """The languages of unnamed columns: the source first unless said otherwise."""
        return self.columns or (self.source, self.target)

    def knows(self, word: str) -> bool:
        """Whether a word is the code of some language: one of these two, or one that is written down here."""
        return any(matches(wanted, word) for wanted in (self.source, self.target)) or script_of(word) is not None

    def places(self, names: Sequence[str]) -> tuple[int, int] | None:
        """Where source and target stand among these names, if both do."""
        source = next((place for place, name in enumerate(names) if _names(self.source, name)), None)
        target = next((place for place, name in enumerate(names) if _names(self.target, name)), None)
        return None if source is None or target is None or source == target else (source, target)

    def keys(self, names: Sequence[str]) -> tuple[int, int] | None:
        """As `places`; names such as source and target will do too, then `order` says which languages they are."""
        lowered = [name.strip().lower() for name in names]
        for first, second in (("source", "target"), ("src", "tgt")):
            if first in lowered and second in lowered:
                source, target = self.places(self.order) or (0, 1)
                both = (self.source, self.target) if source < target else (self.target, self.source)
                lowered[lowered.index(first)], lowered[lowered.index(second)] = both
                break
        return self.places(names) or self.places(lowered)


def _names(wanted: str, name: str) -> bool:
    name = name.strip().lower()
    return matches(wanted, name) or name in _NAMES.get(_parts(wanted)[0], "").split()
