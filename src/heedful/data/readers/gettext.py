"""What the two forms of gettext catalogues share: which languages they hold, and pairs from their messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from heedful.data.pairs import Pair

from .files import InputFile, OtherLanguageError
from .languages import CODE, Languages


class Message(NamedTuple):
    """One message of a catalogue. The first one, without an original, is its header."""

    line: int
    singular: str
    plural: str
    translations: tuple[str, ...]
    fault: str = ""  # fuzzy or obsolete

    @property
    def is_header(self) -> bool:
        return not self.singular and len(self.translations) == 1


def pairs(file: InputFile, messages: Iterator[Message], languages: Languages) -> Iterator[Pair]:
    """The translated messages, in the direction wanted."""
    first = next(messages, None)
    if first is None:
        raise file.error("the catalogue holds no message")
    header = first.translations[0] if first.is_header else ""
    reverse = _is_reverse(file, header, languages)
    if not first.is_header:
        yield from _pairs_of(file, first, reverse)
    for message in messages:
        yield from _pairs_of(file, message, reverse)


def _pairs_of(file: InputFile, message: Message, reverse: bool) -> Iterator[Pair]:
    forms = message.translations
    if message.fault or not all(forms) or not forms:
        file.drop(message.fault or "untranslated", message.line)
        return
    yield _pair(file, message.singular, forms[0], message.line, reverse)
    if message.plural:  # the last form is the general one; a language without plurals has but one
        yield _pair(file, message.plural, forms[-1], message.line, reverse)


def _pair(file: InputFile, original: str, translation: str, line: int, reverse: bool) -> Pair:
    return file.pair(*((translation, original) if reverse else (original, translation)), line)


def _is_reverse(file: InputFile, header: str, languages: Languages) -> bool:
    """False where originals are the source and translations the target, True the other way round."""
    original = field(header, "X-Source-Language") or "en"
    original = original if CODE.fullmatch(original) else "en"  # some write C
    translation = field(header, "Language") or _language_by_name(file, languages)
    if translation is None:
        raise OtherLanguageError(
            f"{file.name}: cannot tell its language; name the file like {languages.target}.po, put it in a folder "
            f"{languages.target}, or give its header a line Language: {languages.target}"
        )
    places = languages.places((original, translation))
    if places is None:
        raise OtherLanguageError(f"{file.name}: a catalogue from {original} to {translation}, not of {languages}")
    return places == (1, 0)


def encoding(file: InputFile, head: bytes) -> str:
    """The one that the header names; UTF-8 where none is named."""
    found = re.search(rb"Content-Type:[^\n]*charset=([\w.-]+)", head)
    name = found[1].decode() if found else "utf-8"
    if name.upper() == "CHARSET":  # a template that nobody filled in
        return "utf-8"
    try:
        readable = b"msgid".decode(name) == "msgid"
    except (LookupError, ValueError):
        readable = False
    if not readable:
        raise file.error(f"its header names the encoding {name}, which cannot be read; convert the file to UTF-8")
    return name


def field(header: str, name: str) -> str | None:
    """A line of the header, as in Language: ko."""
    found = re.search(rf"^{name}:[ \t]*(\S+)", header, re.MULTILINE | re.IGNORECASE)
    return found[1] if found else None


def _language_by_name(file: InputFile, languages: Languages) -> str | None:
    """ko in ko.po, app.ko.po, app-ko_KR.po.gz and ko/LC_MESSAGES/app.mo: the code nearest to the name's end."""
    stem = re.sub(r"(\.(po|pot|mo|gmo))?(\.gz)?$", "", file.path.name)
    words = [*file.path.absolute().parts[-3:-1], *re.split(r"[.-]", stem)]
    return next((word for word in reversed(words) if languages.knows(word)), None)
