"""Characters composed: 한 as one, however it was typed."""

from __future__ import annotations

import unicodedata
from contextlib import suppress

from tokenizers import normalizers

_FAST = normalizers.NFC()


def nfc(text: str) -> str:
    """Unicode's NFC as Python knows it. The library goes first: it sorts long runs of accents fast, Python does not."""
    if text.isascii():
        return text
    with suppress(UnicodeEncodeError):  # half a surrogate pair, which Python lets pass
        text = _FAST.normalize_str(text)
    return unicodedata.normalize("NFC", text)
