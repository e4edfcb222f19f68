"""Each quick part beside torch's own, in float64; and a whole module before and after."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import heedful
from heedful.backends import cpu, use_backend
from heedful.backends.cpu import FEW, SHORT, CpuFusedDropout, PackedEncoderLayer, PendingLogits
from heedful.core import (
    BatchNorm,
    DotProduct,
    EncoderLayer,
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    Mask,
    MultiHeadAttention,
    PreNorm,
    VocabularyHead,
    attend,
    causal,
    everything,
    padding,
)
from heedful.core.mask_preparation import PreparedMask, prepare_mask
from heedful.core.masks import Grid
from heedful.training import cross_entropy
from heedful.training.parallel import MasterWeightModel, ReplicatedModel

TOLERANCE = {torch.float32: (1e-4, 1e-5), torch.bfloat16: (2e-2, 2e-2)}  # relative, absolute
DTYPES = list(TOLERANCE)


def quick(part: nn.Module) -> Any:
    copy = use_backend(deepcopy(part), "cpu")
    assert type(copy) is not type(part)
    return copy


def assert_near(found: Tensor, exact: Tensor, dtype: torch.dtype) -> None:
    assert found.dtype == dtype
    rtol, atol = TOLERANCE[dtype]
    torch.testing.assert_close(found.double(), exact, rtol=rtol, atol=atol)


def test_dropout_drops_its_share_and_keeps_the_mean() -> None:
    torch.manual_seed(0)
    x, rate = torch.ones(100, 10_001), 0.3  # 10,001: words of four draws are cut
    out = CpuFusedDropout(rate)(x)
    kept = out != 0
    sigma = (rate * (1 - rate) / x.numel()) ** 0.5
    assert abs(float(kept.double().mean()) - (1 - rate)) < 4 * sigma
    assert torch.allclose(out[kept], torch.tensor(1 / (1 - rate)), rtol=1e-4)
    assert abs(float(out.double().mean()) - 1) < 4 * sigma / (1 - rate)


def test_dropouts_draws_know_nothing_of_each_other() -> None:
    torch.manual_seed(0)
    part, x = CpuFusedDropout(0.5), torch.ones(2**20)
    first, second = (part(x).double() - 1 for _ in range(2))  # ±1
    bound = 4 / 2**10
    for step in (1, 2, 3, 4, 8, 256):
        assert abs(float((first[step:] * first[:-step]).mean())) < bound
    assert abs(float((first * second).mean())) < bound
    for lane in range(4):
        assert abs(float(first[lane::4].mean())) < 2 * bound


@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_follows_torchs_generator_and_so_does_its_gradient(dtype: torch.dtype) -> None:
    part, x = CpuFusedDropout(0.2), torch.rand(4, FEW, dtype=dtype).add_(1).requires_grad_()
    torch.manual_seed(3)
    state = torch.get_rng_state()
    out, other = part(x), part(x)
    torch.set_rng_state(state)
    assert torch.equal(part(x), out)
    assert not torch.equal(other, out)
    (slope,) = torch.autograd.grad(out.sum(), x)
    assert torch.equal(slope == 0, out == 0)
    torch.testing.assert_close(out, x * slope)


def test_dropout_is_torchs_where_it_would_not_pay() -> None:
    for x, part in (
        (torch.rand(FEW - 1), nn.Dropout(0.4)),
        (torch.rand(FEW, dtype=torch.float64), nn.Dropout(0.4)),
        (torch.rand(FEW), nn.Dropout(0.0)),
        (torch.rand(FEW), nn.Dropout(1.0)),
        (torch.rand(FEW), nn.Dropout(0.4).eval()),
    ):
        torch.manual_seed(1)
        theirs = part(x)
        torch.manual_seed(1)
        assert torch.equal(quick(part)(x), theirs)


def heads(queries: int, keys: int, dtype: torch.dtype, n_kv: int = 2) -> list[Tensor]:
    """(B, H, T, K) whose memory is (B, T, H, K), as projections leave it."""
    shapes = [(3, queries, 2, 8), (3, keys, n_kv, 8), (3, keys, n_kv, 8)]
    return [torch.randn(shape, dtype=dtype).transpose(1, 2).requires_grad_() for shape in shapes]


REAL = torch.arange(6) < torch.tensor([6, 4, 1])[:, None]
MASKS = {
    "nothing": (everything(), 6),
    "causal": (causal(), 6),
    "padding": (padding(REAL), 6),
    "padding of a memory": (padding(REAL), 4),
    "rows of nothing": (padding(REAL & torch.tensor([True, False, True])[:, None]), 6),
    "both": (causal() & padding(REAL), 6),
}


def bound(mask: Mask, queries: int = 6, keys: int = 6, bias: Tensor | None = None) -> PreparedMask:
    return prepare_mask(mask, Grid(3, queries, keys, 0, torch.device("cpu")), bias=bias, dtype=torch.float32)


@pytest.mark.parametrize("scale", [None, 0.7])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MASKS)
def test_attention_is_attention(name: str, dtype: torch.dtype, scale: float | None) -> None:
    torch.manual_seed(0)
    mask, queries = MASKS[name]
    given = heads(queries, 6, dtype)
    exact = [part.detach().double().requires_grad_() for part in given]
    keep = bound(mask, queries)
    out, want = quick(DotProduct(scale=scale))(*given, keep), attend(*exact, keep=keep, scale=scale)
    slope = torch.randn(out.shape, dtype=dtype)
    assert_near(out, want, dtype)
    found = torch.autograd.grad(out, given, slope)
    for mine, theirs in zip(found, torch.autograd.grad(want, exact, slope.double()), strict=True):
        assert_near(mine, theirs, dtype)


def test_attention_is_written_out_only_where_that_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    fused: list[int] = []
    real = F.scaled_dot_product_attention

    def counting(*args: Any, **kwargs: Any) -> Tensor:
        fused.append(1)
        return real(*args, **kwargs)

    monkeypatch.setattr(F, "scaled_dot_product_attention", counting)
    part = quick(DotProduct())
    part(*heads(6, 6, torch.float32), bound(causal()))
    assert not fused
    part(*heads(6, 6, torch.float64), bound(causal()))
    part(*heads(6, 6, torch.float32, n_kv=1), bound(causal()))
    part(*heads(2, SHORT + 1, torch.float32), bound(everything(), 2, SHORT + 1))
    part(*heads(6, 6, torch.float32), bound(causal() & padding(REAL.flip(1))))  # it must be put in order first
    bias = torch.zeros(2, 6, 6, requires_grad=True)
    out = part(*heads(6, 6, torch.float32), bound(causal(), bias=bias))
    assert torch.autograd.grad(out.sum(), bias)[0].shape == bias.shape
    quick(DotProduct(dropout=0.5))(*heads(6, 6, torch.float32), bound(causal()))
    assert len(fused) == 6


@pytest.mark.parametrize("bias", [True, False])
def test_a_map_is_a_map(bias: bool) -> None:
    torch.manual_seed(0)
    part = nn.Linear(24, 40, bias=bias)
    mine, exact = quick(part), deepcopy(part).double()
    x = torch.randn(3, 5, 24).transpose(0, 1).requires_grad_()
    x64 = x.detach().double().requires_grad_()
    out, want = mine(x), exact(x64)
    slope = torch.randn(5, 40, 3).transpose(1, 2)
    assert_near(out, want, torch.float32)
    found = torch.autograd.grad(out, [x, *mine.parameters()], slope)
    wanted = torch.autograd.grad(want, [x64, *exact.parameters()], slope.double())
    for ours, theirs in zip(found, wanted, strict=True):
        assert_near(ours, theirs, torch.float32)


def head(dtype: torch.dtype, *, bias: bool = True) -> VocabularyHead:
    part = VocabularyHead(16, 50, bias=bias, scale=0.5)
    nn.init.normal_(part.weight)
    if part.bias is not None:
        nn.init.normal_(part.bias)
    return part.to(dtype)


@pytest.mark.parametrize("block", [50, 230, 10_000])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_loss_of_pending_logits_is_that_of_logits(
    dtype: torch.dtype, bias: bool, smoothing: float, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu, "BLOCK", block)
    torch.manual_seed(0)
    part = head(dtype, bias=bias)
    mine, exact = quick(part), deepcopy(part).double()
    target, keep = torch.randint(0, 50, (4, 6)), torch.rand(4, 6) < 0.6
    x = torch.randn(4, 6, 16, dtype=dtype).masked_fill_(~keep[..., None], torch.nan).requires_grad_()
    x64 = x.detach().double().nan_to_num(0.0).requires_grad_()
    logits = mine(x)
    assert isinstance(logits, PendingLogits)
    loss = cross_entropy(logits, target, keep, smoothing=smoothing)
    want = cross_entropy(exact(x64), target, keep, smoothing=smoothing)
    assert logits.computed is None
    assert int(loss.n) == int(keep.sum())
    assert not loss.plain.requires_grad
    rtol = 1e-5 if dtype == torch.float32 else 1e-2
    torch.testing.assert_close(loss.plain.double(), want.plain, rtol=rtol, atol=0.0)
    torch.testing.assert_close(loss.total.double(), want.total, rtol=rtol, atol=0.0)
    found = torch.autograd.grad(0.3 * loss.total, [x, *mine.parameters()])
    wanted = torch.autograd.grad(0.3 * want.total, [x64, *exact.parameters()])
    for ours, theirs in zip(found, wanted, strict=True):
        assert_near(ours, theirs, dtype)


def test_large_logits_do_not_overflow() -> None:
    part = quick(VocabularyHead(2, 3))
    with torch.no_grad():
        part.embedding.weight.copy_(torch.tensor([[1000.0, 0.0], [0.0, 1000.0], [-1000.0, 0.0]]))
    loss = cross_entropy(part(torch.tensor([[1.0, 0.0]])), torch.tensor([2]))
    assert float(loss.total.detach()) == 2000.0


def test_pending_logits_are_logits_to_everyone_else() -> None:
    torch.manual_seed(0)
    part = head(torch.float32)
    x = torch.randn(2, 3, 16, requires_grad=True)
    logits, want = quick(part)(x), part(x)
    assert (logits.shape, logits.dtype, logits.device) == (want.shape, want.dtype, want.device)
    assert logits.computed is None
    for use in (lambda y: y[0, 1].sum(), lambda y: F.log_softmax(y, -1).max(), lambda y: (2 * y).float().norm()):
        found, wanted = use(logits), use(want)
        torch.testing.assert_close(found, wanted)
        slopes = (torch.autograd.grad(value, x, retain_graph=True)[0] for value in (found, wanted))
        torch.testing.assert_close(*slopes)

    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            with torch._C.DisableTorchFunctionSubclass():
                return x * 2

    with pytest.raises(RuntimeError, match="not computed yet"):
        Twice.apply(quick(part)(x))  # type: ignore[no-untyped-call]


def model(dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    return heedful.build("tiny", vocab_size=60, d_model=32, n_heads=4, d_ff=48, dropout=0.0).to(dtype)


def step(module: nn.Module, *, autocast: bool = False) -> tuple[Tensor, list[Tensor | None]]:
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randint(3, 60, (5, 9), generator=generator) for _ in range(2))
    real = torch.arange(9) < torch.tensor([9, 7, 5, 2, 1])[:, None]
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        logits = module(source, target, padding(real), padding(real))
        loss = cross_entropy(logits, target, real, smoothing=0.1)
    return loss.total, list(torch.autograd.grad(loss.total, list(module.parameters()), allow_unused=True))


def test_a_whole_step_is_the_same() -> None:
    module = model()
    held = ReplicatedModel(module)
    want, wanted = step(module)
    fused = use_backend(held.module, "cpu")
    found = step(fused)
    torch.testing.assert_close(found[0], want)
    torch.testing.assert_close(found[1], wanted, rtol=1e-4, atol=1e-5)
    again = step(fused)
    assert torch.equal(again[0], found[0])


@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("name", ["bart", "bert", "gpt2", "llama", "marian", "mistral", "t5"])
def test_every_kind_of_model_leaves_its_padding_out(name: str, end: bool) -> None:
    torch.manual_seed(0)
    module = heedful.build(f"{name}-tiny").eval()
    other = use_backend(deepcopy(module), "cpu")
    seen: list[int] = []
    for part in other.modules():
        if isinstance(part, FeedForward | GatedFeedForward):
            part.register_forward_pre_hook(lambda _, args: seen.append(args[0].shape[:-1].numel()))
    ids = torch.randint(3, 50, (4, 9))
    real = torch.arange(9) < torch.tensor([9, 7, 5, 2])[:, None]
    real = real if end else real.flip(1)
    both = name in ("bart", "marian", "t5")
    losses = []
    for each in (module, other):
        logits = each(ids, ids, padding(real), padding(real)) if both else each(ids, padding(real))
        total = cross_entropy(logits, ids, real).total
        losses.append((total, torch.autograd.grad(total, list(each.parameters()), allow_unused=True)))
    assert set(seen) == {23}
    torch.testing.assert_close(losses[1], losses[0], rtol=1e-3, atol=1e-5)


def test_a_part_that_is_not_known_keeps_its_padding() -> None:
    layer = EncoderLayer(PreNorm(MultiHeadAttention(8, 2), BatchNorm(8)), PreNorm(FeedForward(8, 16), LayerNorm(8)))
    assert type(use_backend(layer, "cpu")) is EncoderLayer
    layer = EncoderLayer(PreNorm(MultiHeadAttention(8, 2), LayerNorm(8)), PreNorm(FeedForward(8, 16), LayerNorm(8)))
    assert type(use_backend(layer, "cpu")) is PackedEncoderLayer


@pytest.mark.parametrize("autocast", [True, False])
def test_a_whole_step_in_bf16_is_near(autocast: bool) -> None:
    module = model()
    held = ReplicatedModel(module) if autocast else MasterWeightModel(module)
    fused = use_backend(held.module, "cpu")
    want, found = step(module)[0], step(fused, autocast=autocast)[0]
    torch.testing.assert_close(found.float(), want, rtol=1e-2, atol=0.0)


def test_float64_is_left_alone() -> None:
    module = model(torch.float64)
    other = use_backend(deepcopy(module), "cpu")
    assert torch.equal(step(module)[0], step(other)[0])


def test_a_copy_that_computes_shares_every_tensor_and_no_part() -> None:
    module = heedful.build("tiny", vocab_size=60, d_model=32, n_heads=4, d_ff=48)
    module.register_buffer("seen", torch.zeros(3))
    before = [type(part) for part in module.modules()]
    held = ReplicatedModel(module)
    fused = use_backend(held.module, "cpu")
    mine, theirs = ({**dict(m.named_parameters()), **dict(m.named_buffers())} for m in (fused, module))
    assert list(mine) == list(theirs)
    assert all(mine[name] is theirs[name] for name in theirs)
    assert [type(part) for part in module.modules()] == before
    assert not {id(part) for part in module.modules()} & {id(part) for part in fused.modules()}


def test_without_a_gradient_the_module_is_as_it_was() -> None:
    module = model()
    other = use_backend(deepcopy(module), "cpu")
    with torch.no_grad():
        ids = torch.randint(3, 60, (2, 5))
        assert torch.equal(module(ids, ids), other(ids, ids))
