"""gettext catalogues as text (.po), message by message. Line numbers are those of the original text, msgid."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from heedful.data.pairs import Pair

from . import gettext
from .files import MAX_BYTES, InputFile
from .gettext import Message
from .languages import Languages

SIGNATURE = re.compile(rb'^msgid[ \t]+"(?:[^\n]*\n){1,40}?msgstr(?:\[0\])?[ \t]+"', re.MULTILINE)
_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?)\s*)?"([^"\\]*(?:\\.[^"\\]*)*)"')
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "b": "\b", "f": "\f", "a": "\a", "\\": "\\", '"': '"'}


@dataclass
class _Entry:
    line: int = 0
    fuzzy: bool = False
    obsolete: bool = False
    size: int = 0
    texts: dict[str, list[str]] = field(default_factory=dict)  # by keyword, in the order of the file

    def begin(self, keyword: str, line: int, obsolete: bool) -> None:
        self.texts[keyword] = []
        if keyword == "msgid":
            self.line, self.obsolete = line, obsolete

    def allows(self, keyword: str) -> bool:
        """Each keyword once, and nothing but a context before msgid."""
        return keyword not in self.texts and (keyword in ("msgctxt", "msgid") or "msgid" in self.texts)

    @property
    def is_complete(self) -> bool:
        return any(keyword.startswith("msgstr") for keyword in self.texts)

    def message(self) -> Message:
        texts = {keyword: "".join(parts) for keyword, parts in self.texts.items()}
        translations = tuple(text for keyword, text in texts.items() if keyword.startswith("msgstr"))
        fault = "obsolete" if self.obsolete else "fuzzy" if self.fuzzy else ""
        return Message(self.line, texts["msgid"], texts.get("msgid_plural", ""), translations, fault)


def read(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """The messages of one catalogue, in the encoding that its header names."""
    return gettext.pairs(file, _messages(file), languages)


def _messages(file: InputFile) -> Iterator[Message]:
    entry, keyword = _Entry(), ""
    for line in file.lines(gettext.encoding(file, file.head())):
        if line.fault:
            raise file.error("the line is over 1 MiB long", line.number)
        text, obsolete = _without_mark(line.text.strip())
        starts = text.startswith(("#", "msgctxt")) or re.match(r"msgid\b", text)
        if starts and entry.is_complete:
            yield entry.message()
            entry, keyword = _Entry(), ""
        if text.startswith("#,") and "fuzzy" in text:
            entry.fuzzy = True
        if not text or text.startswith("#"):
            continue
        found = _LINE.fullmatch(text)
        if not found:
            raise file.error(f"not a line of a gettext catalogue: {text[:60]}", line.number)
        if found[1]:
            keyword = found[1]
            if not entry.allows(keyword):
                raise file.error(f"{keyword} is out of place; a message is a msgid and then its msgstr", line.number)
            entry.begin(keyword, line.number, obsolete)
        if not keyword:
            raise file.error("a text without msgid or msgstr before it", line.number)
        entry.texts[keyword].append(_unescaped(found[2]))
        entry.size += len(text)
        if entry.size > MAX_BYTES:
            raise file.error("the message is over 1 MiB long", line.number)
    if entry.is_complete:
        yield entry.message()
    elif entry.texts:
        raise file.error("the file ends before the msgstr of its last message", entry.line)


def _without_mark(text: str) -> tuple[str, bool]:
    """The line of an obsolete message without its mark, and whether it had one. Former originals are comments."""
    if not text.startswith("#~"):
        return text, False
    text = text.removeprefix("#~").strip()
    return ("" if text.startswith("|") else text), True


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[0]), text)
