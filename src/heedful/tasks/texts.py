"""Texts that a model is asked about, checked before it sees them."""

from __future__ import annotations

from ..errors import DataError


def plain(text: object) -> str:
    """A text that is one."""
    if not isinstance(text, str):
        raise DataError(f"a text is a str, not {type(text).__name__}")
    return text


def within(ids: list[int], limit: int | None) -> list[int]:
    """No more tokens than a model reads: what is too long is refused, not cut."""
    if limit is not None and len(ids) > limit:
        raise DataError(f"it has {len(ids):,} tokens, and this model reads at most {limit:,}; shorten or split it")
    return ids
