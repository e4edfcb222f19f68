"""TMX and XLIFF: sentence pairs from XML, streamed through expat.

Nothing is fetched, no entity declared, and no text, tag or depth grows without end.
"""

import re
from collections.abc import Iterator
from typing import NoReturn
from xml.parsers import expat

from ...errors import HeedfulError
from ..languages import Languages
from ..pairs import Pair
from .files import MAX_BYTES, InputFile, OtherLanguageError

MAX_DEPTH = 100
_PROLOGUE = rb"\A(?:\s|<\?[^>]*>|<!--(?:[^-]|-(?!->))*-->|<!DOCTYPE[^>\[]*(?:\[[^\]]*\]\s*)?>)*+"

# Inline elements that hold a program's codes (<b>, {0}) instead of words; both formats name them alike.
CODES = frozenset({"bpt", "ept", "ph", "it", "ut"})


def _signature(root: str) -> re.Pattern[bytes]:
    """Return a pattern for the beginning of a document with this root element."""
    return re.compile(_PROLOGUE + rb"<(?:\w+:)?" + root.encode() + rb"[\s>]")


class Document:
    """A document while it is read. A format says what to do when an element opens and closes.

    `collect` in `opened` gathers the words up to `collected` in `closed`, those of inline elements included.
    """

    def __init__(self, file: InputFile, languages: Languages) -> None:
        self.file, self.languages = file, languages
        self.pairs: list[Pair] = []
        self.languages_found: list[str] = []
        self._depth = self._inside_code = self._length = 0
        self._parts: list[str] | None = None
        self._parser = expat.ParserCreate()
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._parser.EntityDeclHandler = self._parser.SkippedEntityHandler = self._refuse_entity

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        raise NotImplementedError

    def closed(self, name: str) -> None:
        raise NotImplementedError

    @property
    def line(self) -> int:
        return self._parser.CurrentLineNumber

    def collect(self) -> None:
        self._parts, self._length = [], 0

    def collected(self) -> str | None:
        """Return the text since `collect`, or None if it is too long."""
        parts, self._parts = self._parts or [], None
        return "".join(parts) if self._length <= MAX_BYTES else None

    def add_pair(self, source: str | None, target: str | None, line: int) -> None:
        """Add one pair; a side that is None was too long."""
        if source is None or target is None:
            self.file.drop("too long", line)
        else:
            self.pairs.append(self.file.pair(source, target, line))

    def __iter__(self) -> Iterator[Pair]:
        """All pairs; an error where no part of the document holds both languages."""
        fed = 0
        for chunk in self.file.chunks():
            self._feed(chunk)
            fed += len(chunk)
            if fed - self._parser.CurrentByteIndex > MAX_BYTES:
                raise self.file.error("a tag or comment of over 1 MiB", self.line)
            yield from self._taken()
        self._feed(b"", final=True)
        yield from self._taken()
        if self.languages.places(self.languages_found) is None:
            languages = ", ".join(self.languages_found[:20]) or "none"
            raise OtherLanguageError(f"{self.file.name}: {self.languages} were asked for; the file has: {languages}")

    def saw(self, language: str) -> None:
        if language and language not in self.languages_found and len(self.languages_found) < 1000:
            self.languages_found.append(language)

    def _taken(self) -> list[Pair]:
        pairs, self.pairs = self.pairs, []
        return pairs

    def _feed(self, chunk: bytes, final: bool = False) -> None:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            what = expat.ErrorString(error.code)
            raise self.file.error(f"broken XML at column {error.offset + 1}: {what}", error.lineno) from None
        except (LookupError, ValueError) as error:  # an encoding that Python does not have, or not as single bytes
            if isinstance(error, HeedfulError):
                raise
            raise self.file.error(f"broken XML: {error}", self.line) from None

    def _refuse_entity(self, name: str, *_: object) -> NoReturn:
        raise self.file.error(f"the entity {name!r}: entities of a file's own are not allowed", self.line)

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.file.error(f"elements are nested more than {MAX_DEPTH} deep", self.line)
        if self._parts is None:
            self.opened(_local(name), attributes)
        elif self._inside_code or _local(name) in CODES:
            self._inside_code += 1

    def _end(self, name: str) -> None:
        self._depth -= 1
        if self._inside_code:
            self._inside_code -= 1
        else:
            self.closed(_local(name))

    def _text(self, text: str) -> None:
        if self._parts is not None and not self._inside_code:
            self._length += len(text)
            if self._length <= MAX_BYTES:
                self._parts.append(text)


TMX_SIGNATURE, XLIFF_SIGNATURE = _signature("tmx"), _signature("xliff")


class TMX(Document):
    """A pair from each unit of a translation memory that has both languages; ko-KR matches ko.

    Of several segments in one language the first counts.
    """

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
                self.add_pair(segments[places[0]], segments[places[1]], self.start)


class XLIFF(Document):
    """A pair from each translated unit of XLIFF 1.2; suggestions (alt-trans) are ignored."""

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
            if name == "target":  # a translation that waits for someone is like gettext's fuzzy one
                state = attributes.get("state", "")
                waits = "fuzzy" if state.startswith("needs-") else ""
                self.fault = "untranslated" if state in ("new", "needs-translation") else waits
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
                self.add_pair(self.texts[self.places[0]], self.texts[self.places[1]], self.start)


def _local(name: str) -> str:
    return name.rpartition(":")[2]
