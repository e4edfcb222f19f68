"""Who may attend to whom, said in symbols and turned into tensors only when it must be.

`causal() & padding(lengths) & window(n)` is a description, a tuple of rules. What the fused kernel is given
for it is decided in binding.py.

Shapes: B batch, H heads, Tq queries, Tk keys. True = may attend, everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import index

import torch
from torch import Tensor

from .host import can_read
from .rules import Causal, Explicit, Grid, Padding, Part, Window


@dataclass(frozen=True, eq=False)
class Mask:
    """Rules that must all hold. `&` joins two masks, or a mask and a boolean tensor."""

    parts: tuple[Part, ...] = ()

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.parts)) or "everything()"

    def __and__(self, other: Mask | Tensor) -> Mask:
        return Mask(self.parts + as_mask(other).parts)

    __rand__ = __and__

    def dense(self, grid: Grid) -> Tensor | None:
        """All rules as one boolean tensor that broadcasts to (B, H, Tq, Tk); None when nothing is hidden."""
        tensors = [part.dense(grid) for part in self.parts if not part.hides_nothing(grid)]
        return reduce(torch.logical_and, tensors) if tensors else None

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key."""
        return any(isinstance(part, Causal) for part in self.parts)

    @property
    def only_at_the_end(self) -> bool:
        """Whether the host knows that no padding stands before a real key."""
        return all(part.at_the_end for part in self.parts if isinstance(part, Padding))

    def tensor(self, n_queries: int, n_keys: int | None = None) -> Tensor:
        """The mask as a person would draw it: (Tq, Tk) or (B, H, Tq, Tk) booleans, True = may attend."""
        keys = n_queries if n_keys is None else n_keys
        rows = max([part.rows for part in self.parts], default=1)
        grid = Grid(rows, n_queries, keys, keys - n_queries, torch.device("cpu"))
        dense = self.dense(grid)
        every = torch.ones(n_queries, keys, dtype=torch.bool)
        return every if dense is None else dense & every

    def seen_keys(self, grid: Grid) -> Tensor | None:
        """(B, Tk) or (1, Tk) the keys that some query may see; None when the host knows that all are."""
        columns = [seen for part in self.parts if (seen := part.seen_keys(grid)) is not None]
        return reduce(torch.logical_and, columns) if columns else None

    def real_keys(self, grid: Grid) -> Tensor | None:
        """The same by padding alone: a token that is no padding may look, even where nobody sees it."""
        return Mask(tuple(part for part in self.parts if isinstance(part, Padding))).seen_keys(grid)


Padded = Mask | Tensor | None  # how a caller says which tokens are real


def everything() -> Mask:
    """Hide nothing."""
    return Mask()


def causal() -> Mask:
    """Look-ahead mask: no query sees a later key. The queries are the last of the keys."""
    return Mask((Causal(),))


def window(size: int) -> Mask:
    """Sliding window: only keys less than `size` positions away; with causal(), the last `size` keys."""
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"a window reaches at least the token itself: give a whole number from 1, not {size!r}")
    return Mask((Window(size),))


def padding(real: Tensor | Sequence[int], *, lengths: Sequence[int] | None = None, at_the_end: bool = False) -> Mask:
    """Hide the padded keys.

    `real` is either the number of real keys in each row, which stand first, or a (B, Tk) boolean
    tensor, True = real, not to be changed afterwards; one row serves the whole batch. Beside a tensor
    on a device, `lengths` tells the host what it holds (padding at the end only), so that nothing waits;
    `at_the_end` tells it only that real keys stand first, which holds for every batch of a loader.
    """
    if isinstance(real, Tensor) and real.dim() == 2:
        if real.dtype != torch.bool:
            raise TypeError(
                f"a padding mask must be boolean, True = may attend, but its dtype is {real.dtype}; "
                "for 0/1 integers write mask.bool()"
            )
        return Mask((_padding_from_tensor(real, lengths, packed=at_the_end and lengths is None),))
    if isinstance(real, Tensor) and (real.dim() != 1 or real.is_floating_point() or real.dtype == torch.bool):
        raise TypeError(
            f"padding takes lengths, a list or 1-d tensor of integers, or a (B, Tk) boolean tensor; "
            f"this is a {real.dtype} tensor of shape {tuple(real.shape)}"
        )
    counts = _whole_numbers(real.tolist() if isinstance(real, Tensor) else real)
    if min(counts, default=0) < 0:
        raise ValueError(f"a padding length cannot be negative: {counts}")
    return Mask((Padding(lengths=counts),))


def _whole_numbers(lengths: Sequence[int]) -> tuple[int, ...]:
    if any(isinstance(n, bool) or not hasattr(n, "__index__") for n in lengths):
        raise TypeError(f"padding lengths are whole numbers, one for each row; got {lengths!r}")
    return tuple(index(n) for n in lengths)


def _padding_from_tensor(keep: Tensor, lengths: Sequence[int] | None, *, packed: bool) -> Padding:
    told = None if lengths is None else _whole_numbers(lengths)
    if told is not None and len(told) != keep.shape[0]:
        raise ValueError(f"{len(told)} lengths are given for {keep.shape[0]} rows of padding")
    if not can_read(keep):
        return Padding(keep, told, packed)
    total = keep.sum(dim=1)
    counts = tuple(total.tolist())
    at_the_end = torch.equal(keep, torch.arange(keep.shape[1]) < total[:, None])
    if told is not None and not (at_the_end and counts == told):
        raise ValueError(f"lengths {told} do not say what the padding mask says; they are for padding at the end")
    if not packed:
        return Padding(keep, counts if at_the_end else None)
    if not at_the_end:
        raise ValueError("a padding mask is said to be real at first and padding at the end, but it is not")
    return Padding(keep, packed=True)


def as_mask(keep: Padded) -> Mask:
    """What `attend` may be given: a mask, or a tensor of shape (Tq, Tk) or (B, H, Tq, Tk)."""
    if keep is None:
        return everything()
    if isinstance(keep, Mask):
        return keep
    if not isinstance(keep, Tensor):
        raise TypeError(f"a mask is made by causal(), padding() or window(), or is a boolean tensor; got {keep!r}")
    if keep.dtype != torch.bool:
        raise TypeError(
            f"a mask must be boolean, True = may attend, but its dtype is {keep.dtype}; "
            "numbers to add to the scores are given as bias="
        )
    if keep.dim() not in (2, 4):
        raise ValueError(
            f"a boolean mask has the shape (Tq, Tk) or (B, H, Tq, Tk), not {tuple(keep.shape)}; "
            "for a (B, Tq, Tk) mask write mask[:, None]"
        )
    if keep.dim() == 4 and keep.shape[1] == keep.shape[2] == 1:
        return padding(keep[:, 0, 0])  # the same keys for every query: padding in another form
    return Mask((Explicit(keep),))


def as_padding(keep: Padded) -> Mask:
    """What a model may be given as `keep`: a (B, T) boolean tensor, True = real token, or padding(…)."""
    if isinstance(keep, Tensor) and keep.dim() == 2:
        return padding(keep)
    mask = as_mask(keep)
    if not all(isinstance(part, Padding) for part in mask.parts):
        raise ValueError(
            "keep says which tokens are real: give a (B, T) boolean tensor or padding(…); "
            "who may look where is the stack's own mask"
        )
    return mask
