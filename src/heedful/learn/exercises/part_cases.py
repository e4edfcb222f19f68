"""The cases of exercises 1, 3, 4, 5, 6 and 8: scores, positions, attention and masks.

Shapes: B batch, H heads, Tq queries, Tk keys, S source tokens, K head width, D d_model, N samples.
"""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from ... import core
from .cases import Case, call, exercise


@exercise(1)
def additive_scores() -> Iterator[Case]:
    """Yield scores of AdditiveAttention with equal widths, so that matrices in the wrong place do not crash."""
    part = core.AdditiveAttention(4, 4, 4)
    weights = (part.q_proj.weight.detach(), part.k_proj.weight.detach(), part.score.weight.detach()[0])
    s, h = torch.randn(2, 4), torch.randn(2, 3, 4)
    scores = part.score(torch.tanh(part.q_proj(s)[:, None] + part.k_proj(h))).squeeze(-1).detach()
    yield call("additive_scores", scores, s, h, *weights)


@exercise(3)
def position_table() -> Iterator[Case]:
    """Yield tables of even and odd width, and lists of tables in which the exponent of one is applied twice."""
    for length, d_model in ((6, 8), (6, 7), (20, 64)):
        yield call("position_table", core.Sinusoidal(d_model).table(length), length, d_model)
    for wrong in range(3):
        tables = [core.Sinusoidal(8).table(length) for length in (6, 12, 9)]
        angle = torch.arange(len(tables[wrong]))[:, None] / 10000 ** (torch.arange(0, 8, 2) / 4)
        tables[wrong] = torch.stack([angle.sin(), angle.cos()], dim=-1).flatten(1)
        yield call("find_wrong_table", wrong, tables)


@exercise(4)
def attention_weights() -> Iterator[Case]:
    """Yield weights without a mask, with one, and with a query that may attend to no key."""
    query, key = torch.randn(2, 2, 3, 4), torch.randn(2, 2, 3, 4)
    yield call("attention_weights", core.attention_weights(query, key), query, key)
    keep = torch.tensor([[1, 0, 1], [0, 1, 1], [1, 1, 0]], dtype=torch.bool)[None, None]  # no row is all true or false
    blind = keep & torch.tensor([[1, 1, 1], [0, 1, 0]], dtype=torch.bool)[:, None, None]
    for mask in (keep, blind):
        yield call("attention_weights", core.attention_weights(query, key, keep=mask), query, key, mask)


def normal_sample(width: int) -> tuple[Tensor, Tensor]:
    """Return 400 queries (N, K), and 10 keys for each, (N, T, K), of normally distributed numbers."""
    generator = torch.Generator().manual_seed(width)
    return torch.randn(400, width, generator=generator), torch.randn(400, 10, width, generator=generator)


@exercise(5)
def saturation() -> Iterator[Case]:
    """Yield the mean of the largest weights, and the first width where it passes 0.9."""

    def largest(width: int, scale: float) -> float:
        query, key = normal_sample(width)
        weights = core.attention_weights(query[:, None, None], key[:, None], scale=scale)  # (N, 1, 1, T)
        return float(weights.max(dim=-1).values.mean())

    yield call("largest_weight", largest(16, 0.5), *normal_sample(16), 0.5)
    widths = [2**i for i in range(11)]
    first = next(width for width in widths if largest(width, 1.0) > 0.9)
    yield call("width_past", first, 0.9, widths, normal_sample)


@exercise(6)
def multi_head() -> Iterator[Case]:
    """Yield the output of MultiHeadAttention: 2 heads of width 4 over 3 tokens."""
    part = core.MultiHeadAttention(8, 2, bias=False).requires_grad_(False)
    x = torch.randn(2, 3, 8)
    matrices = (part.q_proj.weight, *part.kv_proj.weight.chunk(2), part.out_proj.weight)
    yield call("multi_head", part(x), x, *(weight.T for weight in matrices), 2)


@exercise(8)
def masks() -> Iterator[Case]:
    """Yield masks of causal() and padding(): for 4 queries, for 2 after 3 cached keys, and for cross-attention."""
    lengths, padding = torch.tensor([3, 1, 4]), core.padding([3, 1, 4])
    yield call("causal_mask", core.causal().tensor(4), 4, 4)
    yield call("causal_mask", core.causal().tensor(2, 5), 2, 5)
    yield call("padding_mask", padding.tensor(1, 4), lengths, 4)
    yield call("decoder_mask", (core.causal() & padding).tensor(4), lengths, 4, 4)

    def cross_mask(module: ModuleType) -> Any:
        mask = module.cross_mask(lengths, torch.tensor([2, 4, 4]), 4, 4)
        return mask.expand(3, 1, 4, 4) if isinstance(mask, Tensor) and mask.shape == (3, 1, 1, 4) else mask

    yield Case("cross_mask", cross_mask, padding.tensor(4))
