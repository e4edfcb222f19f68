"""The state of torch's random numbers, in and out: dropout goes on where it stopped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The CPU's state, and the GPU's where one is used."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def put_random_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Go on from a state that `random_state` gave; a GPU it did not know keeps its own."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


@contextmanager
def set_aside(device: torch.device) -> Iterator[None]:
    """What is drawn inside leaves no trace outside."""
    state = random_state(device)
    try:
        yield
    finally:
        put_random_state(state, device)
