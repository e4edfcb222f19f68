"""Attention against a loop that does what the formula says, one query at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from tiny_models import D, H, close, decoder_layer, shaken
from torch import Tensor
from torch.autograd import gradcheck

from heedful.core import Mask, MultiHeadAttention, attend, attention_weights, causal, padding, window
from heedful.core.mask_preparation import prepare_mask
from heedful.core.masks import Grid

B, K = 3, 4
Rule = Callable[[int, int, int, int], bool]  # batch row, head, slot of the query, slot of the key

REAL = {
    "right": [[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0]],
    "left": [[1, 1, 1, 1, 1], [0, 0, 0, 1, 1], [0, 1, 1, 1, 1]],
    "scattered": [[0, 1, 0, 1, 1], [1, 0, 0, 1, 0], [1, 1, 1, 1, 1]],
    "an empty row": [[1, 1, 1, 0, 0], [0, 0, 0, 0, 0], [1, 1, 1, 1, 1]],
}


def real(name: str, n_keys: int) -> Tensor:
    return torch.tensor(REAL[name], dtype=torch.bool)[:, :n_keys]


def real_and(kept: Tensor, near: Callable[[int, int], bool]) -> Rule:
    return lambda b, h, i, j: bool(kept[b, j]) and near(i, j)


def cases(n_queries: int, n_keys: int) -> dict[str, tuple[Mask | Tensor | None, Rule]]:
    """Each mask beside what it means."""
    square = torch.rand(n_queries, n_keys) > 0.4
    per_head = torch.rand(B, H, n_queries, n_keys) > 0.4
    keys_only = torch.rand(B, 1, 1, n_keys) > 0.4
    past = n_keys - n_queries
    keep = {name: real(name, n_keys) for name in REAL}
    listed: dict[str, tuple[Mask | Tensor | None, Rule]] = {
        "nothing": (None, lambda b, h, i, j: True),
        "causal": (causal(), lambda b, h, i, j: j <= i),
        "window": (window(2), lambda b, h, i, j: abs(i - j) < 2),
        "causal window": (causal() & window(2), lambda b, h, i, j: 0 <= i - j < 2),
        "square tensor": (square, lambda b, h, i, j: bool(square[i - past, j])),
        "tensor per head": (per_head, lambda b, h, i, j: bool(per_head[b, h, i - past, j])),
        "tensor of keys": (keys_only, lambda b, h, i, j: bool(keys_only[b, 0, 0, j])),
        "causal and tensor": (causal() & per_head, lambda b, h, i, j: j <= i and bool(per_head[b, h, i - past, j])),
        "lengths": (padding([min(2, n_keys), 1, n_keys]), lambda b, h, i, j: j < (min(2, n_keys), 1, n_keys)[b]),
        "causal lengths": (causal() & padding([2, 1, 0]), lambda b, h, i, j: j <= i and j < (2, 1, 0)[b]),
        "two paddings": (
            causal() & padding(keep["left"]) & padding([n_keys, n_keys, n_keys - 1]),
            lambda b, h, i, j: j <= i and bool(keep["left"][b, j]) and j < (n_keys, n_keys, n_keys - 1)[b],
        ),
    }
    for name, kept in keep.items():
        listed |= {
            f"{name} padding": (padding(kept), real_and(kept, lambda i, j: True)),
            f"causal, {name}": (causal() & padding(kept), real_and(kept, lambda i, j: j <= i)),
            f"causal window, {name}": (
                padding(kept) & window(3) & causal(),
                real_and(kept, lambda i, j: 0 <= i - j < 3),
            ),
        }
    return listed


NAMES = list(cases(5, 5))


def written_out(rule: Rule, n_queries: int, n_keys: int) -> Tensor:
    past = n_keys - n_queries
    rows = [
        [[[rule(b, h, i + past, j) for j in range(n_keys)] for i in range(n_queries)] for h in range(H)]
        for b in range(B)
    ]
    return torch.tensor(rows, dtype=torch.bool)


def by_hand(
    query: Tensor, key: Tensor, value: Tensor, allowed: Tensor, bias: Tensor | None, scale: float | None
) -> Tensor:
    out = torch.zeros(*query.shape[:3], value.shape[-1], dtype=query.dtype)
    group = query.shape[1] // key.shape[1]
    for b, h, i in torch.cartesian_prod(*(torch.arange(n) for n in query.shape[:3])).tolist():
        seen = [j for j in range(key.shape[2]) if allowed[b, h, i, j]]
        scores = [float(query[b, h, i] @ key[b, h // group, j]) for j in seen]
        scores = [s / math.sqrt(query.shape[-1]) if scale is None else s * scale for s in scores]
        if bias is not None:
            scores = [s + float(bias.expand_as(allowed)[b, h, i, j]) for s, j in zip(scores, seen, strict=True)]
        shares = [math.exp(s) for s in scores]
        for share, j in zip(shares, seen, strict=True):
            out[b, h, i] += share / sum(shares) * value[b, h // group, j]
    return out


def defined(name: str, allowed: Tensor) -> Tensor:
    """(B, H, Tq): all queries but those that causal attention over padding makes padding themselves."""
    n_queries, n_keys = allowed.shape[-2:]
    if "causal" not in name and "two" not in name:
        return torch.ones(allowed.shape[:3], dtype=torch.bool)
    itself = allowed.diagonal(n_keys - n_queries, dim1=-2, dim2=-1)
    return itself | ~allowed.any(dim=-1)


def projections(n_queries: int, n_keys: int, n_kv_heads: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    shapes = (B, H, n_queries, K), (B, n_kv_heads, n_keys, K), (B, n_kv_heads, n_keys, K)
    return [torch.randn(shape, dtype=torch.float64).to(dtype) for shape in shapes]


@pytest.mark.parametrize(("n_queries", "n_keys"), [(5, 5), (3, 5), (1, 5)])
@pytest.mark.parametrize("name", NAMES)
def test_both_forms_equal_a_loop_over_the_formula(name: str, n_queries: int, n_keys: int) -> None:
    keep, rule = cases(n_queries, n_keys)[name]
    allowed = written_out(rule, n_queries, n_keys)
    bias = torch.randn(B, H, n_queries, n_keys, dtype=torch.float64)
    for n_kv_heads, extra, scale in ((H, None, None), (2, None, 0.7), (1, bias, None), (H, bias[0], 1.0)):
        query, key, value = projections(n_queries, n_keys, n_kv_heads)
        wanted = by_hand(query, key, value, allowed, extra, scale)
        mixed = attend(query, key, value, keep=keep, bias=extra, scale=scale)
        weights = attention_weights(query, key, keep=keep, bias=extra, scale=scale)
        rows = defined(name, allowed)
        assert mixed.isfinite().all()
        close(mixed[rows], wanted[rows])
        close(weights @ value.repeat_interleave(H // n_kv_heads, dim=1), wanted)
        assert not weights[~allowed].any()
        close(weights.sum(-1), allowed.any(-1).double())


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 4e-2), (torch.float16, 5e-3)])
@pytest.mark.parametrize("name", NAMES)
def test_narrow_numbers_stay_near(name: str, dtype: torch.dtype, tolerance: float) -> None:
    keep, rule = cases(5, 5)[name]
    allowed = written_out(rule, 5, 5)
    query, key, value = projections(5, 5, 2, dtype)
    wanted = by_hand(query.double(), key.double(), value.double(), allowed, None, None)
    mixed, weights = attend(query, key, value, keep=keep), attention_weights(query, key, keep=keep)
    assert mixed.dtype == weights.dtype == dtype
    assert mixed.isfinite().all()
    rows = defined(name, allowed)
    close(mixed[rows].double(), wanted[rows], tolerance)
    close((weights @ value.repeat_interleave(2, dim=1)).double(), wanted, tolerance)


def test_more_queries_than_keys_leaves_the_first_ones_blind() -> None:
    query, key, value = projections(5, 3, H)
    out = attend(query, key, value, keep=causal())
    assert not out[:, :, :2].any()
    close(out[:, :, 2], value[:, :, 0])


@pytest.mark.parametrize("name", NAMES)
def test_gradients_of_both_forms_agree(name: str) -> None:
    keep, rule = cases(5, 5)[name]
    allowed = written_out(rule, 5, 5)
    inputs = [part.requires_grad_() for part in projections(5, 5, H)]
    query, key, value = inputs
    pull = torch.randn(B, H, 5, K, dtype=torch.float64) * defined(name, allowed)[..., None]
    fused = torch.autograd.grad((attend(query, key, value, keep=keep) * pull).sum(), inputs)
    plain = torch.autograd.grad(((attention_weights(query, key, keep=keep) @ value) * pull).sum(), inputs)
    for a, b in zip(fused, plain, strict=True):
        close(a, b)


@pytest.mark.parametrize("keep", [None, causal(), causal() & padding(torch.tensor([[False, True, True]]))])
def test_attend_passes_gradcheck(keep: Mask | None) -> None:
    parts = [torch.randn(1, n, 3, 2, dtype=torch.float64, requires_grad=True) for n in (2, 1, 1)]
    assert gradcheck(lambda q, k, v: attend(q, k, v, keep=keep), parts)
    bias = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda q, k, v, b: attend(q, k, v, keep=keep, bias=b), [*parts, bias])


def test_modules_pass_gradcheck() -> None:
    x, memory = (torch.randn(2, n, D, dtype=torch.float64, requires_grad=True) for n in (3, 2))
    keep = causal() & padding(torch.tensor([[True, True, True], [False, True, True]]))
    attention = shaken(MultiHeadAttention(D, H, n_kv_heads=2))
    layer = shaken(decoder_layer())
    assert gradcheck(lambda x: attention(x, keep=keep), x)
    assert gradcheck(lambda x, m: attention(x, m, keep=padding([2, 1])), (x, memory))
    assert gradcheck(lambda x, m: layer(x, m, keep=keep, memory_keep=padding([1, 2])), (x, memory))


@pytest.mark.parametrize("options", [{}, {"n_kv_heads": 2}, {"d_head": 6}, {"n_kv_heads": 1, "scale": 1.0}])
def test_multi_head_is_the_heads_side_by_side_and_projected(options: dict[str, Any]) -> None:
    attention = shaken(MultiHeadAttention(D, H, d_memory=10, **options))
    x, memory = torch.randn(B, 3, D, dtype=torch.float64), torch.randn(B, 5, 10, dtype=torch.float64)
    width, group = attention.d_head, H // attention.n_kv_heads
    query = attention.q_proj(x)
    keys, values = attention.kv_proj(memory).chunk(2, dim=-1)
    scale = options.get("scale", width**-0.5)
    heads = []
    for h in range(H):
        mine, shared = slice(h * width, (h + 1) * width), slice(h // group * width, (h // group + 1) * width)
        scores = query[..., mine] @ keys[..., shared].transpose(1, 2) * scale
        heads.append(scores.softmax(-1) @ values[..., shared])
    close(attention(x, memory), attention.out_proj(torch.cat(heads, dim=-1)))


@pytest.mark.parametrize(
    "keep",
    [
        torch.ones(1, 1, 5, 5, dtype=torch.bool).tril(-1),  # nobody sees the last token, which sees all others
        torch.tensor([True, True, False, True, False]).expand(B, 1, 5, 5),
        torch.rand(B, H, 5, 5) > 0.5,
    ],
    ids=["strictly before", "some keys", "per head"],
)
@torch.no_grad()
def test_a_token_that_nobody_sees_still_looks(keep: Tensor) -> None:
    attention, x = shaken(MultiHeadAttention(D, H)), torch.randn(B, 5, D, dtype=torch.float64)
    query = attention.q_proj(x).unflatten(-1, (H, -1)).transpose(1, 2)
    key, value = attention.keys_values(x)
    mixed = by_hand(query, key, value, keep.expand(B, H, 5, 5), None, None)
    close(attention(x, keep=keep), attention.out_proj(mixed.transpose(1, 2).flatten(2)))


def test_self_attention_is_cross_attention_over_itself() -> None:
    attention, x = shaken(MultiHeadAttention(D, H)), torch.randn(B, 4, D, dtype=torch.float64)
    lengths, real = padding([4, 2, 3]), torch.arange(4) < torch.tensor([[4], [2], [3]])
    close(attention(x, keep=lengths)[real], attention(x, x, keep=lengths)[real])


@pytest.mark.parametrize("keep", [None, padding([5, 2])])
def test_beams_share_one_row_of_memory(keep: Mask | None) -> None:
    attention = shaken(MultiHeadAttention(D, H, n_kv_heads=2))
    x, memory = torch.randn(6, 3, D, dtype=torch.float64), torch.randn(2, 5, D, dtype=torch.float64)
    repeated = None if keep is None else padding([5, 5, 5, 2, 2, 2])
    close(attention(x, memory, keep=keep), attention(x, memory.repeat_interleave(3, dim=0), keep=repeated))
    with pytest.raises(ValueError, match="5 rows cannot share 2 rows of memory"):
        attention(x[:5], memory)


def looked_at(attention: MultiHeadAttention, x: Tensor, **context: Any) -> tuple[Any, ...]:
    """What the attention inside was given."""
    given: list[tuple[Any, ...]] = []
    handle = attention.attention.register_forward_hook(lambda _, inputs, out: given.append(inputs))
    attention(x, **context)
    handle.remove()
    return given[0]


@pytest.mark.parametrize(
    "context",
    [
        {"keep": causal() & padding([5, 3, 1])},
        {"bias": torch.randn(H, 5, 5)},
        {"bias": torch.randn(B, H, 5, 5), "keep": causal()},
        {"keep": torch.rand(B, H, 5, 5) > 0.5},
    ],
    ids=["symbols", "bias", "bias by row", "a mask per head"],
)
@pytest.mark.parametrize("heads", [[1], [3, 0]])
def test_weights_of_some_heads_are_those_of_all(context: dict[str, Any], heads: list[int]) -> None:
    attention = shaken(MultiHeadAttention(D, H, n_kv_heads=2))
    inputs = looked_at(attention, torch.randn(B, 5, D, dtype=torch.float64), **context)
    close(attention.attention.weights(*inputs, heads=heads), attention.attention.weights(*inputs)[:, heads])


@pytest.mark.parametrize("n_kv_heads", [4, 2])
@pytest.mark.parametrize("shape", [(5, 5), (1, 1, 5, 5), (B, H, 5, 5)])
def test_a_key_nobody_may_see_cannot_leak(shape: tuple[int, ...], n_kv_heads: int) -> None:
    query, key, value = projections(5, 5, n_kv_heads)
    keep = torch.ones(shape, dtype=torch.bool)
    keep[..., 3] = False
    clean = attend(query, key, value, keep=keep)
    key[:, :, 3], value[:, :, 3] = torch.nan, torch.nan
    close(attend(query, key, value, keep=keep), clean)


def test_large_scores_stay_finite_in_half_precision() -> None:
    query = (40 * torch.randn(1, 1, 6, 64)).half()
    assert attend(query, query, query).isfinite().all()
    assert attention_weights(query, query).isfinite().all()


def test_wrong_shapes_are_named() -> None:
    query, key, value = projections(5, 5, H)
    with pytest.raises(ValueError, match=r"query \(4, 5, 4\), key \(3, 4, 5, 4\)"):
        attend(query[0], key, value)
    with pytest.raises(ValueError, match="as many values as keys"):
        attend(query, key, value[:, :, :4])
    with pytest.raises(ValueError, match="one head width"):
        attend(query, key[..., :3], value)
    with pytest.raises(ValueError, match=r"share evenly; got query \(3, 4, 5, 4\), key \(3, 3, 5, 4\)"):
        attend(query, key[:, :3], value[:, :3])
    bound = prepare_mask(causal(), Grid(B, 4, 4, 0, query.device), dtype=query.dtype)
    with pytest.raises(ValueError, match="for 3 rows of 4 queries and 4 keys, but there are 3 rows of 5 and 5"):
        attend(query, key, value, keep=bound)
    with pytest.raises(ValueError, match="already contains its bias"):
        attend(query[:, :, :4], key[:, :, :4], value[:, :, :4], keep=bound, bias=torch.zeros(4, 4))
    with pytest.raises(ValueError, match=r"bias of shape \(4, 5\) does not fit 3 rows of 5 queries and 5 keys"):
        attend(query, key, value, bias=torch.zeros(4, 5))
    for heads, kv_heads, word in ((3, None, "n_heads=3"), (4, 3, "n_kv_heads=3"), (0, None, "n_heads=0")):
        with pytest.raises(ValueError, match=word):
            MultiHeadAttention(D, heads, n_kv_heads=kv_heads)


def test_what_may_mean_two_things_is_refused() -> None:
    attention, x = MultiHeadAttention(D, H), torch.randn(5, 5, D)
    square = torch.ones(5, 5, dtype=torch.bool)
    with pytest.raises(ValueError, match="is ambiguous here"):
        attention(x, keep=causal() & square)
    with pytest.raises(ValueError, match="keep states which tokens are real"):
        attention(torch.randn(10, 3, D), x, keep=causal())  # two beams for each row of the memory


def test_a_window_holds_where_there_are_more_queries_than_keys() -> None:
    assert window(2).tensor(3, 2).tolist() == [[True, False], [True, True], [True, True]]
