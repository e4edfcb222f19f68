"""A mask laid over one pair of lengths: the cheapest exact way through the fused kernel.

Nothing, the kernel's own causal flag, or a dense mask, decided once for all layers of a stack.
Shapes: B batch, H heads, Tq queries, Tk keys. True = may attend.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .masks import Mask
from .rules import Causal, Grid, Padding, Part, Window


@dataclass(frozen=True, eq=False)
class Bound:
    """A mask and a bias laid over one grid: what the fused kernel is given, made once for all layers.

    Whoever binds also zeroes the padded inputs (`zero_padding`), so that what stands there, even NaN,
    reaches neither an output nor a gradient.
    """

    rules: Mask
    grid: Grid
    bias: Tensor | None = None  # (H, Tq, Tk) or (B, H, Tq, Tk)
    is_causal: bool = False  # the kernel's own causal flag is enough
    additive: Tensor | None = None  # 0 or -inf plus the bias, broadcasts to (B, H, Tq, Tk)
    dead: Tensor | None = None  # (B, 1, Tq, 1) queries that may see nothing: their output is zero
    order: tuple[Tensor, Tensor] | None = None  # (B, T) each: real tokens first, and the way back

    def heads(self, chosen: list[int]) -> Bound:
        """The rules and the bias of some heads only, for `attention_weights`."""
        parts = tuple(part.heads(chosen) for part in self.rules.parts)
        bias = self.bias
        if bias is not None and bias.dim() > 2 and bias.shape[-3] > 1:
            bias = bias[..., chosen, :, :]
        return Bound(Mask(parts), self.grid, bias)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Refuse tensors of other lengths than those the mask was bound to."""
        if self.additive is not None and self.additive.shape[1] not in (1, query.shape[1]):
            raise ValueError(f"the mask or bias is for {self.additive.shape[1]} heads, but there are {query.shape[1]}")
        grid = self.grid
        if (query.shape[0], query.shape[2], key.shape[2]) != (grid.batch, grid.n_queries, grid.n_keys):
            raise ValueError(
                f"the mask was bound to {grid.batch} rows of {grid.n_queries} queries and {grid.n_keys} keys, "
                f"but there are {query.shape[0]} rows of {query.shape[2]} and {key.shape[2]}"
            )


def bind(rules: Mask, grid: Grid, *, bias: Tensor | None = None, dtype: torch.dtype) -> Bound:
    """Choose the cheapest exact way to run this mask through the fused kernel."""
    if bias is not None:
        rows = bias.shape[0] if bias.dim() == 4 else 1
        if tuple(bias.shape[-2:]) != (grid.n_queries, grid.n_keys) or rows not in (1, grid.batch) or bias.dim() > 4:
            raise ValueError(
                f"a bias of shape {tuple(bias.shape)} does not fit {grid.batch} rows of {grid.n_queries} queries and "
                f"{grid.n_keys} keys; give (Tq, Tk), (H, Tq, Tk) or (B, H, Tq, Tk)"
            )
        bias = bias.to(dtype)
    live = [part for part in rules.parts if not part.hides_nothing(grid)]
    paddings = [part for part in live if isinstance(part, Padding)]
    others = [part for part in live if not isinstance(part, Padding | Causal)]
    is_causal = any(isinstance(part, Causal) for part in live)

    if bias is None and is_causal and grid.square and not others:
        # With real tokens first, no real query can see padding: the causal flag hides it already.
        if all(part.at_the_end for part in paddings):
            if all(part.every_row_has_a_key for part in paddings):
                return Bound(rules, grid, is_causal=True)
            first = torch.stack([part.columns(grid.n_keys, grid.device)[:, :1] for part in paddings]).all(dim=0)
            return Bound(rules, grid, is_causal=True, dead=~first[:, :, None, None])  # (B, 1, 1, 1): rows of nothing
        if len(paddings) == 1:
            keep = paddings[0].columns(grid.n_keys, grid.device).expand(grid.batch, -1)
            order = torch.argsort(~keep, dim=1, stable=True)
            blind = keep.cumsum(dim=1) == 0  # padding before the first real token
            return Bound(rules, grid, is_causal=True, dead=blind[:, None, :, None], order=(order, order.argsort(dim=1)))

    seen = Mask(tuple(live)).dense(grid)
    if seen is None:
        return Bound(rules, grid, bias, additive=None if bias is None else _four(bias))
    dead = None if _sees_something(live, paddings, grid) else ~seen.any(dim=-1, keepdim=True)
    hidden = ~seen if dead is None else ~(seen | dead)
    scores = torch.zeros((), dtype=dtype, device=grid.device) if bias is None else bias
    return Bound(rules, grid, bias, additive=_four(torch.where(hidden, -torch.inf, scores)), dead=dead)


def _sees_something(live: list[Part], paddings: list[Padding], grid: Grid) -> bool:
    """Whether the host knows that every query sees at least one key."""
    if not paddings and all(isinstance(part, Causal | Window) for part in live):
        return isinstance(grid.start, Tensor) or grid.start >= 0  # a query sees itself
    return len(live) == len(paddings) == 1 and paddings[0].every_row_has_a_key


def _four(tensor: Tensor) -> Tensor:
    """Leading dimensions of one, up to (B, H, Tq, Tk)."""
    return tensor[(None,) * (4 - tensor.dim())]


def newest(columns: Tensor, grid: Grid) -> Tensor:
    """Of (B, Tk) columns, those of the tokens that come in now: (B, Tq)."""
    if isinstance(grid.start, int):
        return columns[:, grid.start : grid.start + grid.n_queries]
    return columns.index_select(1, grid.query_slots)


def zero_padding(x: Tensor, real: Tensor | None) -> Tensor:
    """Replace what stands in padded places of x (B, T, …) by zero; `where`, because NaN times zero is NaN."""
    if real is None:
        return x
    return torch.where(real[(...,) + (None,) * (x.dim() - 2)], x, torch.zeros((), dtype=x.dtype, device=x.device))
