"""gettext catalogues as compiled (.mo). Every offset is checked: a catalogue cut short is an error. Lines are messages.

The layout: magic, revision, N, and where two tables of N (length, offset) stand, for originals and translations.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator

from heedful.data.pairs import Pair

from . import gettext
from .files import InputFile
from .gettext import Message
from .languages import Languages

SIGNATURE = re.compile(rb"\A(?:\xde\x12\x04\x95|\x95\x04\x12\xde)")
MAX_CATALOGUE = 64 << 20
_CUT_SHORT = "the catalogue is cut short: parts of it lie beyond its end"


def read(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """The messages of one catalogue, in the encoding that its header names."""
    return gettext.pairs(file, _messages(file), languages)


def _messages(file: InputFile) -> Iterator[Message]:
    data = file.head(MAX_CATALOGUE + 1)
    if len(data) > MAX_CATALOGUE:
        raise file.error(f"a compiled catalogue of more than {MAX_CATALOGUE >> 20} MiB")
    if not SIGNATURE.match(data):
        raise file.error("not a compiled gettext catalogue (its magic number is wrong)")
    order = "<" if data[0] == 0xDE else ">"
    try:
        revision, *tables = struct.unpack_from(f"{order}4I", data, 4)
        if revision >> 16 > 1:
            raise file.error(f"a catalogue of revision {revision >> 16}, which is unknown")
        if any(offset + length > len(data) for spans in _spans(data, order, *tables) for length, offset in spans):
            raise file.error(_CUT_SHORT)
    except struct.error:
        raise file.error(_CUT_SHORT) from None
    encoding = gettext.encoding(file, data)
    for number, spans in enumerate(_spans(data, order, *tables), start=1):
        try:
            original, translation = (data[offset : offset + length].decode(encoding) for length, offset in spans)
        except UnicodeDecodeError as error:
            raise file.error(f"the text is not {encoding.upper()}: {error.reason}", number) from None
        _, _, original = original.rpartition("\x04")  # what stands before is the context
        singular, _, plural = original.partition("\0")
        yield Message(number, singular, plural, tuple(translation.split("\0")))


def _spans(data: bytes, order: str, count: int, originals: int, translations: int) -> Iterator[list[tuple[int, int]]]:
    """The length and offset of each original and of its translation."""
    for place in range(0, 8 * count, 8):
        yield [struct.unpack_from(f"{order}2I", data, table + place) for table in (originals, translations)]
