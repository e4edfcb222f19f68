"""A module's weights by name, with shared tensors once, and their safetensors file."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..errors import HeedfulError
from ..files import replacing

NAMED = 5  # how many problems a message names


class WeightsError(HeedfulError, ValueError):
    """Weights that do not fit their model, or cannot be read."""


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """Return a module's tensors, not copied; tensors with several names (tied embeddings) have only the first."""
    state = module.state_dict(keep_vars=True)
    return {name: state[name].detach() for name, first in first_names(state).items() if name == first}


@torch.no_grad()
def put_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a module, or change nothing and raise WeightsError.

    Names and shapes must match the module's. A shared tensor may have several of its names if their values are equal.
    """
    targets, first = weights_of(module), first_names(module.state_dict(keep_vars=True))
    problems = [f"{name} is missing" for name in targets if name not in weights]
    problems += [f"{name} has no place in this model" for name in weights if name not in first]
    for name, tensor in weights.items():
        target = targets.get(first.get(name, ""))
        if target is None:
            continue
        if tensor.shape != target.shape:
            problems.append(f"{name} is {tuple(tensor.shape)} and should be {tuple(target.shape)}")
        elif first[name] in weights and not torch.equal(tensor, weights[first[name]]):
            problems.append(f"{name} differs from {first[name]}, but this model shares one tensor for both")
    refuse(problems)
    for name, tensor in targets.items():
        tensor.copy_(weights[name])


def refuse(problems: Sequence[str]) -> None:
    """Raise WeightsError if there are problems; the message names the first few."""
    if problems:
        more = f"; and {len(problems) - NAMED} more" if len(problems) > NAMED else ""
        raise WeightsError(f"the weights are of another model: {'; '.join(problems[:NAMED])}{more}")


def write_weights(module: nn.Module, path: str | Path) -> None:
    """Write all tensors, shared ones once, to a file that appears when it is complete."""
    plain = {name: tensor.cpu().contiguous() for name, tensor in weights_of(module).items()}
    with replacing(path) as partial:
        save_file(plain, partial, metadata={"format": "pt"})
        partial.chmod(0o644)  # the library lets only the owner read it


def read_weights(module: nn.Module, path: str | Path) -> None:
    """Copy the weights of a safetensors file into a module, or raise WeightsError."""
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} cannot be read as safetensors: {error}") from None
    try:
        put_weights(module, weights)
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from None


def first_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Return for each name of a state_dict with `keep_vars=True` the first name of the same tensor."""
    firsts: dict[int, str] = {}
    return {name: firsts.setdefault(id(tensor), name) for name, tensor in state.items()}
