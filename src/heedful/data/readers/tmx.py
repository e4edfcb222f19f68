"""Translation memories (TMX): a unit holds a segment for each language; ko-KR will do for ko."""

from __future__ import annotations

from collections.abc import Iterator

from heedful.data.pairs import Pair

from . import markup
from .files import InputFile
from .languages import Languages

SIGNATURE = markup.signature("tmx")


def read(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """A pair from each unit that holds both languages; the first segment of a language counts."""
    return _Memory(file, languages).read()


class _Memory(markup.Document):
    def __init__(self, file: InputFile, languages: Languages) -> None:
        super().__init__(file, languages)
        self.start, self.language = 0, ""
        self.segments: dict[str, str | None] = {}

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        if name == "tu":
            self.start, self.segments = self.line, {}
        elif name == "tuv":
            self.language = attributes.get("xml:lang") or attributes.get("lang") or ""
            self.saw(self.language)
        elif name == "seg":
            self.collect()

    def closed(self, name: str) -> None:
        if name == "seg":
            self.segments.setdefault(self.language, self.collected())
        elif name == "tu":
            segments = list(self.segments.values())
            places = self.languages.places(list(self.segments))
            if places is None:
                self.file.drop("untranslated", self.start)
            else:
                self.found(segments[places[0]], segments[places[1]], self.start)
