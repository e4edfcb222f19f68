"""The kernels beside what they stand for, in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.core import DotProduct, LayerNorm, Mask, TokenEmbedding, attend, causal, everything, padding
from heedful.core.binding import bind
from heedful.core.masks import as_mask
from heedful.core.rules import Grid
from heedful.training.loss import _CrossEntropy, cross_entropy
from heedful.training.quick import QuickDotProduct, QuickLayerNorm, QuickLinear, QuickTokenEmbedding, quicken
from heedful.training.r_drop import _Agreeing, agreeing_cross_entropy

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

written_out: Any = _CrossEntropy.apply
agreeing: Any = _Agreeing.apply
DTYPES = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


def apart(found: Tensor, wanted: Tensor) -> float:
    return float((found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-9))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("vocabulary", [2, 65, 10_000, 50_304])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("passes", [1, 2])
def test_cross_entropy(dtype: torch.dtype, vocabulary: int, smoothing: float, passes: int) -> None:
    torch.manual_seed(vocabulary)
    n = 37
    logits = 3 * torch.randn(passes, n, vocabulary, device="cuda").to(dtype)
    keep = torch.rand(n, device="cuda") < 0.8
    logits[:, ~keep] = float("nan")  # what does not count may be anything
    target = torch.randint(vocabulary, (n,), device="cuda")
    mine, theirs = logits.clone().requires_grad_(), logits.double().requires_grad_()
    if passes == 1:
        found = cross_entropy(mine[0], target, keep, smoothing=smoothing)
        total, plain = written_out(theirs[0], target, keep, smoothing)
    else:
        found = agreeing_cross_entropy(mine.flatten(0, 1), target, keep, smoothing=smoothing, alpha=5.0)
        total, plain = agreeing(theirs, target, keep, smoothing, 1.25)
    assert float(found.total) == pytest.approx(float(total.sum()), rel=1e-5)
    assert float(found.plain) == pytest.approx(float(plain.sum()), rel=1e-5)
    assert int(found.n) == int(keep.sum())
    (gradient,), (wanted,) = torch.autograd.grad(found.total, mine), torch.autograd.grad(total.sum(), theirs)
    assert apart(gradient, wanted) < DTYPES[dtype]
    assert not gradient[:, ~keep].any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1, 8), (3, 5, 7), (40, 20, 128), (900, 3, 384), (2, 3, 4096), (9001, 24)])
@pytest.mark.parametrize("outputs", [24, 200])
def test_layer_norm_and_linear(dtype: torch.dtype, shape: tuple[int, ...], outputs: int) -> None:
    torch.manual_seed(0)
    width = shape[-1]
    module = torch.nn.Sequential(LayerNorm(width), torch.nn.Linear(width, outputs)).cuda()
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter)
    module = module.to(dtype)
    x, slope = torch.randn(shape, device="cuda").to(dtype), torch.randn(*shape[:-1], outputs, device="cuda")
    x.requires_grad_()
    exact = [value.detach().double().requires_grad_() for value in (x, *module.parameters())]
    given, weight, bias, matrix, offset = exact
    wanted = F.linear(F.layer_norm(given, (width,), weight, bias, module[0].eps), matrix, offset)  # type: ignore[arg-type]
    quicken(module)
    assert [type(part) for part in module] == [QuickLayerNorm, QuickLinear]
    found = module(x)
    assert apart(found, wanted) < DTYPES[dtype]
    theirs = torch.autograd.grad((wanted * slope.double()).sum(), exact)
    mine = torch.autograd.grad((found.float() * slope).sum(), (x, *module.parameters()))
    for one, other in zip(mine, theirs, strict=True):
        assert apart(one, other) < 3 * DTYPES[dtype]


LENGTHS = 3, 0, 2  # thirds of a row's keys that are real: one row is nothing but padding


def rules_of(kind: str, n_queries: int, n_keys: int) -> Mask:
    real = padding([n_keys * thirds // 3 for thirds in LENGTHS])
    if kind == "dead queries":
        seen = torch.rand(3, 1, n_queries, n_keys, generator=torch.Generator().manual_seed(0)) < 0.5
        seen[:, :, ::3] = False
        return as_mask(seen.cuda())
    return {"causal": causal(), "padding": real, "both": causal() & real}.get(kind, everything())


@pytest.mark.parametrize("kind", ["all", "causal", "padding", "both", "bias", "dead queries"])
@pytest.mark.parametrize(("heads", "shared"), [(4, 4), (6, 2)])
@pytest.mark.parametrize(("n_queries", "n_keys", "width"), [(12, 12, 64), (52, 31, 64), (1, 64, 24), (33, 5, 128)])
def test_attention_over_short_rows(kind: str, heads: int, shared: int, n_queries: int, n_keys: int, width: int) -> None:
    torch.manual_seed(0)
    n_keys = n_queries if kind in ("causal", "both") else n_keys
    batch, dtype, by_token = 3, torch.bfloat16, kind != "all"
    shapes = (n_queries, heads), (n_keys, shared), (n_keys, shared)
    values = [torch.randn(batch, n, h, width, device="cuda").to(dtype).transpose(1, 2) for n, h in shapes]
    values = values if by_token else [value.contiguous() for value in values]
    rules = rules_of(kind, n_queries, n_keys)
    grid = Grid(batch, n_queries, n_keys, n_keys - n_queries, torch.device("cuda"))
    bias = torch.randn(heads, n_queries, n_keys, device="cuda").to(dtype) if kind == "bias" else None
    part = DotProduct(scale=0.3 if kind == "bias" else None)
    quicken(part)
    assert type(part) is QuickDotProduct
    mine = [value.clone().requires_grad_() for value in values]
    exact = [value.double().requires_grad_() for value in values]
    found = part(*mine, bind(rules, grid, bias=bias, dtype=dtype))
    assert type(found.grad_fn).__name__ == "ShortAttentionBackward"
    wanted = attend(*exact, keep=rules, bias=None if bias is None else bias.double(), scale=part.scale)
    slope = torch.randn(found.shape, device="cuda").to(dtype)
    if kind == "both":  # what a query gives that is itself padding is nobody's
        lengths = torch.tensor([n_keys * thirds // 3 for thirds in LENGTHS])
        counts = (torch.arange(n_queries) < lengths[:, None]).cuda()[:, None, :, None]
        found, wanted, slope = found * counts, wanted * counts, slope * counts
    assert apart(found, wanted) < 1e-2
    theirs = torch.autograd.grad((wanted * slope.double()).sum(), exact)
    for one, other in zip(torch.autograd.grad((found * slope).sum(), mine), theirs, strict=True):
        assert apart(one, other) < 2e-2


@pytest.mark.parametrize("what", ["learned", "dropout", "long", "order", "by head", "float32"])
def test_what_its_kernel_does_not_know_is_left_to_attention(what: str) -> None:
    dtype = torch.float32 if what == "float32" else torch.bfloat16
    n = 65 if what == "long" else 8
    shape = 2, 4, n, 16
    query, key, value = (torch.randn(shape, device="cuda").to(dtype).requires_grad_() for _ in range(3))
    bias = torch.randn(4, n, n, device="cuda").to(dtype).requires_grad_() if what == "learned" else None
    seen = torch.rand(2, 4, n, n, device="cuda") < 0.5
    seen[:, 1, 3] = False
    some = torch.tensor([[False] * 3 + [True] * (n - 3)] * 2, device="cuda")
    rules = {"by head": as_mask(seen), "order": causal() & padding(some)}.get(what, everything())
    part = DotProduct(dropout=0.1 if what == "dropout" else 0.0)
    quicken(part)
    found = part(query, key, value, bind(rules, Grid(2, n, n, 0, torch.device("cuda")), bias=bias, dtype=dtype))
    assert type(found.grad_fn).__name__ != "ShortAttentionBackward"
    inputs = [query, key, value, *([] if bias is None else [bias])]
    assert all(bool(slope.isfinite().all()) for slope in torch.autograd.grad(found.sum(), inputs))


@pytest.mark.parametrize("dtype", DTYPES)
def test_token_embedding(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    part = TokenEmbedding(500, 96).cuda().to(dtype)
    ids = torch.randint(500, (40, 30), device="cuda")
    ids[:, 20:] = 0  # an id that many share
    slope = torch.randn(40, 30, 96, device="cuda")
    slope[::2, 20:] = 0
    exact = part.weight.detach().double().requires_grad_()
    wanted = F.embedding(ids, exact) * part.scale
    quicken(part)
    assert type(part) is QuickTokenEmbedding
    assert part(torch.zeros(0, 5, dtype=torch.long, device="cuda"))[0].shape == (0, 5, 96)
    found, _ = part(ids)
    assert apart(found, wanted) < DTYPES[dtype]
    (mine,) = torch.autograd.grad((found.float() * slope).sum(), [part.weight])
    (theirs,) = torch.autograd.grad((wanted * slope.double()).sum(), [exact])
    assert apart(mine, theirs) < DTYPES[dtype]
