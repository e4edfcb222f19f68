"""Which examples are set apart for validation, where a user has given none for it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

EVERY = 10  # at most every tenth example
ENOUGH = 5  # different examples of a class: one of them can be spared


class _Candidate(NamedTuple):
    """The sort key of an example: its place in its class, the size of the class, its digest."""

    place: float  # from 0 to 1, so that the first of all classes are a fair share of each
    of: int
    digest: bytes
    copies: int
    spare: bool  # its class has enough


def held_out(examples: Iterable[tuple[str, bytes]], wanted: int, every: int = EVERY) -> frozenset[bytes]:
    """Return the digests of `wanted` examples, or of every `every`-th if that is less; of each class its share.

    An example is its class and its digest, which alone decides: order does not matter, and copies stay together. An
    example in two classes is never held out, nor all of a class, nor one with more copies than its class's share.
    At least one is held out if a class has enough.
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
    """Yield the first of a class, up to its share rounded up; at least one, and never all."""
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
