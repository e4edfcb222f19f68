"""Prepares a mask for given lengths: chooses the input of the fused kernel once, for all layers.

A stack combines its masks with the padding and passes each layer a `PreparedMask`. A layer or an attention module that
is called on its own prepares its mask itself (`prepare_self`, `prepare_memory`). The code that prepares a mask also
sets padded inputs to zero, so NaN in padding reaches neither an output nor a gradient.

Shapes: B batch, H heads, Tq queries, Tk keys. True = may attend.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from .masks import Causal, Explicit, Grid, Mask, MaskRule, Padded, Padding, Window, as_mask, as_padding, padding


@dataclass(frozen=True, eq=False)
class PreparedMask:
    """A mask and a bias for one grid, as input of the fused kernel: nothing, the causal flag, or a dense mask.

    `prepared & mask` adds rules and keeps the padding and the bias.
    """

    rules: Mask
    grid: Grid
    dtype: torch.dtype
    bias: Tensor | None = None  # (H, Tq, Tk) or (B, H, Tq, Tk)
    is_causal: bool = False  # the causal flag of the kernel is enough
    additive: Tensor | None = None  # 0 or -inf plus the bias, broadcasts to (B, H, Tq, Tk)
    fully_masked: Tensor | None = None  # (B, 1, Tq, 1) queries that see no key: their output is zero
    unpad_index: tuple[Tensor, Tensor] | None = None  # (B, T) each: the order with real tokens first, and its inverse

    def __and__(self, other: Mask) -> PreparedMask:
        return prepare_mask(self.rules & other, self.grid, bias=self.bias, dtype=self.dtype)

    def reject_bias(self, bias: Tensor | None) -> PreparedMask:
        """Return this mask; raise an error if a bias is passed too, since it would be ignored."""
        if bias is not None:
            raise ValueError("a prepared mask already contains its bias; pass the bias where the mask is prepared")
        return self

    def heads(self, chosen: list[int]) -> PreparedMask:
        """Return the rules and the bias of the selected heads, for `attention_weights`."""
        rules = tuple(rule.heads(chosen) for rule in self.rules.parts)
        bias = self.bias
        if bias is not None and bias.dim() > 2 and bias.shape[-3] > 1:
            bias = bias[..., chosen, :, :]
        return PreparedMask(Mask(rules), self.grid, self.dtype, bias)

    def check(self, query: Tensor, key: Tensor) -> None:
        """Raise an error if the sizes differ from those the mask was prepared for."""
        if self.additive is not None and self.additive.shape[1] not in (1, query.shape[1]):
            raise ValueError(f"the mask or bias is for {self.additive.shape[1]} heads, but there are {query.shape[1]}")
        grid = self.grid
        if (query.shape[0], query.shape[2], key.shape[2]) != (grid.batch, grid.n_queries, grid.n_keys):
            raise ValueError(
                f"the mask was prepared for {grid.batch} rows of {grid.n_queries} queries and {grid.n_keys} keys, "
                f"but there are {query.shape[0]} rows of {query.shape[2]} and {key.shape[2]}"
            )


Keep = Mask | PreparedMask | Tensor | None  # the masks that attention takes


def prepare_mask(rules: Mask, grid: Grid, *, bias: Tensor | None = None, dtype: torch.dtype) -> PreparedMask:
    """Choose the cheapest exact input of the fused kernel for these rules and this bias."""
    if bias is not None:
        rows = bias.shape[0] if bias.dim() == 4 else 1
        if tuple(bias.shape[-2:]) != (grid.n_queries, grid.n_keys) or rows not in (1, grid.batch) or bias.dim() > 4:
            raise ValueError(
                f"a bias of shape {tuple(bias.shape)} does not fit {grid.batch} rows of {grid.n_queries} queries and "
                f"{grid.n_keys} keys; give (Tq, Tk), (H, Tq, Tk) or (B, H, Tq, Tk)"
            )
        bias = bias.to(dtype)
    live = [rule for rule in rules.parts if not rule.hides_nothing(grid)]
    paddings = [rule for rule in live if isinstance(rule, Padding)]
    others = [rule for rule in live if not isinstance(rule, Padding | Causal)]
    is_causal = any(isinstance(rule, Causal) for rule in live)

    if bias is None and is_causal and grid.square and not others:
        # With real tokens first, the causal flag already hides all padding from real queries.
        if all(rule.at_the_end for rule in paddings):
            if all(rule.every_row_has_a_key for rule in paddings):
                return PreparedMask(rules, grid, dtype, is_causal=True)
            first = torch.stack([rule.columns(grid.n_keys, grid.device)[:, :1] for rule in paddings]).all(dim=0)
            empty = ~first[:, :, None, None]  # (B, 1, 1, 1): rows without a real token
            return PreparedMask(rules, grid, dtype, is_causal=True, fully_masked=empty)
        if len(paddings) == 1:
            keep = paddings[0].columns(grid.n_keys, grid.device).expand(grid.batch, -1)
            order = torch.argsort(~keep, dim=1, stable=True)
            before_first = (keep.cumsum(dim=1) == 0)[:, None, :, None]  # padding before the first real token
            index = order, order.argsort(dim=1)
            return PreparedMask(rules, grid, dtype, is_causal=True, fully_masked=before_first, unpad_index=index)

    visible = Mask(tuple(live)).dense(grid)
    if visible is None:
        return PreparedMask(rules, grid, dtype, bias, additive=None if bias is None else _four(bias))
    fully_masked = None if _every_query_sees_a_key(live, paddings, grid) else ~visible.any(dim=-1, keepdim=True)
    hidden = ~visible if fully_masked is None else ~(visible | fully_masked)
    scores = torch.zeros((), dtype=dtype, device=grid.device) if bias is None else bias
    additive = _four(torch.where(hidden, -torch.inf, scores))
    return PreparedMask(rules, grid, dtype, bias, additive=additive, fully_masked=fully_masked)


def _every_query_sees_a_key(live: list[MaskRule], paddings: list[Padding], grid: Grid) -> bool:
    """Return True if the host knows that every query sees at least one key."""
    if not paddings and all(isinstance(rule, Causal | Window) for rule in live):
        return isinstance(grid.start, Tensor) or grid.start >= 0  # a query sees itself
    return len(live) == len(paddings) == 1 and paddings[0].every_row_has_a_key


def _four(tensor: Tensor) -> Tensor:
    """Add leading dimensions of size 1, up to (B, H, Tq, Tk)."""
    return tensor[(None,) * (4 - tensor.dim())]


def newest(columns: Tensor, grid: Grid) -> Tensor:
    """Return the entries of `columns` (B, Tk) that belong to the queries: (B, Tq)."""
    if isinstance(grid.start, int):
        return columns[:, grid.start : grid.start + grid.n_queries]
    return columns.index_select(1, grid.query_slots)


def zero_padding(x: Tensor, real: Tensor | None) -> Tensor:
    """Set the padded positions of x (B, T, …) to zero, with `where`, because NaN times zero is NaN."""
    if real is None:
        return x
    return torch.where(real[(...,) + (None,) * (x.dim() - 2)], x, torch.zeros((), dtype=x.dtype, device=x.device))


def prepare_self(
    x: Tensor, keep: Keep, *, bias: Tensor | None = None, in_stack: bool = False
) -> tuple[Tensor, PreparedMask]:
    """Return x with zeros in its padding, and the prepared mask of a self-attention. A stack has done both already."""
    if isinstance(keep, PreparedMask):
        return x, keep.reject_bias(bias)
    _refuse_in_stack(in_stack)
    grid = Grid(x.shape[0], x.shape[1], x.shape[1], 0, x.device)
    rules = _over_sequences(keep)
    return zero_padding(x, rules.real_keys(grid)), prepare_mask(rules, grid, bias=bias, dtype=x.dtype)


def prepare_memory(
    x: Tensor, memory: Tensor, keep: Keep, *, bias: Tensor | None = None, in_stack: bool = False
) -> tuple[Tensor, PreparedMask]:
    """Do the same for cross-attention. If several rows of x share a row of the memory, only padding is allowed."""
    if isinstance(keep, PreparedMask):
        return memory, keep.reject_bias(bias)
    _refuse_in_stack(in_stack)
    rows, n_keys = memory.shape[:2]
    n_beams = beams(x, memory)
    rules = _over_sequences(keep) if n_beams == 1 else as_padding(keep)
    n_queries = n_beams * x.shape[1]
    grid = Grid(rows, n_queries, n_keys, n_keys - n_queries, x.device)
    return zero_padding(memory, rules.visible_keys(grid)), prepare_mask(rules, grid, bias=bias, dtype=x.dtype)


def _refuse_in_stack(in_stack: bool) -> None:
    """Raise an error if a layer replaces the prepared mask, which would lose the padding and the cache."""
    if in_stack:
        raise ValueError(
            "a layer of a stack received a mask that the stack did not prepare, which would lose the padding: set the "
            "mask of each layer with Encoder(…, mask=[…]), or narrow the prepared mask with `keep & window(n)`; all "
            "layers of a stack fill a cache together, so pass it to the Decoder and not to one of its parts"
        )


def _over_sequences(keep: Padded) -> Mask:
    """Return `keep` as a mask; a tensor of two dimensions is (B, Tk), True = real, as in the models."""
    if isinstance(keep, Tensor) and keep.dim() == 2:
        return padding(keep)
    mask = as_mask(keep)
    if any(isinstance(rule, Explicit) and rule.keep.dim() == 2 for rule in mask.parts):
        raise ValueError(
            "a tensor of two dimensions combined with a mask is ambiguous here: "
            "write padding(keep) for (B, Tk), or mask[None, None] for (Tq, Tk)"
        )
    return mask


def beams(x: Tensor, memory: Tensor) -> int:
    """Return how many rows of x read each row of the memory."""
    rows, memory_rows = x.shape[0], memory.shape[0]
    if rows == memory_rows:
        return 1
    if not memory_rows or rows % memory_rows:
        raise ValueError(f"{rows} rows cannot share {memory_rows} rows of memory evenly")
    return rows // memory_rows
