"""Muon beside a plain loop over single matrices; what it takes, what it leaves, and what it learns."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from copying import tiny
from torch import Tensor, nn

import heedful
from heedful.training.optimizers import Muon, matrices_of, orthogonal

RATE = 0.02
PRESETS = ["gpt2-tiny", "llama-tiny", "bert-tiny", "albert-tiny", "t5-tiny", "vit-tiny", "patchtst-tiny", "recurrent"]


def spread(rows: int, columns: int) -> Tensor:
    """A random matrix, its singular values between 0.1 and 1: a square one of normal numbers has some near 0."""
    k = min(rows, columns)
    left, right = (torch.linalg.qr(torch.randn(n, k))[0] for n in (rows, columns))
    return (left * torch.empty(k).uniform_(0.1, 1.0)) @ right.T


@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (16, 16), (64, 64), (32, 128), (128, 32), (256, 64), (7, 300)])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_every_direction_counts_alike(shape: tuple[int, int], scale: float) -> None:
    batch = scale * torch.stack([spread(*shape) for _ in range(3)])
    found = orthogonal(batch)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.6
    assert values.max() < 1.3
    left, _, right = torch.linalg.svd(batch, full_matrices=False)
    turned = left.mT @ found @ right.mT  # the directions stay: each is stretched, and none is mixed with another
    torch.testing.assert_close(turned, torch.diag_embed(turned.diagonal(dim1=1, dim2=2)), atol=1e-3, rtol=0)


@pytest.mark.parametrize("shape", [(8, 64), (64, 8), (30, 90)])
def test_normal_numbers_come_out_even(shape: tuple[int, int]) -> None:
    values = torch.linalg.svdvals(orthogonal(torch.randn(5, *shape)))
    assert values.min() > 0.6
    assert values.max() < 1.3


def by_hand(weight: Tensor, gradient: Tensor, momentum: Tensor, decay: float) -> tuple[Tensor, Tensor]:
    """One matrix, as the method is described."""
    momentum = 0.95 * momentum + 0.05 * gradient
    x = 0.05 * gradient + 0.95 * momentum
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    x = x / x.norm()
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    x = x.T if tall else x
    size = RATE * math.sqrt(max(1.0, weight.shape[0] / weight.shape[1]))
    return weight * (1 - RATE * decay) - size * x, momentum


SHAPES = [((6, 4), 1), ((8, 4), 2), ((4, 4), 1), ((4, 8), 1), ((24, 8), 2), ((4, 4), 1)]


def several(**settings: Any) -> tuple[list[nn.Parameter], Muon]:
    weights = [nn.Parameter(torch.randn(shape)) for shape, _ in SHAPES]
    groups = [{"params": [weight], "pieces": n} for weight, (_, n) in zip(weights, SHAPES, strict=True)]
    return weights, Muon(groups, torch.tensor(RATE), **settings)


def give_gradients(weights: list[nn.Parameter]) -> None:
    for weight in weights:
        weight.grad = torch.randn_like(weight)


def test_as_a_loop_over_single_matrices() -> None:
    weights, muon = several(weight_decay=0.1)
    expected = [list(weight.detach().clone().chunk(n)) for weight, (_, n) in zip(weights, SHAPES, strict=True)]
    momenta = [[torch.zeros_like(piece) for piece in pieces] for pieces in expected]
    for _ in range(3):
        give_gradients(weights)
        muon.found_inf = torch.zeros(())
        muon.step()
        for weight, pieces, held in zip(weights, expected, momenta, strict=True):
            assert weight.grad is not None
            for index, gradient in enumerate(weight.grad.chunk(len(pieces))):
                pieces[index], held[index] = by_hand(pieces[index], gradient, held[index], 0.1)
    for weight, pieces, held in zip(weights, expected, momenta, strict=True):
        torch.testing.assert_close(weight.detach(), torch.cat(pieces), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(muon.state[weight]["momentum"], torch.cat(held))
        assert list(muon.state[weight]) == ["momentum"]


def bits(weights: list[nn.Parameter], muon: Muon) -> list[Tensor]:
    tensors = [tensor for weight in weights for tensor in (weight.detach(), muon.state[weight]["momentum"])]
    return [tensor.clone().view(torch.int32) for tensor in tensors]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1.0])
def test_a_masked_step_changes_nothing(bad: float) -> None:
    weights, muon = several(weight_decay=0.1)
    with torch.no_grad():
        weights[0][0] = -0.0  # which plus zero is another zero
    give_gradients(weights)
    muon.step()
    with torch.no_grad():
        weights[0][0] = -0.0
        muon.state[weights[0]]["momentum"][0] = -0.0
    before = bits(weights, muon)
    give_gradients(weights)
    assert weights[2].grad is not None
    weights[2].grad[1, 1] = bad
    muon.found_inf = torch.ones(())
    muon.step()
    assert all(map(torch.equal, bits(weights, muon), before))
    muon.found_inf = torch.zeros(())
    give_gradients(weights)
    muon.step()
    assert not any(map(torch.equal, bits(weights, muon), before))


def test_without_a_gradient_a_weight_stays() -> None:
    weights, muon = several(weight_decay=0.1)
    before = [weight.detach().clone() for weight in weights]
    give_gradients(weights)
    weights[1].grad = None
    muon.step()
    assert [torch.equal(weight, old) for weight, old in zip(weights, before, strict=True)] == [
        index == 1 for index in range(len(weights))
    ]


def test_the_rate_is_read_when_it_steps() -> None:
    rate = torch.zeros(())
    weight = nn.Parameter(torch.randn(4, 4))
    muon = Muon([{"params": [weight]}], rate)
    before = weight.detach().clone()
    weight.grad = torch.randn(4, 4)
    muon.step()
    assert torch.equal(weight, before)
    rate.fill_(0.5)
    muon.step()
    assert not torch.equal(weight, before)


def test_only_matrices_are_taken() -> None:
    with pytest.raises(ValueError, match=r"\(7, 4\) is not 2 matrices stacked"):
        Muon([{"params": [nn.Parameter(torch.zeros(7, 4))], "pieces": 2}], torch.tensor(RATE))
    with pytest.raises(ValueError, match=r"\(4,\) is not 1 matrices stacked"):
        Muon([{"params": [nn.Parameter(torch.zeros(4))]}], torch.tensor(RATE))


def test_it_learns_a_linear_map() -> None:
    """Also along the directions in which the data hardly varies, where plain descent would take long."""
    wanted = torch.randn(6, 8)
    data = torch.randn(64, 8) * torch.logspace(0, -2, 8)
    weight, rate = nn.Parameter(torch.zeros(6, 8)), torch.zeros(())
    muon = Muon([{"params": [weight]}], rate)
    for step in range(300):
        rate.fill_(0.2 * (1 - step / 300))
        muon.zero_grad()
        (data @ (weight - wanted).T).square().sum().backward()
        muon.step()
    assert (weight.detach() - wanted).abs().max() < 0.05


def names(module: nn.Module) -> dict[str, int]:
    pieces = dict(matrices_of(module))
    return {name: pieces[weight] for name, weight in module.named_parameters() if weight in pieces}


@pytest.mark.parametrize("changes", [{}, {"positions": "learned"}, {"positions": "relative"}, {"tied": "none"}])
def test_the_maps_inside_the_layers_of_a_translator(changes: dict[str, Any]) -> None:
    module = tiny(**changes)
    ends = (".q_proj.weight", ".kv_proj.weight", ".out_proj.weight", ".up_proj.weight", ".down_proj.weight")
    expected = {
        name: 2 if "kv_proj" in name else 1
        for name, _ in module.named_parameters()
        if ".layers." in name and name.endswith(ends)
    }
    assert names(module) == expected
    assert len(expected) == 5 + 8  # an encoder layer, and a decoder layer with its second attention


@pytest.mark.parametrize("preset", PRESETS)
def test_in_other_families_too(preset: str) -> None:
    module = heedful.build(preset)
    taken = names(module)
    assert all(".layers." in name and name.endswith(".weight") for name in taken)
    assert len(taken) == len(matrices_of(module))
    assert bool(taken) == ("recurrent" not in preset)
    parameters = dict(module.named_parameters())
    for name, pieces in taken.items():
        assert pieces == (2 if "kv_proj" in name or "gate_up_proj" in name else 1)
        assert parameters[name].dim() == 2
    in_layers = {name for name, weight in parameters.items() if ".layers." in name and weight.dim() == 2}
    assert set(taken) == {name for name in in_layers if "positions" not in name}


def test_what_is_frozen_is_not_taken() -> None:
    module = tiny()
    module.requires_grad_(False)
    assert matrices_of(module) == []


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_graph_of_the_device_holds_it() -> None:
    weights = [nn.Parameter(torch.randn(shape, device="cuda")) for shape, _ in SHAPES]
    groups = [{"params": [weight], "pieces": n} for weight, (_, n) in zip(weights, SHAPES, strict=True)]
    muon = Muon(groups, torch.tensor(RATE, device="cuda"), weight_decay=0.1)
    muon.found_inf = torch.ones((), device="cuda")
    give_gradients(weights)
    muon.step()
    before = bits(weights, muon)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        muon.step()
    graph.replay()
    assert all(map(torch.equal, bits(weights, muon), before))
    muon.found_inf.fill_(0.0)
    graph.replay()
    after = bits(weights, muon)
    assert not any(map(torch.equal, after, before))
    for weight, value in zip(weights, before[::2], strict=True):
        weight.data.copy_(value.view(torch.float32))
        muon.state[weight]["momentum"].zero_()
    muon.step()
    assert all(map(torch.equal, bits(weights, muon), after))
