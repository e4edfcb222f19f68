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


def unsplittable(examples: Iterable[tuple[str, bytes]], name: str) -> str:
    """Return why `held_out` returned nothing for these examples; `name` is what they are called, in the plural."""
    labels: dict[bytes, set[str]] = {}
    n = 0
    for n, (label, digest) in enumerate(examples, start=1):  # noqa: B007  (the last number is used)
        labels.setdefault(digest, set()).add(label)
    sizes = Counter(label for owners in labels.values() for label in owners)
    if not n:
        return f"no {name} are left to use"
    if len(labels) == 1 and n > 1:
        return f"all {n:,} {name} are the same, so none can be held out for validation"
    if all(len(owners) > 1 for owners in labels.values()):
        return f"each of the {n:,} {name} occurs with several labels, so none can be held out for validation"
    if n >= EVERY and len(sizes) > 1 and max(sizes.values()) == 1:
        return f"each of the {n:,} {name} has a label of its own, so none can be held out for validation"
    return f"{n:,} {name} are too few to hold some out for validation"


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
