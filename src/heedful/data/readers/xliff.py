"""XLIFF 1.2: units with a source and a target, within files that say which languages these are."""

from __future__ import annotations

from collections.abc import Iterator

from heedful.data.pairs import Pair

from . import markup
from .files import InputFile
from .languages import Languages

SIGNATURE = markup.signature("xliff")


def read(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """A pair from each translated unit; suggestions (alt-trans) are left alone."""
    return _Exchange(file, languages).read()


class _Exchange(markup.Document):
    def __init__(self, file: InputFile, languages: Languages) -> None:
        super().__init__(file, languages)
        self.start, self.fault, self.suggestions = 0, "", 0
        self.places: tuple[int, int] | None = None
        self.texts: list[str | None] = ["", ""]

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        if name == "xliff":
            if not (version := attributes.get("version", "1.2")).startswith("1."):
                raise self.file.error(f"XLIFF {version}; only 1.2 is read, so export it as that", self.line)
        elif name == "file":
            names = [attributes.get(f"{side}-language", "") for side in ("source", "target")]
            for language in names:
                self.saw(language)
            self.places = self.languages.places(names)
        elif name == "trans-unit":
            self.start, self.fault, self.texts = self.line, "untranslated", ["", ""]
        elif name == "alt-trans":
            self.suggestions += 1
        elif name in ("source", "target") and not self.suggestions:
            if name == "target":
                self.fault = _fault_of(attributes.get("state", ""))
            self.collect()

    def closed(self, name: str) -> None:
        if name == "alt-trans":
            self.suggestions -= 1
        elif name in ("source", "target") and not self.suggestions:
            self.texts[name == "target"] = self.collected()
        elif name == "trans-unit" and self.places:
            if fault := self.fault or ("untranslated" if self.texts[1] == "" else ""):
                self.file.drop(fault, self.start)
            else:
                self.found(self.texts[self.places[0]], self.texts[self.places[1]], self.start)


def _fault_of(state: str) -> str:
    """A translation that waits for someone is like gettext's fuzzy one."""
    if state in ("new", "needs-translation"):
        return "untranslated"
    return "fuzzy" if state.startswith("needs-") else ""
