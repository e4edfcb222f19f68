"""The loss beside torch's own, which averages what ours sums."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.training import cross_entropy

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
