"""Which examples are set apart for validation, where a user has given none for it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

EVERY = 10  # at most every tenth example
ENOUGH = 5  # different examples of a class: one of them can be spared


class _Candidate(NamedTuple):
    """By what they are ordered: how far along in its class, of how many, and which it is."""

    place: float  # from 0 to 1, so that the first of all classes are a fair share of each
    of: int
    digest: bytes
    copies: int
    spare: bool  # its class has enough


def held_out(examples: Iterable[tuple[str, bytes]], wanted: int, every: int = EVERY) -> frozenset[bytes]:
    """The digests of `wanted` examples, or of every `every`-th where that is less; of each class its share.

    An example is its class and its digest, which alone decides: no order matters, and all copies go the same way. What
    stands in two classes is never held out, nor all of a class, nor what has more copies than its class's share.
    One at least is held out where a class has enough.
    """
    classes: dict[str, Counter[bytes]] = {}
    for label, digest in examples:
        classes.setdefault(label, Counter())[digest] += 1
    owners = Counter(digest for counts in classes.values() for digest in counts)
    for counts in classes.values():
        for digest in [digest for digest in counts if owners[digest] > 1]:
            del counts[digest]
    total = sum(counts.total() for counts in classes.values())
    left = min(wanted, total // every)
    candidates = sorted(candidate for counts in classes.values() for candidate in _candidates(counts, left, total))
    chosen = set()
    for candidate in candidates:
        if candidate.copies <= left:
            chosen.add(candidate.digest)
            left -= candidate.copies
    return frozenset(chosen or [candidate.digest for candidate in candidates if candidate.spare][:1])


def _candidates(counts: Counter[bytes], wanted: int, total: int) -> Iterator[_Candidate]:
    """The first of a class, as many as its share of those wanted, rounded up; one at least, and never all."""
    digests = sorted(counts)[:-1]
    if not digests:
        return
    n, taken = counts.total(), 0
    share = max(-(-n * wanted // total), min(counts[digest] for digest in digests))
    for digest in digests:
        copies = counts[digest]
        if taken + copies <= share:
            yield _Candidate((taken + copies / 2) / n, n, digest, copies, len(counts) >= ENOUGH)
            taken += copies
