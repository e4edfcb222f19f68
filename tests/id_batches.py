"""Batches of ids written out in a test, without a store on disk."""

from collections.abc import Sequence

import numpy as np

from heedful.data.batch import DEFAULT_TOKENS, Batch, Ids, Sequences, SpecialTokens


def sequences_of(ids: Sequence[Ids]) -> Sequences:
    lengths = np.array([len(sequence) for sequence in ids], dtype=np.int64)
    flat = np.concatenate([(), *ids], dtype=np.int64, casting="unsafe")  # an empty list counts as floats
    return Sequences(flat, lengths.cumsum() - lengths, lengths)


def batch_of(
    pairs: Sequence[tuple[Ids, Ids]],
    *,
    shape: tuple[int, int, int] | None = None,
    rows: Sequence[int] | None = None,
    special: SpecialTokens = DEFAULT_TOKENS,
) -> Batch:
    """A batch of (source ids, target ids); the shape (B, S, T) is the smallest that fits unless given."""
    source, target = (sequences_of([pair[side] for pair in pairs]) for side in (0, 1))
    n_source, n_target = (int(side.lengths.max(initial=0)) + 1 for side in (source, target))
    shape = shape or (len(pairs), n_source, n_target)
    return Batch.laid_out(source, target, shape, range(len(pairs)) if rows is None else rows, special)
