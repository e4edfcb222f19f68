"""The loss beside torch's own, which averages what ours sums."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from heedful.training import cross_entropy
from heedful.training import loss as losses

B, T, V = 3, 7, 11
IGNORED = -100


def example(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    logits = (3 * torch.randn(B, T, V, dtype=dtype)).requires_grad_()
    return logits, torch.randint(0, V, (B, T)), torch.arange(T) < torch.tensor([7, 4, 1])[:, None]


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_sums_and_gradients_are_torchs(smoothing: float) -> None:
    logits, target, keep = example()
    loss = cross_entropy(logits, target, keep, smoothing=smoothing)
    (gradient,) = torch.autograd.grad(loss.total, logits)

    marked = target.masked_fill(~keep, IGNORED).flatten()
    theirs = F.cross_entropy(logits.flatten(0, 1), marked, ignore_index=IGNORED, label_smoothing=smoothing)
    (their_gradient,) = torch.autograd.grad(theirs * 12, logits)
    plain = F.cross_entropy(logits.flatten(0, 1), marked, ignore_index=IGNORED, reduction="sum")

    assert int(loss.n) == 12
    torch.testing.assert_close(loss.total, theirs * 12)
    torch.testing.assert_close(loss.plain, plain)
    torch.testing.assert_close(gradient, their_gradient)
    assert not loss.plain.requires_grad


def test_the_gradient_is_the_formulas_slope() -> None:
    logits, target, keep = example()
    assert torch.autograd.gradcheck(lambda x: 0.3 * cross_entropy(x, target, keep, smoothing=0.2).total, (logits,))


def test_without_keep_everything_counts() -> None:
    logits, target, _ = example()
    loss = cross_entropy(logits, target)
    assert int(loss.n) == B * T
    torch.testing.assert_close(loss.total, F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="sum"))


def test_what_does_not_count_may_be_nan() -> None:
    logits, target, keep = example()
    poisoned = logits.detach().masked_fill(~keep[..., None], float("nan")).requires_grad_()
    loss, clean = (cross_entropy(x, target, keep, smoothing=0.1) for x in (poisoned, logits))
    assert torch.equal(loss.total, clean.total)
    assert torch.equal(torch.autograd.grad(loss.total, poisoned)[0], torch.autograd.grad(clean.total, logits)[0])


def test_halves_are_summed_in_float32() -> None:
    """A sum over a vocabulary in bfloat16 would be off by percents; the gradient comes back as it was given."""
    logits = torch.randn(2, 3, 5000).bfloat16().requires_grad_()
    target = torch.randint(0, 5000, (2, 3))
    loss = cross_entropy(logits, target, smoothing=0.1)
    exact = F.cross_entropy(logits.float().flatten(0, 1), target.flatten(), label_smoothing=0.1, reduction="sum")
    assert loss.total.dtype == torch.float32
    torch.testing.assert_close(loss.total, exact)
    assert torch.autograd.grad(loss.total, logits)[0].dtype == torch.bfloat16


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\(2, 3, 5\) do not fit a target of shape \(2, 4\)"):
        cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 4, dtype=torch.long))


@pytest.mark.parametrize("block", [1, 4 * V, 5 * V + 3, B * T * V])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_blocks_change_nothing(block: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    logits, target, keep = example(dtype)
    whole = cross_entropy(logits, target, keep, smoothing=0.1)
    monkeypatch.setattr(losses, "BLOCK", block)
    assert len(losses.blocks(logits.flatten(0, 1))) == {1: 21, 4 * V: 6, 5 * V + 3: 5, B * T * V: 1}[block]
    parts = cross_entropy(logits, target, keep, smoothing=0.1)
    assert torch.equal(parts.total, whole.total)
    assert torch.equal(parts.plain, whole.plain)
    assert torch.equal(torch.autograd.grad(parts.total, logits)[0], torch.autograd.grad(whole.total, logits)[0])


def test_blocks_have_the_formulas_slope(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "BLOCK", 4 * V)
    test_the_gradient_is_the_formulas_slope()


class Peak(TorchDispatchMode):
    """How many bytes of tensors made within were there at once, at most."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.held: dict[StorageWeakRef, int] = {}
        self.bytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = {
            StorageWeakRef(leaf.untyped_storage()) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)
        }
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, Tensor) and (store := StorageWeakRef(leaf.untyped_storage())) not in given:
                self.held[store] = leaf.untyped_storage().nbytes()
        self.held = {store: size for store, size in self.held.items() if not store.expired()}
        self.bytes = max(self.bytes, sum(self.held.values()))
        return out


@pytest.mark.parametrize(("dtype", "gradient"), [(torch.bfloat16, 2), (torch.float32, 4)])
def test_what_is_made_beside_the_gradient_is_a_few_blocks(
    dtype: torch.dtype, gradient: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, width = 64, 1000
    monkeypatch.setattr(losses, "BLOCK", 4 * width)
    block = 4 * 4 * width  # bytes in float32
    logits, target = torch.randn(rows, width).to(dtype).requires_grad_(), torch.randint(0, width, (rows,))
    with Peak() as forward:
        loss = cross_entropy(logits, target, smoothing=0.1)
    with Peak() as backward:
        (found,) = torch.autograd.grad(loss.total, logits)
    little = 8000  # a few numbers a row
    assert forward.bytes < 2 * block + little
    assert backward.bytes < gradient * rows * width + (2 * block if dtype == torch.bfloat16 else 0) + little
    assert backward.bytes >= found.nbytes  # it does count


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # torch's own doing
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_one_graph_for_a_compiler(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "BLOCK", 4 * V)
    compiled = torch.compile(cross_entropy, backend="aot_eager", fullgraph=True)
    logits, target, keep = example(dtype)
    ours, theirs = (make(logits, target, keep, smoothing=0.1) for make in (cross_entropy, compiled))
    assert int(theirs.n) == 12
    torch.testing.assert_close(theirs.total, ours.total)
    torch.testing.assert_close(
        torch.autograd.grad(theirs.total, logits)[0], torch.autograd.grad(ours.total, logits)[0], rtol=1e-2, atol=1e-6
    )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_graph_of_the_device_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(losses, "BLOCK", 4 * V)
    logits, target, keep = (tensor.detach().cuda() for tensor in example(torch.bfloat16))
    logits.requires_grad_()

    def slope() -> Tensor:
        return torch.autograd.grad(cross_entropy(logits, target, keep, smoothing=0.1).total, logits)[0]

    slope()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        held = slope()
    with torch.no_grad():
        logits.mul_(0.5)
    graph.replay()
    assert torch.equal(held, slope())


def test_nothing_costs_nothing() -> None:
    logits = torch.zeros(0, 5, V, requires_grad=True)
    loss = cross_entropy(logits, torch.zeros(0, 5, dtype=torch.long), smoothing=0.1)
    assert loss.total.item() == loss.n.item() == 0
    assert torch.autograd.grad(loss.total, logits)[0].shape == (0, 5, V)
