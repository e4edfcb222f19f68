"""By what texts are known again."""

from __future__ import annotations

import hashlib

from heedful.data.labeled_texts import text_digest


def test_two_texts_are_not_one_however_it_is_written() -> None:
    alike = [("a\tb",), ("a", "b"), ("ab", ""), ("", "ab"), ("1:a1:b",), ("ab",), ("a\t", "b"), ("a", "\tb")]
    assert len({text_digest(*texts) for texts in alike}) == len(alike)


def test_which_texts_are_held_out_stays_the_same() -> None:
    """A run that goes on must not be judged by texts that it has learned."""
    assert text_digest("가 b") == hashlib.blake2b("가 b".encode(), digest_size=8).digest()
