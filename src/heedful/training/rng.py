"""The state of torch's random numbers, in and out: dropout goes on where it stopped, in every process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from .parallel import Alone


def random_state(device: torch.device) -> dict[str, Tensor]:
    """This process's: the CPU's state, and the GPU's where one is used."""
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def put_random_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Go on from a state that `random_state` gave; a GPU it did not know keeps its own."""
    torch.set_rng_state(state["cpu"])
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"], device)


def random_states(device: torch.device, world: Alone) -> dict[str, Tensor]:
    """Of all processes, for the first: cpu.0, cuda.0, cpu.1, …"""
    said = world.collect({name: state.tolist() for name, state in random_state(device).items()})
    return {
        f"{name}.{rank}": torch.tensor(state, dtype=torch.uint8)
        for rank, states in enumerate(said)
        for name, state in states.items()
    }


def put_random_states(states: Mapping[str, Tensor], device: torch.device, world: Alone, *seeds: int) -> None:
    """Go on from what `random_states` gave. A process that was not there then draws anew, from `seeds` and its rank."""
    own = {name.partition(".")[0]: state for name, state in states.items() if _rank(name) == world.rank}
    if "cpu" in own:
        put_random_state(own, device)
    else:
        torch.manual_seed(int(np.random.SeedSequence([*seeds, world.rank]).generate_state(1, np.uint64)[0]))


def _rank(name: str) -> int:
    """Without a number, of a run of one process, as they were once written."""
    return int(name.partition(".")[2] or 0)


@contextmanager
def set_aside(device: torch.device) -> Iterator[None]:
    """What is drawn inside leaves no trace outside."""
    state = random_state(device)
    try:
        yield
    finally:
        put_random_state(state, device)
