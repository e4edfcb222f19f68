"""Checks the sizes of a config before a model is built: a file of a few bytes may ask for any amount of memory."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import nn

from ..config import Config, FamilyConfig
from ..errors import ConfigError, HeedfulError
from .registry import family_of
from .weights import check_shapes

MAX_LAYERS = 1000
TRAINING_COPIES = 3  # of the weights


def check_sizes(config: Config, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise ConfigError for more layers, heads or classes than tensors of these shapes can fill."""
    n_numbers, most = sum(map(math.prod, shapes.values())), min(MAX_LAYERS, len(shapes))
    for name, value in _whole_numbers(config):
        if name.endswith("_layers"):
            reason = f"there are only {len(shapes)} tensors" if most < MAX_LAYERS else f"at most {most} are read"
            if value > most:
                raise ConfigError(f"{name}={value}, but {reason}")
        elif name.startswith("n_") and value > max(n_numbers, 1):
            raise ConfigError(f"{name}={value}, but all tensors together hold only {n_numbers:,} numbers")


def check_memory(config: FamilyConfig) -> None:
    """Raise ConfigError for a model that this machine has not enough memory to train.

    Training holds weights, gradients and at least one more value for each.
    """
    check_layers(config)
    n_bytes = sum(weight.numel() * weight.itemsize for weight in build_on_meta(config).parameters())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if TRAINING_COPIES * n_bytes > memory:
        raise ConfigError(
            f"{config.family}: weights of {n_bytes / 1e9:,.1f} GB take {TRAINING_COPIES * n_bytes / 1e9:,.1f} GB to "
            f"train, and this machine has {memory / 1e9:,.1f} GB of memory; choose a smaller model"
        )


def check_layers(config: Config) -> None:
    """Raise ConfigError for more layers than are read or trained; a module for each takes memory of its own."""
    for name, value in _whole_numbers(config):
        if name.endswith("_layers") and value > MAX_LAYERS:
            raise ConfigError(f"{name}={value}, but at most {MAX_LAYERS} are allowed")


def _whole_numbers(config: Config) -> Iterator[tuple[str, int]]:
    for name, value in vars(config).items():
        if isinstance(value, Config):
            yield from _whole_numbers(value)
        elif isinstance(value, int):
            yield name, value


def build_on_meta(config: FamilyConfig) -> nn.Module:
    """Build a model without allocating memory for its weights; ConfigError for sizes that no tensor can have."""
    try:
        with torch.device("meta"):
            return family_of(config.family).build(config)
    except HeedfulError:
        raise
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{config.family}: a model of these sizes cannot be built: {reason}") from None


def check_config(config: FamilyConfig, shapes: Mapping[str, Sequence[int]]) -> None:
    """Raise ConfigError or WeightsError unless tensors of these names and shapes are the model's."""
    check_sizes(config, shapes)
    check_shapes(build_on_meta(config), shapes)
