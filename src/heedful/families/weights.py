"""A module's weights by name, with shared tensors once, and their safetensors file."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..errors import HeedfulError
from ..files import regular, replacing

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
    check_shapes(module, {name: tensor.shape for name, tensor in weights.items()})
    first = first_names(module.state_dict(keep_vars=True))
    refuse(
        [
            f"{name} differs from {first[name]}, but this model shares one tensor for both"
            for name, tensor in weights.items()
            if first[name] != name and not torch.equal(tensor, weights[first[name]])
        ]
    )
    for name, tensor in weights_of(module).items():
        tensor.copy_(weights[name])


def check_shapes(module: nn.Module, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise WeightsError unless these are the names and shapes of a module's tensors."""
    targets, first = weights_of(module), first_names(module.state_dict(keep_vars=True))
    problems = [f"{name} is missing" for name in targets if name not in shapes]
    problems += [f"{name} has no place in this model" for name in shapes if name not in first]
    for name, shape in shapes.items():
        target = targets.get(first.get(name, ""))
        if target is not None and tuple(shape) != tuple(target.shape):
            problems.append(f"{name} is {tuple(shape)} and should be {tuple(target.shape)}")
    refuse(problems)


def check_finite(weights: Mapping[str, Tensor]) -> None:
    """Raise WeightsError for a tensor that holds NaN or inf. A sum shows most tensors to be finite in one pass."""
    for name, tensor in weights.items():
        if not tensor.is_floating_point() or tensor.is_meta:
            continue
        total = tensor.detach().sum(dtype=torch.promote_types(tensor.dtype, torch.float32))
        if not total.isfinite() and not tensor.isfinite().all():  # a sum of finite numbers may overflow
            raise WeightsError(f"{name} holds NaN or inf, so the model cannot answer; use an undamaged copy")


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
    """Copy the weights of a safetensors file into a module, or raise WeightsError; NaN and inf are refused."""
    weights = finite_tensors(path)
    try:
        put_weights(module, weights)
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from None


def finite_tensors(path: str | Path) -> dict[str, Tensor]:
    """Return the tensors of a safetensors file; WeightsError if it cannot be read, or holds NaN or inf."""
    with _readable(path):
        weights: dict[str, Tensor] = load_file(regular(Path(path)))
    try:
        check_finite(weights)
    except WeightsError as error:
        raise WeightsError(f"{path}: {error}") from None
    return weights


def stored_shapes(path: str | Path) -> dict[str, tuple[int, ...]]:
    """Return the names and shapes of a safetensors file, without reading its tensors."""
    with _readable(path), safe_open(regular(Path(path)), framework="pt") as file:
        return {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118  (no mapping)


@contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (SafetensorError, OSError) as error:
        raise WeightsError(f"{path} cannot be read as safetensors: {error}") from None


def first_names(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Return for each name of a state_dict with `keep_vars=True` the first name of the same tensor."""
    firsts: dict[int, str] = {}
    return {name: firsts.setdefault(id(tensor), name) for name, tensor in state.items()}
