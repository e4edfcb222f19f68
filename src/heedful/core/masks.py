"""Attention masks as symbolic rules, which become tensors only where a kernel needs one.

`causal() & padding(lengths) & window(n)` is a `Mask`, a tuple of rules that must all hold. mask_preparation.py chooses
the input of the fused kernel for it.

Shapes: B batch, H heads, Tq queries, Tk keys. True always means "may attend".
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
    """The sizes and places of queries and keys. Slots index the key sequence; positions count real tokens.

    `start` is the slot of the first query: 0 without a cache, the length of the cache with one.
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
        """The positions of the queries, (Tq,) or (B, Tq); the slots if none were set."""
        return self.query_slots if self.query_positions is None else self.query_positions

    @property
    def keys_at(self) -> Tensor:
        return self.key_slots if self.key_positions is None else self.key_positions


class MaskRule:
    """One rule of a mask; a `Mask` is a tuple of rules that must all hold."""

    @property
    def rows(self) -> int:
        """The number of batch rows this rule covers; 1 applies to every row."""
        return 1

    def hides_nothing(self, grid: Grid) -> bool:
        """Return True if the host knows that this rule hides nothing on this grid."""
        return False

    def heads(self, chosen: list[int]) -> MaskRule:
        """Return this rule restricted to the selected heads."""
        return self

    def dense(self, grid: Grid) -> Tensor:
        """Return the rule as a boolean tensor that broadcasts to (B, H, Tq, Tk)."""
        raise NotImplementedError

    def visible_keys(self, grid: Grid) -> Tensor | None:
        """Return the keys that some query may see, (B, Tk) or (1, Tk); None if the host knows of no hidden key."""
        return None


@dataclass(frozen=True)
class Causal(MaskRule):
    """A query sees the keys up to its own slot. A cache moves the slots, so this stays right with a cache."""

    def __repr__(self) -> str:
        return "causal()"

    def hides_nothing(self, grid: Grid) -> bool:
        return grid.n_queries == 1 and isinstance(grid.start, int) and grid.start == grid.n_keys - 1

    def dense(self, grid: Grid) -> Tensor:
        return grid.key_slots[None, :] <= grid.query_slots[:, None]


@dataclass(frozen=True)
class Window(MaskRule):
    """A query sees the keys whose positions differ from its own by less than `size`."""

    size: int

    def __repr__(self) -> str:
        return f"window({self.size})"

    def hides_nothing(self, grid: Grid) -> bool:
        return max(grid.n_queries, grid.n_keys) <= self.size and grid.key_positions is None

    def dense(self, grid: Grid) -> Tensor:
        q, k = grid.queries_at, grid.keys_at
        within = (q[..., :, None] - k[..., None, :]).abs() < self.size
        return within if within.dim() == 2 else within[:, None]  # (Tq, Tk) or (B, 1, Tq, Tk)


@dataclass(frozen=True, eq=False)
class Explicit(MaskRule):
    """A boolean tensor from the caller: (Tq, Tk), or four dimensions that broadcast to (B, H, Tq, Tk)."""

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
    """The real keys of each row: the first `lengths[b]` of them, or those where `keep` is True.

    The host knows `lengths`, so choosing a kernel never waits for the device. It is None if only the device knows the
    mask, or if padding is not at the end. `packed` states that padding is at the end without the lengths, which holds
    for every batch of a loader.
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
        """True if the host knows that all padding is at the end."""
        return self.packed or self.lengths is not None

    @property
    def every_row_has_a_key(self) -> bool:
        """True if the host knows that every row has at least one real key."""
        return self.lengths is not None and min(self.lengths, default=1) > 0

    def hides_nothing(self, grid: Grid) -> bool:
        self._check(grid)
        return self.lengths is not None and min(self.lengths, default=grid.n_keys) >= grid.n_keys

    def columns(self, n_keys: int, device: torch.device) -> Tensor:
        """Return (B, Tk) booleans: which keys are real."""
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
    """A tuple of rules that must all hold. `&` combines two masks, or a mask and a boolean tensor."""

    parts: tuple[MaskRule, ...] = ()

    def __repr__(self) -> str:
        return " & ".join(map(repr, self.parts)) or "everything()"

    def __and__(self, other: Mask | Tensor) -> Mask:
        return Mask(self.parts + as_mask(other).parts)

    __rand__ = __and__

    def dense(self, grid: Grid) -> Tensor | None:
        """Return all rules as one boolean tensor that broadcasts to (B, H, Tq, Tk); None if nothing is hidden."""
        tensors = [rule.dense(grid) for rule in self.parts if not rule.hides_nothing(grid)]
        return reduce(torch.logical_and, tensors) if tensors else None

    @property
    def is_causal(self) -> bool:
        """True if no query sees a later key."""
        return any(isinstance(rule, Causal) for rule in self.parts)

    @property
    def only_at_the_end(self) -> bool:
        """True if the host knows that no padding precedes a real key."""
        return all(rule.at_the_end for rule in self.parts if isinstance(rule, Padding))

    def tensor(self, n_queries: int, n_keys: int | None = None) -> Tensor:
        """Return the mask as a full boolean tensor, (Tq, Tk) or (B, H, Tq, Tk), True = may attend."""
        keys = n_queries if n_keys is None else n_keys
        rows = max([rule.rows for rule in self.parts], default=1)
        grid = Grid(rows, n_queries, keys, keys - n_queries, torch.device("cpu"))
        dense = self.dense(grid)
        full = torch.ones(n_queries, keys, dtype=torch.bool)
        return full if dense is None else dense & full

    def visible_keys(self, grid: Grid) -> Tensor | None:
        """Return the keys that some query may see, (B, Tk) or (1, Tk); None if the host knows of no hidden key."""
        columns = [seen for rule in self.parts if (seen := rule.visible_keys(grid)) is not None]
        return reduce(torch.logical_and, columns) if columns else None

    def real_keys(self, grid: Grid) -> Tensor | None:
        """Return the keys that are not padding, (B, Tk) or (1, Tk), even those that no query sees; None for all."""
        return Mask(tuple(rule for rule in self.parts if isinstance(rule, Padding))).visible_keys(grid)


Padded = Mask | Tensor | None  # which tokens are real, as a caller passes it


def everything() -> Mask:
    """Return the mask that hides nothing."""
    return Mask()


def causal() -> Mask:
    """Return the look-ahead mask: no query sees a later key. The queries are the last of the keys."""
    return Mask((Causal(),))


def window(size: int) -> Mask:
    """Return a sliding window: keys less than `size` positions away; with causal(), the last `size` keys."""
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"a window's size is a whole number of at least 1, not {size!r}")
    return Mask((Window(size),))


def padding(real: Tensor | Sequence[int], *, lengths: Sequence[int] | None = None, at_the_end: bool = False) -> Mask:
    """Return the mask that hides the padded keys.

    Args:
        real: The number of real keys in each row, which come first; or a (B, Tk) boolean tensor, True = real, which
            must not change afterwards. One row applies to the whole batch.
        lengths: The numbers of real keys in a tensor on a device whose padding is at the end, so that the host need
            not wait for the device to read them.
        at_the_end: States that padding is at the end, without the lengths.
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
    """Return True if reading the values does not wait: they are on the CPU, and nothing is being compiled."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _whole_numbers(lengths: Sequence[int]) -> tuple[int, ...]:
    if any(isinstance(n, bool) or not hasattr(n, "__index__") for n in lengths):
        raise TypeError(f"padding lengths are whole numbers, one for each row; got {lengths!r}")
    return tuple(index(n) for n in lengths)


def _padding_from_tensor(keep: Tensor, lengths: Sequence[int] | None, *, packed: bool) -> Padding:
    stated = None if lengths is None else _whole_numbers(lengths)
    if stated is not None and len(stated) != keep.shape[0]:
        raise ValueError(f"lengths needs an entry for each of the {keep.shape[0]} rows of padding, not {len(stated)}")
    if not can_read(keep):
        return Padding(keep, stated, packed)
    total = keep.sum(dim=1)
    counts = tuple(total.tolist())
    at_the_end = torch.equal(keep, torch.arange(keep.shape[1]) < total[:, None])
    if stated is not None and not (at_the_end and counts == stated):
        raise ValueError(f"lengths={stated} differ from the padding mask; lengths are for padding at the end")
    if not packed:
        return Padding(keep, counts if at_the_end else None)
    if not at_the_end:
        raise ValueError("at_the_end=True, but this padding mask has padding before a real key")
    return Padding(keep, packed=True)


def as_mask(keep: Padded) -> Mask:
    """Return `keep` as a mask, from a mask or a boolean tensor of shape (Tq, Tk) or (B, H, Tq, Tk)."""
    if keep is None:
        return everything()
    if isinstance(keep, Mask):
        return keep
    if not isinstance(keep, Tensor):
        raise TypeError(f"a mask is made by causal(), padding() or window(), or is a boolean tensor; got {keep!r}")
    if keep.dtype != torch.bool:
        raise TypeError(
            f"a mask must be boolean, True = may attend, but its dtype is {keep.dtype}; "
            "pass numbers to add to the scores as bias="
        )
    if keep.dim() not in (2, 4):
        raise ValueError(
            f"a boolean mask has the shape (Tq, Tk) or (B, H, Tq, Tk), not {tuple(keep.shape)}; "
            "for a (B, Tq, Tk) mask write mask[:, None]"
        )
    if keep.dim() == 4 and keep.shape[1] == keep.shape[2] == 1:
        return padding(keep[:, 0, 0])  # the same keys for every query: this is padding
    return Mask((Explicit(keep),))


def as_padding(keep: Padded) -> Mask:
    """Return the `keep` of a model as a mask, from a (B, T) boolean tensor, True = real token, or padding(…)."""
    if isinstance(keep, Tensor) and keep.dim() == 2:
        return padding(keep)
    mask = as_mask(keep)
    if not all(isinstance(rule, Padding) for rule in mask.parts):
        raise ValueError(
            "keep states which tokens are real: pass a (B, T) boolean tensor or padding(…); "
            "which token sees which is set by the mask of the stack"
        )
    return mask
