"""Where a translation and its reference differ, word by word."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from .markup import Html, escape, join, tag

PIECES = re.compile(r"\s+|[^\w\s]|\w+")  # a full stop is no part of the word before it


def marked(reference: str, output: str) -> tuple[Html, Html]:
    """Both texts; what only the reference has stands in `del`, what only the output has in `ins`."""
    theirs, ours = PIECES.findall(reference), PIECES.findall(output)
    old: list[Html] = []
    new: list[Html] = []
    for kind, a, b, c, d in SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        old.append(_piece("del", theirs[a:b], kind == "equal"))
        new.append(_piece("ins", ours[c:d], kind == "equal"))
    return join(*old), join(*new)


def _piece(name: str, words: list[str], same: bool) -> Html:
    text = "".join(words)
    return escape(text) if same or not text.strip() else tag(name, text)
