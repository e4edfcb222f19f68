"""The kernels beside what they stand for, in float64."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from twins import DTYPES, apart, made_by

from heedful.backends.triton.deferred import AddressTables, BackwardPass
from heedful.backends.triton.modules import (
    FusedDotProduct,
    FusedLayerNorm,
    FusedLinear,
    FusedPostNorm,
    FusedPreNorm,
    FusedTokenEmbedding,
    fused_on_gpu,
)
from heedful.core import (
    ACTIVATIONS,
    DotProduct,
    FeedForward,
    LayerNorm,
    Mask,
    MultiHeadAttention,
    PostNorm,
    PreNorm,
    TokenEmbedding,
    VocabularyHead,
    attend,
    causal,
    everything,
    padding,
)
from heedful.core.mask_preparation import prepare_mask
from heedful.core.masks import Grid, as_mask
from heedful.training.loss import _CrossEntropy, cross_entropy
from heedful.training.optimizers import FusedAdamW, MaskedAdamW
from heedful.training.parallel import MasterWeightModel

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

reference: Any = _CrossEntropy.apply


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
        total, plain = reference(theirs, target, keep, smoothing, 0.0)
    else:
        found = cross_entropy(mine.flatten(0, 1), target, keep, smoothing=smoothing, r_drop=5.0)
        total, plain = reference(theirs, target, keep, smoothing, 1.25)
    assert float(found.total.detach()) == pytest.approx(float(total.detach().sum()), rel=1e-5)
    assert float(found.plain) == pytest.approx(float(plain.detach().sum()), rel=1e-5)
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
    module, _ = fused_on_gpu(module, torch.device("cuda"))
    assert [type(part) for part in module] == [FusedLayerNorm, FusedLinear]
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
    part, _ = fused_on_gpu(part, torch.device("cuda"))
    assert type(part) is FusedDotProduct
    mine = [value.clone().requires_grad_() for value in values]
    exact = [value.double().requires_grad_() for value in values]
    found = part(*mine, prepare_mask(rules, grid, bias=bias, dtype=dtype))
    assert "ShortAttentionBackward" in made_by(found)
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
    part, _ = fused_on_gpu(part, torch.device("cuda"))
    found = part(query, key, value, prepare_mask(rules, Grid(2, n, n, 0, torch.device("cuda")), bias=bias, dtype=dtype))
    assert "ShortAttentionBackward" not in made_by(found)
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
    part, _ = fused_on_gpu(part, torch.device("cuda"))
    assert type(part) is FusedTokenEmbedding
    assert part(torch.zeros(0, 5, dtype=torch.long, device="cuda"))[0].shape == (0, 5, 96)
    found, _ = part(ids)
    assert apart(found, wanted) < DTYPES[dtype]
    (mine,) = torch.autograd.grad((found.float() * slope).sum(), [part.weight])
    (theirs,) = torch.autograd.grad((wanted * slope.double()).sum(), [exact])
    assert apart(mine, theirs) < DTYPES[dtype]


def layer(kind: str, residual: type, width: int) -> torch.nn.Module:
    parts: dict[str, Callable[[], torch.nn.Module]] = {
        name: lambda name=name: FeedForward(width, 3 * width, activation=name)  # type: ignore[misc]
        for name in ("relu", "gelu", "gelu_tanh", "silu")
    }
    parts |= {
        "self": lambda: MultiHeadAttention(width, 4),
        "cross": lambda: MultiHeadAttention(width, 4),
        "grouped": lambda: MultiHeadAttention(width, 4, n_kv_heads=2),
        "long": lambda: MultiHeadAttention(width, 4),
        "turned": lambda: MultiHeadAttention(width, 4),
    }
    return residual(parts[kind](), LayerNorm(width), 0.0).cuda()


def turn(query: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    return query.flip(-1), key * 0.5


@pytest.mark.parametrize("residual", [PostNorm, PreNorm])
@pytest.mark.parametrize("kind", ["relu", "gelu", "gelu_tanh", "silu", "self", "cross", "grouped", "long", "turned"])
def test_a_layer_and_all_its_gradients(residual: type, kind: str) -> None:
    """Of several calls one after the other, so that weights are used twice, and once."""
    torch.manual_seed(0)
    width, n = 64, 70 if kind == "long" else 20
    outer, inner = layer(kind, residual, width), layer(kind, residual, width)
    module = torch.nn.ModuleList([outer, inner])
    for parameter in module.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    module = module.to(torch.bfloat16)
    plain, exact = deepcopy(module), deepcopy(module).double()
    module, _ = fused_on_gpu(module, torch.device("cuda"))
    assert {type(part) for part in module} == {FusedPostNorm if residual is PostNorm else FusedPreNorm}
    x, memory = (torch.randn(5, length, width, device="cuda").to(torch.bfloat16).requires_grad_() for length in (n, 14))
    context: dict[str, Any] = {}
    if kind not in ACTIVATIONS:
        grid = Grid(5, n, 14 if kind == "cross" else n, 0, torch.device("cuda"))
        rules = padding([14, 3, 9, 1, 14]) if kind == "cross" else causal()
        context["keep"] = rules, grid
    slope = torch.randn(5, n, width, device="cuda")

    def run(parts: Any, given: list[Tensor], dtype: torch.dtype) -> list[Tensor]:
        bound = {"keep": prepare_mask(*context["keep"], dtype=dtype)} if context else {}
        more = {"rotate": turn} if kind == "turned" else {}
        others = given[1:] if kind == "cross" else []
        y = given[0]
        for part in (parts[0], parts[1], parts[1]):
            y = part(y, *others, **bound, **more)
        used = given if kind == "cross" else given[:1]
        return [y, *torch.autograd.grad((y * slope.to(y.dtype)).sum(), [*used, *parts.parameters()])]

    theirs = run(exact, [value.detach().double().requires_grad_() for value in (x, memory)], torch.float64)
    rounded, mine = (run(parts, [x, memory], torch.bfloat16) for parts in (plain, module))
    names = ["output", "x", *(["memory"] if kind == "cross" else []), *(name for name, _ in module.named_parameters())]
    for name, *values in zip(names, mine, rounded, theirs, strict=True):
        if name.endswith("kv_proj.bias"):  # a key's bias has no gradient but roundings
            values = [value.chunk(2)[1] for value in values]
        one, same, other = values
        assert apart(one, other) < 1.5 * apart(same, other) + 5e-3, name  # torch's own are as far off


def test_dropout_without_a_mask() -> None:
    from heedful.backends.triton.dropout import Dropping
    from heedful.backends.triton.residual import Added

    shared = BackwardPass(torch.device("cuda"), AddressTables(torch.device("cuda")))
    seed = shared.seed
    x, part = torch.zeros(999, 96, device="cuda"), torch.ones(999, 96, device="cuda", requires_grad=True)
    bias = torch.zeros(96, device="cuda", requires_grad=True)
    made: Any = Added.apply

    def dropped(share: float, number: int) -> Tensor:
        out: Tensor = made(shared, x, part, bias, Dropping(share, seed, number))
        return out

    once, again, other = dropped(0.3, 1), dropped(0.3, 1), dropped(0.3, 2)
    assert torch.equal(once, again)
    assert once.unique().tolist() == pytest.approx([0.0, 1 / 0.7])
    gone, gone_there = (once == 0).double(), (other == 0).double()
    deviation = (0.3 * 0.7 / once.numel()) ** 0.5
    for share, wanted in (
        (gone.mean(), 0.3),
        ((gone * gone_there).mean(), 0.09),  # of another draw, it says nothing
        ((gone[1:] * gone[:-1]).mean(), 0.09),  # nor of its neighbours
        ((gone[:, 1:] * gone[:, :-1]).mean(), 0.09),
    ):
        assert float(share) == pytest.approx(wanted, abs=5 * deviation)
    by_part, by_bias = torch.autograd.grad((once * 2).sum(), (part, bias))
    assert torch.equal(by_part, 2 * once.detach())
    assert torch.allclose(by_bias, 2 * once.sum(0))
    shared.begin()
    assert not torch.equal(dropped(0.3, 1), once)
    assert torch.equal(dropped(0.0, 1), part)


@pytest.mark.parametrize("residual", [PostNorm, PreNorm])
def test_dropout_in_a_layer(residual: type) -> None:
    """Where everything but the residual is the identity, what was dropped can be seen, and its gradient known."""
    width = 32
    torch.manual_seed(0)
    part = FeedForward(width, 64, activation="relu")
    for parameter in part.parameters():
        torch.nn.init.zeros_(parameter)
    torch.nn.init.ones_(part.down_proj.bias)  # the part gives 1 everywhere, or 0 where that is dropped
    module = residual(part, LayerNorm(width), 0.4).cuda().to(torch.bfloat16)
    module, _ = fused_on_gpu(module, torch.device("cuda"))
    x = torch.zeros(50, 4, width, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    y = module(x)
    kept = (y > 0.3 if residual is PreNorm else y > y.mean(dim=-1, keepdim=True)).double()
    assert float(1 - kept.mean()) == pytest.approx(0.4, abs=0.05)
    if residual is PreNorm:
        assert torch.allclose(y.double(), kept / 0.6, rtol=1e-2)
    exact = [value.detach().double().requires_grad_() for value in (x, part.down_proj.bias)]
    total = exact[0] + exact[1] * kept / 0.6
    wanted = F.layer_norm(total, (width,), eps=module.norm.eps) if residual is PostNorm else total
    slope = torch.randn(y.shape, device="cuda", dtype=torch.bfloat16)
    mine = torch.autograd.grad((y * slope).sum(), [x, part.down_proj.bias])
    theirs = torch.autograd.grad((wanted * slope.double()).sum(), exact)
    assert apart(mine[1], theirs[1]) < 2e-2
    assert residual is PreNorm or apart(mine[0], theirs[0]) < 2e-2


class Tied(torch.nn.Module):
    """A table that is read and written with, a part that two residuals share, and a norm that is not trained."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = TokenEmbedding(400, 64)
        shared = FeedForward(64, 128, activation="gelu")
        self.layers = torch.nn.ModuleList([PostNorm(shared, LayerNorm(64)), PostNorm(shared, LayerNorm(64))])
        self.frozen = PostNorm(FeedForward(64, 128, activation="gelu"), LayerNorm(64))
        self.frozen.requires_grad_(False)
        self.head = VocabularyHead(64, 400, embedding=self.embedding, bias=True)

    def forward(self, ids: Tensor) -> Tensor:
        x, _ = self.embedding(ids)
        for part in (*self.layers, self.frozen):
            x = part(x)
        out: Tensor = self.head(x)
        return out


@pytest.mark.parametrize("deterministic", [False, True])
def test_what_is_left_for_the_end_is_done(deterministic: bool) -> None:
    """Memory that will be read and written then is not given to others; what is used twice is added up before."""
    torch.manual_seed(0)
    module = Tied().cuda().to(torch.bfloat16)
    exact, ids = deepcopy(module).double(), torch.randint(400, (40, 30), device="cuda")
    module, shared = fused_on_gpu(module, torch.device("cuda"))
    names = [name for name, parameter in module.named_parameters() if parameter.requires_grad]
    wanted = torch.autograd.grad(exact(ids).logsumexp(-1).sum(), [dict(exact.named_parameters())[n] for n in names])
    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    try:
        shared.begin()
        loss = module(ids).float().logsumexp(-1).sum()
        found = torch.autograd.grad(loss, [dict(module.named_parameters())[name] for name in names])
    finally:
        torch.use_deterministic_algorithms(before)
    for name, one, other in zip(names, found, wanted, strict=True):
        assert apart(one, other) < 0.1, name  # memory that others wrote into is off by more than its size


class Apart(torch.nn.Module):
    """Maps that have nothing to do with each other: rows, inputs and outputs of each are given."""

    def __init__(self, sizes: list[tuple[int, int, int]]) -> None:
        super().__init__()
        self.maps = torch.nn.ModuleList([torch.nn.Linear(d, e) for _, d, e in sizes])

    def forward(self, given: list[tuple[Tensor, Tensor]]) -> Tensor:
        pairs = zip(self.maps, given, strict=True)
        return torch.stack([(part(x * 1.0) * slope).sum().double() for part, (x, slope) in pairs]).sum()


WIDE = [(700, 256, 768), (333, 256, 256), (1, 512, 8), (128, 1024, 256)]
ALL = [*WIDE, (64, 24, 1024), (5000, 40, 72), (9, 5, 7), (40, 128, 128)]


@pytest.mark.parametrize("sizes", [WIDE, ALL, ALL[-3:]])
@pytest.mark.parametrize("way", ["as it comes", "recorded", "recorded without room"])
def test_gradients_of_many_maps(sizes: list[tuple[int, int, int]], way: str) -> None:
    torch.manual_seed(0)
    device = torch.device("cuda")
    module = Apart(sizes).to(device, torch.bfloat16)
    given = [[torch.randn(n, size, device=device).bfloat16() for size in (d, e)] for n, d, e in sizes]
    exact, tables = deepcopy(module).double(), AddressTables(device)
    module, shared = fused_on_gpu(module, device, tables)

    def found() -> tuple[Tensor, ...]:
        shared.begin()
        return torch.autograd.grad(module(given), list(module.parameters()))

    mine = found()
    if way != "as it comes":
        graph, tables._most = torch.cuda.CUDAGraph(), tables._most if way == "recorded" else 10
        with tables.recording() as room, torch.cuda.graph(graph):
            mine = found()
        for part in [part for pair in given for part in pair]:
            part.normal_()
        graph.replay()
        assert tables._used == (len(room) if way == "recorded" else 0)
    doubles = [[part.double() for part in pair] for pair in given]
    theirs = torch.autograd.grad(exact(doubles), list(exact.parameters()))
    for one, other in zip(mine, theirs, strict=True):
        assert apart(one, other) < 1e-2


@pytest.mark.parametrize("sizes", [[(3,), (256,), (70, 65), (2048,), (5, 4096), (1,)], [(256,), (70, 64), (5, 4096)]])
def test_adamw_and_rounding_of_many_tensors(sizes: list[tuple[int, ...]]) -> None:
    """Beside torch's own, with a factor, a decay for some, a step that is skipped, and sizes of all kinds."""
    torch.manual_seed(0)
    starts = [torch.randn(size, device="cuda") for size in sizes]
    sets = [[torch.nn.Parameter(start.clone()) for start in starts] for _ in range(2)]
    rate = torch.tensor(0.01, device="cuda")
    settings: dict[str, Any] = {"lr": rate, "betas": (0.9, 0.98), "eps": 1e-9, "fused": True, "capturable": True}
    kinds = FusedAdamW, MaskedAdamW
    groups = [[{"params": w[:2], "weight_decay": 0.1}, {"params": w[2:], "weight_decay": 0.0}] for w in sets]
    mine, theirs = (kind(group, **settings) for kind, group in zip(kinds, groups, strict=True))
    for step in range(6):
        rate.fill_(0.01 * (step + 1))
        for one, other in zip(*sets, strict=True):
            one.grad = torch.randn_like(one)
            other.grad = one.grad * 0.3
        for optimizer in (mine, theirs):
            optimizer.found_inf = torch.tensor(float(step == 3), device="cuda")
        mine.factor = torch.tensor(0.3, device="cuda")  # type: ignore[attr-defined]
        mine.step()
        theirs.step()
    for one, other in zip(*sets, strict=True):
        assert torch.allclose(one, other, rtol=1e-5, atol=1e-6)
        for name in mine.state_names:
            assert torch.allclose(mine.state[one][name], theirs.state[other][name], rtol=1e-5, atol=1e-7), name
    module = torch.nn.ParameterList(torch.zeros(size) for size in sizes).cuda()
    held = MasterWeightModel(module)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_()
    held.refresh()
    assert all(
        torch.equal(copy, weight.bfloat16()) for copy, weight in zip(held.copies, module.parameters(), strict=True)
    )
