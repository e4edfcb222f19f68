"""The batch norm against torch's own and against its formula; the norms of one token are in test_layers."""

from __future__ import annotations

import pytest
import torch
from tiny_models import D, close, shaken
from torch import Tensor, nn

from heedful.core import BatchNorm, FeedForward, PostNorm, PreNorm


def pair() -> tuple[BatchNorm, nn.BatchNorm1d]:
    """Ours and torch's, with the same random weights."""
    ours, theirs = shaken(BatchNorm(D, eps=1e-3)), nn.BatchNorm1d(D, eps=1e-3).double()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


def drawn(rows: int, tokens: int) -> Tensor:
    return (3 * torch.randn(rows, tokens, D, dtype=torch.float64) + 2).requires_grad_()


@pytest.mark.parametrize(("rows", "tokens"), [(1, 2), (3, 1), (4, 9)])
def test_batch_norm_is_torchs_to_the_last_bit_in_training_and_in_evaluation(rows: int, tokens: int) -> None:
    ours, theirs = pair()
    for _ in range(3):  # the running ones move
        x = drawn(rows, tokens)
        mine, wanted = ours.train()(x), theirs.train()(x.flatten(0, 1)).view_as(x)
        assert torch.equal(mine, wanted)
        draws = [
            torch.autograd.grad(out.pow(3).sum(), [x, *norm.parameters()])
            for out, norm in ((mine, ours), (wanted, theirs))
        ]
        assert all(torch.equal(*both) for both in zip(*draws, strict=True))
        for name, tensor in ours.state_dict().items():
            assert torch.equal(tensor, theirs.state_dict()[name]), name
        assert torch.equal(ours.eval()(x), theirs.eval()(x.flatten(0, 1)).view_as(x))


def test_a_batch_gives_its_own_statistics_and_moves_the_running_ones_by_a_tenth() -> None:
    norm, x = BatchNorm(D).double().train(), drawn(4, 5)
    tokens = x.detach().flatten(0, 1)
    wanted = (tokens - tokens.mean(0)) / (tokens.var(0, unbiased=False) + 1e-5).sqrt()
    close(norm(x), wanted.view(4, 5, D))
    close(norm.running_mean, 0.1 * tokens.mean(0))
    close(norm.running_var, 0.9 + 0.1 * tokens.var(0, unbiased=True))


def test_torchs_other_order_of_dimensions_gives_the_same() -> None:
    ours, theirs = pair()
    x = drawn(4, 9)
    close(ours.train()(x), theirs.train()(x.transpose(1, 2)).transpose(1, 2))
    close(ours.eval()(x), theirs.eval()(x.transpose(1, 2)).transpose(1, 2))


def test_only_in_training_does_a_row_depend_on_the_others() -> None:
    norm, x = shaken(BatchNorm(D)), drawn(4, 5)
    close(norm(x)[:1], norm(x[:1]))
    norm.train()
    assert not torch.allclose(norm(x)[:1], norm(x[:1]))


def test_its_running_statistics_are_part_of_its_state_and_are_not_learned() -> None:
    norm = BatchNorm(D)
    assert [*norm.state_dict()] == ["weight", "bias", "running_mean", "running_var"]
    assert [name for name, _ in norm.named_parameters()] == ["weight", "bias"]


def test_batch_norm_stands_in_either_residual_wrapper() -> None:
    part, x = shaken(FeedForward(D, 7)), drawn(2, 3)
    before, after = (wrap(part, shaken(BatchNorm(D))).eval() for wrap in (PreNorm, PostNorm))
    close(before(x), x + part(before.norm(x)))
    close(after(x), after.norm(x + part(x)))
