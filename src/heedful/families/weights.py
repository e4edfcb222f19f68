"""A module's weights by name, shared tensors once; and the same in a safetensors file, checked on the way in."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..errors import HeedfulError
from ..files import replacing

NAMED = 5  # how many misfits a message names


class WeightsError(HeedfulError, ValueError):
    """Weights that do not fit their model, or cannot be read."""


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """The tensors themselves, not copies. What has several names (tied embeddings) stands under its first."""
    return {name: tensor for name, tensor, first in _named(module) if name == first}


@torch.no_grad()
def put_weights(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights into a module: all of its tensors and no others, every shape right, or nothing is changed.

    A tensor that the module shares may be given under several of its names if all say the same.
    """
    own, first = weights_of(module), {name: first for name, _, first in _named(module)}
    problems = [f"{name} is missing" for name in own if name not in weights]
    problems += [f"{name} has no place in this model" for name in weights if name not in first]
    for name, tensor in weights.items():
        place = own.get(first.get(name, ""))
        if place is None:
            continue
        if tensor.shape != place.shape:
            problems.append(f"{name} is {tuple(tensor.shape)} and should be {tuple(place.shape)}")
        elif first[name] in weights and not torch.equal(tensor, weights[first[name]]):
            problems.append(f"{name} differs from {first[name]}, with which it is one here")
    refuse(problems)
    for name, tensor in own.items():
        tensor.copy_(weights[name])


def refuse(problems: Sequence[str]) -> None:
    """Raise if there are problems, naming the first few."""
    if problems:
        more = f"; and {len(problems) - NAMED} more" if len(problems) > NAMED else ""
        raise WeightsError(f"the weights are of another model: {'; '.join(problems[:NAMED])}{more}")


def write_weights(module: nn.Module, path: str | Path) -> None:
    """All tensors, shared ones once; the file is whole or not there."""
    plain = {name: tensor.cpu().contiguous() for name, tensor in weights_of(module).items()}
    with replacing(path) as partial:
        save_file(plain, partial, metadata={"format": "pt"})
        partial.chmod(0o644)  # the library makes it the owner's alone


def read_weights(module: nn.Module, path: str | Path) -> None:
    """Fill a module from a file."""
    try:
        weights = load_file(path)
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} cannot be read as safetensors: {error}") from None
    try:
        put_weights(module, weights)
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from None


def _named(module: nn.Module) -> list[tuple[str, Tensor, str]]:
    """Every name, its tensor, and the first name of that tensor."""
    firsts: dict[int, str] = {}
    state = module.state_dict(keep_vars=True)
    return [(name, tensor.detach(), firsts.setdefault(id(tensor), name)) for name, tensor in state.items()]
