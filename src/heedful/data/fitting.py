"""Texts in ids, no longer than a model reads: what a tokeniser puts around a text stays around each part of it."""

from __future__ import annotations

from collections.abc import Iterator

from .published_tokenizer import PublishedTokenizer


def shortened(tokenizer: PublishedTokenizer, ids: list[int], limit: int) -> list[int]:
    """The beginning of a text."""
    before, inner, after = _apart(tokenizer, ids)
    return [*before, *inner[: max(0, limit - len(before) - len(after))], *after]


def parts(tokenizer: PublishedTokenizer, ids: list[int], limit: int) -> Iterator[list[int]]:
    """A whole text in as few parts as will do, of equal length as far as that goes."""
    before, inner, after = _apart(tokenizer, ids)
    room = max(1, limit - len(before) - len(after))
    count = -(-len(inner) // room)
    for part in range(count):
        start, stop = (len(inner) * edge // count for edge in (part, part + 1))
        yield [*before, *inner[start:stop], *after]


def _apart(tokenizer: PublishedTokenizer, ids: list[int]) -> tuple[list[int], list[int], list[int]]:
    """What stands before a text, the text, and what stands behind it: an empty one has nothing else."""
    around = tokenizer.encode("")
    # A text may itself begin as its end does, so a plain one is asked too.
    first = min(_alike(around, ids), _alike(around, tokenizer.encode("a")))
    last = len(ids) - (len(around) - first)
    return ids[:first], ids[first:last], ids[last:]


def _alike(one: list[int], other: list[int]) -> int:
    """How many ids two texts have in common at their beginning."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
