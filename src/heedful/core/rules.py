"""The rules that a mask is made of, each laid over a grid of queries and keys when it must be.

Shapes: B batch, H heads, Tq queries, Tk keys. True = may attend, everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

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


class Part:
    """One rule of a mask."""

    @property
    def rows(self) -> int:
        """Of the batch, those that the rule speaks of; one serves all."""
        return 1

    def hides_nothing(self, grid: Grid) -> bool:
        """Whether this rule may be dropped on this grid, as far as the host can tell."""
        return False

    def heads(self, chosen: list[int]) -> Part:
        """The same for some heads only."""
        return self

    def dense(self, grid: Grid) -> Tensor:
        """The rule as a boolean tensor that broadcasts to (B, H, Tq, Tk)."""
        raise NotImplementedError

    def seen_keys(self, grid: Grid) -> Tensor | None:
        """(B, Tk) or (1, Tk) the keys that some query may see; None for all, as far as the host can tell."""
        return None


class Causal(Part):
    """A query sees the keys up to its own slot, so a cache shifts it by itself."""

    def __repr__(self) -> str:
        return "causal()"

    def hides_nothing(self, grid: Grid) -> bool:
        return grid.n_queries == 1 and isinstance(grid.start, int) and grid.start == grid.n_keys - 1

    def dense(self, grid: Grid) -> Tensor:
        return grid.key_slots[None, :] <= grid.query_slots[:, None]


@dataclass(frozen=True)
class Window(Part):
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
class Explicit(Part):
    """A boolean tensor somebody made: (Tq, Tk), or four dimensions that broadcast to (B, H, Tq, Tk)."""

    keep: Tensor

    def __repr__(self) -> str:
        return f"<mask of shape {tuple(self.keep.shape)}>"

    @property
    def rows(self) -> int:
        return self.keep.shape[0] if self.keep.dim() == 4 else 1

    def heads(self, chosen: list[int]) -> Part:
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

    def seen_keys(self, grid: Grid) -> Tensor:
        return self.dense(grid)[(None,) * (4 - self.keep.dim())].any(dim=(1, 2)).expand(-1, grid.n_keys)


@dataclass(frozen=True, eq=False)
class Padding(Part):
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

    def seen_keys(self, grid: Grid) -> Tensor | None:
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
