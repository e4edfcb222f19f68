"""gettext catalogs: as text (.po), and as compiled (.mo).

Why no library reads them: polib takes a text without its end quote and drops the last letter, accepts a .mo that was
cut short, and numbers an entry by its first comment. Here such files are errors, and lines are those of the msgid.
"""

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from ..languages import CODE, Languages
from ..pairs import Pair
from .files import MAX_BYTES, InputFile, OtherLanguageError

PO_SIGNATURE = re.compile(rb'^msgid[ \t]+"(?:[^\n]*\n){1,40}?msgstr(?:\[0\])?[ \t]+"', re.MULTILINE)
_LINE = re.compile(r'(?:(msgctxt|msgid|msgid_plural|msgstr(?:\[\d\])?)\s*)?"([^"\\]*(?:\\.[^"\\]*)*)"')
_FORMAT = re.compile(r"(?<!no-)\b(?:c|objc|python|python-brace|php|qt|kde|perl|perl-brace|javascript)-format\b")
_PLACEHOLDER = re.compile(
    r"%(?:\d+\$)?([\(\[][\w.]+[)\]]\w?|[-#0+']*(?:\*|\d+)?(?:\.\d+)?(?:hh|ll|[hljzt])?[a-zA-Z@])|(\{[\w.]*\})"
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "v": "\v", "b": "\b", "f": "\f", "a": "\a", "\\": "\\", '"': '"'}
MO_SIGNATURE = re.compile(rb"\A(?:\xde\x12\x04\x95|\x95\x04\x12\xde)")
MAX_CATALOG = 64 << 20
_CUT_SHORT = "the catalog is cut short: parts of it lie beyond its end"


def read_po(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Read a catalog in text form, in the encoding that its header names."""
    return _pairs(file, _po_messages(file), languages)


def read_mo(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Read a compiled catalog; the number of a message serves as its line."""
    return _pairs(file, _mo_messages(file), languages)


class _Message(NamedTuple):
    """One message of a catalog. The first one, without an original, is its header."""

    line: int
    singular: str
    plural: str
    translations: tuple[str, ...]
    fault: str = ""  # fuzzy or obsolete
    is_format: bool = False  # its texts hold placeholders, which a program fills

    @property
    def is_header(self) -> bool:
        return not self.singular and len(self.translations) == 1


def _pairs(file: InputFile, messages: Iterator[_Message], languages: Languages) -> Iterator[Pair]:
    """Yield the translated messages in the requested direction."""
    first = next(messages, None)
    if first is None:
        raise file.error("the catalog holds no message")
    header = first.translations[0] if first.is_header else ""
    reverse = _is_reverse(file, header, languages)
    for line, singular, plural, forms, fault, is_format in messages if first.is_header else chain([first], messages):
        if fault or not all(forms) or not forms:
            file.drop(fault or "untranslated", line)
            continue
        if is_format and _placeholders(plural or singular) != _placeholders(forms[-1]):
            file.drop("other placeholders", line)
            continue
        # The last form is the general one; a language without plurals has but one.
        for original, translation in ((singular, forms[0]), (plural, forms[-1]))[: 2 if plural else 1]:
            source, target = (translation, original) if reverse else (original, translation)
            yield file.pair(source, target, line)


def _placeholders(text: str) -> list[str]:
    """Return the placeholders of a format in an order that does not depend on theirs; %1$s counts as %s."""
    return sorted(kind or name for kind, name in _PLACEHOLDER.findall(text.replace("%%", "")))


def _is_reverse(file: InputFile, header: str, languages: Languages) -> bool:
    """Return False if originals are the source and translations the target, True in the other direction."""
    original = _field(header, "X-Source-Language") or "en"
    original = original if CODE.fullmatch(original) else "en"  # some write C
    translation = _field(header, "Language")
    if not translation:  # ko in ko.po, app.ko.po, app-ko_KR.po.gz and ko/LC_MESSAGES/app.mo: nearest to the name's end
        stem = re.sub(r"(\.(po|pot|mo|gmo))?(\.gz)?$", "", file.path.name)
        names = [*file.path.absolute().parts[-3:-1], *re.split(r"[.-]", stem)]
        translation = next((name for name in reversed(names) if languages.knows(name)), None)
    if translation is None:
        raise OtherLanguageError(
            f"{file.name}: cannot tell its language; name the file like {languages.target}.po, put it in a folder "
            f"{languages.target}, or give its header a line Language: {languages.target}"
        )
    places = languages.places((original, translation))
    if places is None:
        raise OtherLanguageError(f"{file.name}: a catalog from {original} to {translation}, not of {languages}")
    return places == (1, 0)


def _encoding(file: InputFile, head: bytes) -> str:
    """Return the encoding that the header names; UTF-8 if it names none."""
    match = re.search(rb"Content-Type:[^\n]*charset=([\w.-]+)", head)
    name = match[1].decode() if match else "utf-8"
    if name.upper() == "CHARSET":  # a template that nobody filled in
        return "utf-8"
    try:
        readable = b"msgid".decode(name) == "msgid"
    except (LookupError, ValueError):
        readable = False
    if not readable:
        raise file.error(f"its header names the encoding {name}, which cannot be read; convert the file to UTF-8")
    return name


def _field(header: str, name: str) -> str | None:
    """Return a field of the header, as in Language: ko."""
    match = re.search(rf"^{name}:[ \t]*(\S+)", header, re.MULTILINE | re.IGNORECASE)
    return match[1] if match else None


@dataclass
class _Entry:
    line: int = 0
    fuzzy: bool = False
    is_format: bool = False
    obsolete: bool = False
    size: int = 0
    texts: dict[str, list[str]] = field(default_factory=dict)  # by keyword, in the order of the file

    def allows(self, keyword: str) -> bool:
        """Return True if a keyword may follow: each once, and only a context before msgid."""
        return keyword not in self.texts and (keyword in ("msgctxt", "msgid") or "msgid" in self.texts)

    @property
    def is_complete(self) -> bool:
        return any(keyword.startswith("msgstr") for keyword in self.texts)

    def message(self) -> _Message:
        texts = {keyword: "".join(parts) for keyword, parts in self.texts.items()}
        translations = tuple(text for keyword, text in texts.items() if keyword.startswith("msgstr"))
        fault = "obsolete" if self.obsolete else "fuzzy" if self.fuzzy else ""
        return _Message(self.line, texts["msgid"], texts.get("msgid_plural", ""), translations, fault, self.is_format)


def _po_messages(file: InputFile) -> Iterator[_Message]:
    entry, keyword = _Entry(), ""
    for line in file.lines(_encoding(file, file.head())):
        if line.fault:
            raise file.error("the line is over 1 MiB long", line.number)
        text = line.text.strip()
        obsolete = text.startswith("#~")
        if obsolete:
            text = text.removeprefix("#~").strip()
            text = "" if text.startswith("|") else text  # a former original is a comment
        starts = text.startswith(("#", "msgctxt")) or re.match(r"msgid\b", text)
        if starts and entry.is_complete:
            yield entry.message()
            entry, keyword = _Entry(), ""
        if text.startswith("#,"):
            entry.fuzzy |= "fuzzy" in text
            entry.is_format |= _FORMAT.search(text) is not None
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        if not match:
            raise file.error(f"not a line of a gettext catalog: {text[:60]}", line.number)
        if match[1]:
            keyword = match[1]
            if not entry.allows(keyword):
                raise file.error(f"{keyword} is out of place; a message is a msgid and then its msgstr", line.number)
            entry.texts[keyword] = []
            if keyword == "msgid":
                entry.line, entry.obsolete = line.number, obsolete
        if not keyword:
            raise file.error("a text without msgid or msgstr before it", line.number)
        entry.texts[keyword].append(re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[0]), match[2]))
        entry.size += len(text)
        if entry.size > MAX_BYTES:
            raise file.error("the message is over 1 MiB long", line.number)
    if entry.is_complete:
        yield entry.message()
    elif entry.texts:
        raise file.error("the file ends before the msgstr of its last message", entry.line)


def _mo_messages(file: InputFile) -> Iterator[_Message]:
    """The layout: magic, revision, N, and where two tables of N (length, offset) stand, for originals and translations.

    Every offset is checked before a text is taken.
    """
    data = file.head(MAX_CATALOG + 1)
    if len(data) > MAX_CATALOG:
        raise file.error(f"a compiled catalog of more than {MAX_CATALOG >> 20} MiB")
    if not MO_SIGNATURE.match(data):
        raise file.error("not a compiled gettext catalog (its magic number is wrong)")
    order = "<" if data[0] == 0xDE else ">"
    try:
        revision, *tables = struct.unpack_from(f"{order}4I", data, 4)
        if revision >> 16 > 1:
            raise file.error(f"a catalog of revision {revision >> 16}, which is unknown")
        total = 0
        for spans in _spans(data, order, *tables):
            if any(offset + length > len(data) for length, offset in spans):
                raise file.error(_CUT_SHORT)
            total += sum(length for length, _ in spans)
        if total > len(data):
            raise file.error("the texts of the catalog overlap: together they are longer than the file")
    except struct.error:
        raise file.error(_CUT_SHORT) from None
    encoding = _encoding(file, data)
    for number, spans in enumerate(_spans(data, order, *tables), start=1):
        try:
            original, translation = (data[offset : offset + length].decode(encoding) for length, offset in spans)
        except UnicodeDecodeError as error:
            raise file.error(f"the text is not {encoding.upper()}: {error.reason}", number) from None
        _, _, original = original.rpartition("\x04")  # what stands before is the context
        singular, _, plural = original.partition("\0")
        yield _Message(number, singular, plural, tuple(translation.split("\0")))


def _spans(data: bytes, order: str, count: int, originals: int, translations: int) -> Iterator[list[tuple[int, int]]]:
    """Yield the length and offset of each original and of its translation."""
    for place in range(0, 8 * count, 8):
        yield [struct.unpack_from(f"{order}2I", data, table + place) for table in (originals, translations)]
