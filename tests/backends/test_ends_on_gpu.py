"""Where a model begins and ends, and what is made of its gradients: kernels beside what is written out in torch."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from twins import DTYPES, apart, made_by

from heedful.backends.triton.deferred import AddressTables
from heedful.backends.triton.modules import fused_on_gpu
from heedful.core import Decoder, Encoder, Learned, Positions, Sinusoidal, TokenEmbedding, VocabularyHead, padding
from heedful.training.engines import Widening
from heedful.training.loss import costs
from heedful.training.parallel.models import EPSILON, StepStatus, step_status

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("vocabulary", [65, 10_000, 16_384, 16_385])
def test_tokens_of_different_weight(dtype: torch.dtype, vocabulary: int) -> None:
    """What comes back to each token's cross-entropy need not be 1."""
    from heedful.backends.triton.cross_entropy import costs as quick

    torch.manual_seed(0)
    logits, target = 3 * torch.randn(37, vocabulary, device="cuda").to(dtype), torch.arange(37, device="cuda")
    keep, slope = target != 5, torch.randn(37, device="cuda")
    mine, exact = logits.clone().requires_grad_(), logits.double().requires_grad_()
    found, _ = quick(mine, target, keep, 0.1)
    wanted, _ = costs(exact.log_softmax(dim=-1), target, 0.1)
    assert apart(found[keep], wanted[keep]) < 1e-5
    (gradient,) = torch.autograd.grad(found, mine, slope, retain_graph=True)
    (true,) = torch.autograd.grad(wanted, exact, slope.double() * keep)
    assert apart(gradient, true) < DTYPES[dtype]
    if vocabulary <= 16_384:  # its gradient was made on the way, and is given away
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(found, mine, slope)


def stack(kind: type, positions: Positions, dropout: float) -> torch.nn.Module:
    made: torch.nn.Module = kind([], positions=positions, dropout=dropout).cuda().to(torch.bfloat16)
    return made


@pytest.mark.parametrize("kind", [Encoder, Decoder])
@pytest.mark.parametrize("layout", ["interleaved", "halves", "none"])
@pytest.mark.parametrize("shape", [(3, 5, 24), (40, 33, 256), (1, 1, 7)])
def test_the_way_into_a_stack(kind: type, layout: str, shape: tuple[int, int, int]) -> None:
    torch.manual_seed(0)
    batch, length, d = shape
    module = stack(kind, Positions() if layout == "none" else Sinusoidal(d, layout=layout), 0.0)
    exact = deepcopy(module).double()
    module, _ = fused_on_gpu(module, torch.device("cuda"))
    real = torch.arange(length, device="cuda") < torch.randint(length + 1, (batch, 1), device="cuda")
    x = torch.randn(shape, device="cuda").to(torch.bfloat16)
    given = x.clone()
    given[~real] = float("nan")  # what is padding may be anything
    mine, theirs = given.requires_grad_(), given.detach().double().requires_grad_()
    keep = padding(real, at_the_end=True)
    found, wanted = module(mine, keep=keep), exact(theirs, keep=keep)
    assert "EnteredBackward" in made_by(found)
    assert apart(found, wanted) < 1e-2
    slope = torch.randn(shape, device="cuda").to(torch.bfloat16)
    (one,), (other,) = torch.autograd.grad(found, mine, slope), torch.autograd.grad(wanted, theirs, slope.double())
    assert torch.equal(one.double(), other)


def test_dropout_at_the_entry_and_what_the_kernel_does_not_know() -> None:
    torch.manual_seed(0)
    module = stack(Encoder, Sinusoidal(64), 0.3)
    module, shared = fused_on_gpu(module, torch.device("cuda"))
    x = torch.full((50, 20, 64), 3.0, device="cuda", dtype=torch.bfloat16, requires_grad=True)  # no sum of it is zero
    found = module(x)
    kept = found != 0
    assert float(1 - kept.double().mean()) == pytest.approx(0.3, abs=0.01)
    (slope,) = torch.autograd.grad(found.sum(), x)
    assert torch.equal(slope != 0, kept)
    assert torch.allclose(slope[kept].float(), torch.tensor(1 / 0.7), rtol=1e-2)
    shared.begin()
    assert not torch.equal(module(x), found)
    elsewhere = module(x, positions=torch.arange(20, device="cuda") + 7)  # which no table of slots has
    assert "EnteredBackward" not in made_by(elsewhere)
    learned = stack(Encoder, Learned(20, 64), 0.3)
    learned, _ = fused_on_gpu(learned, torch.device("cuda"))
    assert "EnteredBackward" not in made_by(learned(x))


def test_ids_that_a_table_does_not_have_are_not_finite() -> None:
    part = TokenEmbedding(50, 24).cuda()
    part, _ = fused_on_gpu(part, torch.device("cuda"))
    ids = torch.tensor([[0, 49, 50, -1, 2**40]], device="cuda")
    found = part.look_up(ids)
    assert "LookedUpBackward" in made_by(found)
    assert found.isnan().all(dim=-1).tolist() == [[False, False, True, True, True]]
    assert not found[:, :2].isnan().any()
    (slope,) = torch.autograd.grad(found.sum(), part.weight)
    assert slope.sum(dim=1).ne(0).nonzero().flatten().tolist() == [0, 49]


def test_ids_that_do_not_lie_one_behind_the_other() -> None:
    part = TokenEmbedding(50, 24).cuda()
    ids = torch.arange(20, device="cuda").view(10, 2)
    wanted = part.look_up(ids[:, :1])
    part, _ = fused_on_gpu(part, torch.device("cuda"))
    assert torch.allclose(part.look_up(ids[:, :1]), wanted)


def test_a_head_with_many_outputs() -> None:
    """The gradient of its bias comes from the product of its weight."""
    torch.manual_seed(0)
    head = VocabularyHead(64, 1003, bias=True).cuda().to(torch.bfloat16)
    exact = deepcopy(head).double()
    head, _ = fused_on_gpu(head, torch.device("cuda"))
    x = torch.randn(9, 31, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    twin = x.detach().double().requires_grad_()
    slope = torch.randn(9, 31, 1003, device="cuda", dtype=torch.bfloat16)
    found = torch.autograd.grad(head(x), [x, *head.parameters()], slope)
    wanted = torch.autograd.grad(exact(twin), [twin, *exact.parameters()], slope.double())
    for one, other in zip(found, wanted, strict=True):
        assert one.is_contiguous()
        assert apart(one, other) < 1e-2


@pytest.mark.parametrize("clip", [0.0, 0.05, 1e9])
@pytest.mark.parametrize("what", ["all is well", "an infinite gradient", "a gradient of no number", "such a loss"])
@pytest.mark.parametrize("aligned", [True, False])
def test_fused_step_status(clip: float, what: str, aligned: bool) -> None:
    from heedful.backends.triton.foreach import PointerTable, fused_step_status

    torch.manual_seed(0)
    sizes: list[tuple[int, ...]] = [(256,), (32, 48), (1500, 4096)]  # of more pieces than are added up at once
    gradients = [torch.randn(size, device="cuda") for size in (sizes if aligned else [(3,), *sizes, (70, 65)])]
    sums = torch.tensor([3.0, 2.5, 17.0], dtype=torch.float64, device="cuda")
    if "gradient" in what:
        gradients[-1][1, 1] = float("inf" if "infinite" in what else "nan")
    if what == "such a loss":
        sums[0] = float("nan")
    table = PointerTable.of(gradients)
    assert table.aligned == aligned
    found = StepStatus(*fused_step_status(table, sums, clip, EPSILON))
    wanted = step_status(torch.nn.utils.get_total_norm([gradient.double() for gradient in gradients]), sums, clip)
    assert torch.allclose(found.values, wanted.values, rtol=1e-6, equal_nan=True)
    assert float(found.skip) == float(wanted.skip) == float(what != "all is well")
    if what == "all is well":
        assert torch.allclose(found.factor.double(), wanted.factor, rtol=1e-6)


def test_gradients_are_widened_where_a_step_is_recorded() -> None:
    torch.manual_seed(0)
    sizes: list[tuple[int, ...]] = [(256,), (70, 64), (300, 4096)]
    source = [torch.randn(size, device="cuda").bfloat16() for size in sizes]
    have = [torch.zeros(size, device="cuda") for size in sizes]
    tables = AddressTables(torch.device("cuda"))
    widening = Widening(tables)
    assert widening(source, have)  # as it comes, once
    assert all(torch.equal(mine, given.float()) for mine, given in zip(have, source, strict=True))
    assert not widening(source, have)
    graph = torch.cuda.CUDAGraph()
    with tables.recording() as room, torch.cuda.graph(graph):
        for part in source:  # which leaves memory behind, to be used and written again
            part.float().exp()
        given = [part * 2 for part in source]
        assert widening(given, have)
        assert not widening(given, have)  # there is room for one table
        del given
    assert len(room)
    for _ in range(3):
        for part in source:
            part.normal_()
        graph.replay()
        assert all(torch.equal(mine, (part * 2).float()) for mine, part in zip(have, source, strict=True))
