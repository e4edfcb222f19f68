"""Long input cut where sentences end, never in between."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...errors import DataError

# A sentence ends with its mark and whatever closes after it, followed by space; CJK marks need no space.
_END = re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])\s*")


def sentences(text: str) -> list[str]:
    """The sentences of a text, their own marks kept, the space between them gone."""
    found, begin = [], 0
    for end in _END.finditer(text):
        found.append(text[begin : end.end()].strip())
        begin = end.end()
    return [sentence for sentence in [*found, text[begin:].strip()] if sentence]


def parts_within(text: str, limit: int, n_tokens: Callable[[str], int]) -> list[str]:
    """The text in as few parts as have at most `limit` tokens each, cut only at sentence ends."""
    if n_tokens(text) <= limit:
        return [text]
    parts: list[str] = []
    for sentence in sentences(text):
        count = n_tokens(sentence)
        if count > limit:
            raise DataError(
                f"a sentence of {count:,} tokens is longer than the {limit:,} this model was trained for, "
                f'and has no sentence end to cut it at: "{sentence[:40]}…"; break it into shorter sentences'
            )
        joined = f"{parts[-1]} {sentence}" if parts else sentence
        if parts and n_tokens(joined) <= limit:
            parts[-1] = joined
        else:
            parts.append(sentence)
    return parts
