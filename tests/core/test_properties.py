"""What holds for every shape, mask and dtype, tried on examples that nobody chose."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import V, close, decoder_only, encoder_decoder, encoder_only, recurrent
from torch import Tensor, nn

from heedful.core import Mask, attend, attention_weights, causal, everything, padding, window

few = settings(max_examples=40, deadline=None, derandomize=True)
fewer = settings(few, max_examples=12)
DTYPES = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 5e-2, torch.float16: 1e-2}
Case = tuple[list[Tensor], Mask, Tensor]


@st.composite
def attention_inputs(draw: st.DrawFn, dtypes: tuple[torch.dtype, ...] = tuple(DTYPES)) -> Case:
    """Queries, keys and values of one dtype, a mask made of any rules, and what it allows, drawn by hand."""
    torch.manual_seed(draw(st.integers(0, 2**16)))
    batch, n_kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    n_queries, width = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    n_keys = n_queries + draw(st.integers(0, 3))
    heads, size = n_kv_heads * group, draw(st.integers(1, n_keys + 1))
    lengths = draw(st.lists(st.integers(0, n_keys), min_size=batch, max_size=batch))
    anywhere, for_all = torch.rand(batch, n_keys) > 0.4, torch.rand(1, n_keys) > 0.2
    square, per_head = torch.rand(n_queries, n_keys) > 0.3, torch.rand(batch, heads, n_queries, n_keys) > 0.3
    back = torch.arange(n_keys - n_queries, n_keys)[:, None] - torch.arange(n_keys)  # from the key to the query
    rules: dict[str, tuple[Mask, Tensor]] = {
        "causal": (causal(), back >= 0),
        "window": (window(size), back.abs() < size),
        "lengths": (padding(lengths), (torch.arange(n_keys) < torch.tensor(lengths)[:, None])[:, None, None]),
        "anywhere": (padding(anywhere), anywhere[:, None, None]),
        "one row for all": (padding(for_all), for_all[:, None, None]),
        "square": (everything() & square, square),
        "per head": (everything() & per_head, per_head),
    }
    mask, allowed = everything(), torch.ones(batch, heads, n_queries, n_keys, dtype=torch.bool)
    for name in draw(st.lists(st.sampled_from(sorted(rules)), max_size=3, unique=True)):
        mask, allowed = mask & rules[name][0], allowed & rules[name][1]
    dtype = draw(st.sampled_from(dtypes))
    shapes = (heads, n_queries), (n_kv_heads, n_keys), (n_kv_heads, n_keys)
    return [torch.randn(batch, n, length, width).to(dtype) for n, length in shapes], mask, allowed


@few
@given(attention_inputs())
def test_weights_are_distributions_over_what_may_be_seen(case: Case) -> None:
    (query, key, value), mask, allowed = case
    weights = attention_weights(query, key, keep=mask)
    assert not weights[~allowed].any()
    assert (weights >= 0).all()
    close(weights.sum(-1), allowed.any(-1).to(weights.dtype), DTYPES[query.dtype])
    mixed = attend(query, key, value, keep=mask)
    assert mixed.isfinite().all()
    assert not mixed[~allowed.any(-1)].any()


@few
@given(attention_inputs((torch.float64,)))
def test_attend_equals_its_written_out_twin_whichever_kernel_runs(case: Case) -> None:
    (query, key, value), mask, allowed = case
    itself = allowed.diagonal(key.shape[2] - query.shape[2], dim1=-2, dim2=-1)
    sure = itself | ~allowed.any(-1)  # a query that may not see itself may be padding
    wanted = attention_weights(query, key, keep=mask) @ value.repeat_interleave(query.shape[1] // key.shape[1], dim=1)
    close(attend(query, key, value, keep=mask)[sure], wanted[sure])
    close(attend(query, key, value, keep=allowed), wanted)


@st.composite
def padded_batches(draw: st.DrawFn) -> tuple[Tensor, Tensor]:
    """Token ids and which are real, at least one in each row, anywhere."""
    torch.manual_seed(draw(st.integers(0, 2**16)))
    batch, length = draw(st.integers(1, 4)), draw(st.integers(1, 7))
    keep = torch.rand(batch, length) > draw(st.sampled_from([-1.0, 0.3, 0.7]))
    keep[torch.arange(batch), torch.randint(0, length, (batch,))] = True
    return torch.randint(0, V, (batch, length)), keep


def run(model: nn.Module, ids: Tensor, keep: Tensor) -> Tensor:
    return model(ids, ids, keep, keep) if hasattr(model, "encode") else model(ids, keep)


def models() -> list[nn.Module]:
    torch.manual_seed(1)
    relative = [decoder_only(scheme) for scheme in ("rotary", "alibi", "relative")]
    return [encoder_only("learned"), *relative, encoder_decoder(), recurrent(), recurrent(attention=False)]


@fewer
@given(padded_batches())
@torch.no_grad()
def test_the_order_of_rows_is_the_order_of_answers(case: tuple[Tensor, Tensor]) -> None:
    ids, keep = case
    order = torch.randperm(ids.shape[0])
    for model in models():
        close(run(model, ids[order], keep[order])[keep[order]], run(model, ids, keep)[order][keep[order]])


@fewer
@given(padded_batches(), st.integers(0, 3), st.integers(0, 3))
@torch.no_grad()
def test_padding_before_or_after_changes_nothing(case: tuple[Tensor, Tensor], before: int, after: int) -> None:
    ids, keep = case
    wider = nn.functional.pad(ids, (before, after), value=3), nn.functional.pad(keep, (before, after), value=False)
    for model in models():
        close(run(model, *wider)[wider[1]], run(model, ids, keep)[keep])
