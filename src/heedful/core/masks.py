"""Who may attend to whom, described in symbols and turned into tensors only where a kernel needs one.

`causal() & padding(lengths) & window(n)` is a `Mask`, a tuple of rules that must all hold. mask_preparation.py decides
what the fused kernel is given for it.

Shapes: B batch, H heads, Tq queries, Tk keys. True = may attend, everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import index

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Grid:
    """Where queries and keys stand. Slots count places in the key sequence, positions count real tokens.

    `start` is the slot of the first query: 0 without a cache, the cache's length with one.
    """

    batch: int
    n_queries: int
    n_keys: int
    start: int | Tensor
    device: torch.device
    query_positions: Tensor | None = None  # (Tq,) or (B, Tq); None while they are the slots
    key_positions: Tensor | None = None  # (Tk,) or (B, Tk)

    @property
    def square(self) -> bool:
        return self.n_queries == self.n_keys and isinstance(self.start, int) and self.start == 0

    @property
    def query_slots(self) -> Tensor:
        return torch.arange(self.n_queries, device=self.device) + self.start

    @property
    def key_slots(self) -> Tensor:
        return torch.arange(self.n_keys, device=self.device)

    @property
    def queries_at(self) -> Tensor:
        """Their positions, (Tq,) or (B, Tq)."""
        return self.query_slots if self.query_positions is None else self.query_positions

    @property
    def keys_at(self) -> Tensor:
        return self.key_slots if self.key_positions is None else self.key_positions


class MaskRule:
    """One rule of a mask."""

    @property
    def rows(self) -> int:
        """Of the batch, those that the rule speaks of; one serves all."""
        return 1

    def hides_nothing(self, grid: Grid) -> bool:
        """Whether this rule may be dropped on this grid, as far as the host can tell."""
        return False

    def heads(self, chosen: list[int]) -> MaskRule:
        """The same for some heads only."""
        return self

    def dense(self, grid: Grid) -> Tensor:
        """The rule as a boolean tensor that broadcasts to (B, H, Tq, Tk)."""
        raise NotImplementedError

    def visible_keys(self, grid: Grid) -> Tensor | None:
        """(B, Tk) or (1, Tk) the keys that some query may see; None for all, as far as the host can tell."""
        return None


@dataclass(frozen=True)
class Causal(MaskRule):
    """A query sees the keys up to its own slot, so a cache shifts it by itself."""

    def __repr__(self) -> str:
        return "causal()"

    def hides_nothing(self, grid: Grid) -> bool:
        return grid.n_queries == 1 and isinstance(grid.start, int) and grid.start == grid.n_keys - 1

    def dense(self, grid: Grid) -> Tensor:
        return grid.key_slots[None, :] <= grid.query_slots[:, None]


@dataclass(frozen=True)
class Window(MaskRule):
    """A query sees the keys whose position is less than `size` away, on either side."""

    size: int

    def __repr__(self) -> str:
        return f"window({self.size})"

    def hides_nothing(self, grid: Grid) -> bool:
        return max(grid.n_queries, grid.n_keys) <= self.size and grid.key_positions is None

    def dense(self, grid: Grid) -> Tensor:
        q, k = grid.queries_at, grid.keys_at
        near = (q[..., :, None] - k[..., None, :]).abs() < self.size
        return near if near.dim() == 2 else near[:, None]  # (Tq, Tk) or (B, 1, Tq, Tk)


@dataclass(frozen=True, eq=False)
class Explicit(MaskRule):
    """A boolean tensor somebody made: (Tq, Tk), or four dimensions that broadcast to (B, H, Tq, Tk)."""

    keep: Tensor

    def __repr__(self) -> str:
        return f"<mask of shape {tuple(self.keep.shape)}>"

    @property
    def rows(self) -> int:
        return self.keep.shape[0] if self.keep.dim() == 4 else 1

    def heads(self, chosen: list[int]) -> MaskRule:
        return Explicit(self.keep[:, chosen]) if self.keep.dim() == 4 and self.keep.shape[1] > 1 else self

    def dense(self, grid: Grid) -> Tensor:
        queries, keys = self.keep.shape[-2:]
        if queries not in (1, grid.n_queries) or keys not in (1, grid.n_keys) or self.rows not in (1, grid.batch):
            raise ValueError(
                f"a mask of shape {tuple(self.keep.shape)} does not fit {grid.batch} rows of {grid.n_queries} "
                f"queries and {grid.n_keys} keys; give (Tq, Tk) or (B, H, Tq, Tk), "
                f"or padding(keep) for a (B, Tk) padding mask"
            )
        return self.keep

    def visible_keys(self, grid: Grid) -> Tensor:
        return self.dense(grid)[(None,) * (4 - self.keep.dim())].any(dim=(1, 2)).expand(-1, grid.n_keys)


@dataclass(frozen=True, eq=False)
class Padding(MaskRule):
    """Which keys of each row are real: the first `lengths[b]` of them, or those where `keep` is True.

    `lengths` is known to the host, so that choosing a kernel never waits for the device. It is found
    by looking when `keep` lies on the CPU, and is None when only the device knows, or when padding does
    not stand at the end. `packed` says that it does without saying where: true of every batch of a loader.
    """

    keep: Tensor | None = None  # (B, Tk)
    lengths: tuple[int, ...] | None = None
    packed: bool = False

    def __repr__(self) -> str:
        if self.lengths is not None:
            return f"padding({list(self.lengths)})"
        return f"padding(<{' × '.join(map(str, () if self.keep is None else self.keep.shape))} booleans>)"

    @property
    def rows(self) -> int:
        return len(self.lengths or ()) if self.keep is None else self.keep.shape[0]

    @property
    def at_the_end(self) -> bool:
        """Whether the host knows that real keys stand first."""
        return self.packed or self.lengths is not None

    @property
    def every_row_has_a_key(self) -> bool:
        """Whether the host knows that no row is empty."""
        return self.lengths is not None and min(self.lengths, default=1) > 0

    def hides_nothing(self, grid: Grid) -> bool:
        self._check(grid)
        return self.lengths is not None and min(self.lengths, default=grid.n_keys) >= grid.n_keys

    def columns(self, n_keys: int, device: torch.device) -> Tensor:
        """(B, Tk) booleans."""
        if self.keep is not None:
            return self.keep.to(device, non_blocking=True)
        lengths = torch.tensor(self.lengths, dtype=torch.long).to(device, non_blocking=True)
        return torch.arange(n_keys, device=device) < lengths[:, None]

    def dense(self, grid: Grid) -> Tensor:
        self._check(grid)
        return self.columns(grid.n_keys, grid.device)[:, None, None, :]  # (B, 1, 1, Tk)

    def visible_keys(self, grid: Grid) -> Tensor | None:
        return None if self.hides_nothing(grid) else self.columns(grid.n_keys, grid.device)

    def _check(self, grid: Grid) -> None:
        if self.rows not in (1, grid.batch):
            raise ValueError(f"padding is given for {self.rows} rows, but the batch has {grid.batch}")
        if self.keep is not None and self.keep.shape[1] != grid.n_keys:
            raise ValueError(
                f"padding covers {self.keep.shape[1]} keys, but there are {grid.n_keys}; with a cache, keep covers "
                "all keys, old and new, and with a cache of fixed size its whole capacity"
            )
        if self.lengths is not None and max(self.lengths, default=0) > grid.n_keys:
            raise ValueError(f"a padding length of {max(self.lengths)} is more than the {grid.n_keys} keys there are")


@dataclass(frozen=True, eq=False)
class Mask:
    """Rules that must all hold. `&` joins two masks, or a mask and a boolean tensor."""

    parts: tuple[MaskRule, ...] = ()

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.parts)) or "everything()"

    def __and__(self, other: Mask | Tensor) -> Mask:
        return Mask(self.parts + as_mask(other).parts)

    __rand__ = __and__

    def dense(self, grid: Grid) -> Tensor | None:
        """All rules as one boolean tensor that broadcasts to (B, H, Tq, Tk); None when nothing is hidden."""
        tensors = [rule.dense(grid) for rule in self.parts if not rule.hides_nothing(grid)]
        return reduce(torch.logical_and, tensors) if tensors else None

    @property
    def is_causal(self) -> bool:
        """Whether no query sees a later key."""
        return any(isinstance(rule, Causal) for rule in self.parts)

    @property
    def only_at_the_end(self) -> bool:
        """Whether the host knows that no padding stands before a real key."""
        return all(rule.at_the_end for rule in self.parts if isinstance(rule, Padding))

    def tensor(self, n_queries: int, n_keys: int | None = None) -> Tensor:
        """The mask as a person would draw it: (Tq, Tk) or (B, H, Tq, Tk) booleans, True = may attend."""
        keys = n_queries if n_keys is None else n_keys
        rows = max([rule.rows for rule in self.parts], default=1)
        grid = Grid(rows, n_queries, keys, keys - n_queries, torch.device("cpu"))
        dense = self.dense(grid)
        every = torch.ones(n_queries, keys, dtype=torch.bool)
        return every if dense is None else dense & every

    def visible_keys(self, grid: Grid) -> Tensor | None:
        """(B, Tk) or (1, Tk) the keys that some query may see; None when the host knows that all are."""
        columns = [seen for rule in self.parts if (seen := rule.visible_keys(grid)) is not None]
        return reduce(torch.logical_and, columns) if columns else None

    def real_keys(self, grid: Grid) -> Tensor | None:
        """The same by padding alone: a token that is no padding may look, even where nobody sees it."""
        return Mask(tuple(rule for rule in self.parts if isinstance(rule, Padding))).visible_keys(grid)


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


def can_read(tensor: Tensor) -> bool:
    """Whether looking at the values costs nothing: on the CPU, and not while compiling."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


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
    if not all(isinstance(rule, Padding) for rule in mask.parts):
        raise ValueError(
            "keep says which tokens are real: give a (B, T) boolean tensor or padding(…); "
            "who may look where is the stack's own mask"
        )
    return mask
