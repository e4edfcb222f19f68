"""Digests by which texts are told apart."""

from __future__ import annotations

import hashlib


def digest(*texts: str) -> bytes:
    """By which texts are told apart, and by which some of them are held out. Several are never the same as one."""
    raw = [text.encode() for text in texts]
    if len(raw) == 1:
        return hashlib.blake2b(raw[0], digest_size=8).digest()
    told = b"".join(b"%d:%b" % (len(one), one) for one in raw)
    return hashlib.blake2b(told, digest_size=8, person=b"several").digest()
