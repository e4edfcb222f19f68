"""Bytes kept for the backward pass grow with the length, not with its square."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
from tiny_models import D, H, decoder_layer, encoder_layer
from torch import Tensor, nn

from heedful.core import ALiBi, Decoder, Encoder, Mask, Positions, attend, causal, padding

LENGTH = 128
PADDING: dict[str, Callable[[int], Mask | None]] = {
    "none": lambda n: None,
    "right": lambda n: padding([n, n // 2]),
    "right tensor": lambda n: padding(torch.arange(n) < torch.tensor([[n], [n // 2]])),
    "left": lambda n: padding(torch.arange(n) >= torch.tensor([[0], [n // 2]])),
}


def kept_bytes(run: Callable[[], Tensor], parameters: list[nn.Parameter]) -> int:
    """Of all memory that autograd saves while `run` runs, counted once each, less the parameters."""
    sizes: dict[int, int] = {}
    own = {parameter.untyped_storage().data_ptr() for parameter in parameters}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        out = run()  # alive until counted, so that no address is used twice
    assert out.requires_grad
    return sum(size for address, size in sizes.items() if address not in own)


def growth(module: nn.Module, run: Callable[[int], Tensor]) -> float:
    parameters = list(module.parameters())
    return kept_bytes(lambda: run(2 * LENGTH), parameters) / kept_bytes(lambda: run(LENGTH), parameters)


def states(length: int) -> Tensor:
    return torch.randn(2, length, D, requires_grad=True)


@pytest.mark.parametrize("where", PADDING)
def test_a_stack_keeps_linear_memory(where: str) -> None:
    keep = PADDING[where]
    encoder = Encoder([encoder_layer() for _ in range(2)])
    decoder = Decoder([encoder_layer() for _ in range(2)])
    translator = Decoder([decoder_layer() for _ in range(2)])
    assert growth(encoder, lambda n: encoder(states(n), keep(n))) <= 2.1
    assert growth(decoder, lambda n: decoder(states(n), keep=keep(n))) <= 2.1
    assert growth(translator, lambda n: translator(states(n), states(n), keep=keep(n), memory_keep=keep(n))) <= 2.1


@pytest.mark.parametrize("where", PADDING)
def test_attend_alone_keeps_linear_memory(where: str) -> None:
    def run(look_ahead: bool, n: int) -> Tensor:
        query, key, value = (torch.randn(2, H, n, 8, requires_grad=True) for _ in range(3))
        keep = PADDING[where](n)
        if look_ahead:
            keep = causal() if keep is None else causal() & keep
        return attend(query, key, value, keep=keep)

    for look_ahead in (False, True):
        assert growth(nn.Identity(), partial(run, look_ahead)) <= 2.1


def test_the_measure_sees_a_square() -> None:
    def with_positions(positions: Positions) -> float:
        decoder = Decoder([encoder_layer()], positions=positions)
        return growth(decoder, lambda n: decoder(states(n)))

    assert with_positions(Positions()) <= 2.1
    assert with_positions(ALiBi(H)) > 2.5
