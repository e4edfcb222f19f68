"""Checks the sizes of a config before a model is built: a file of a few bytes may ask for any amount of memory."""

import math
from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import nn

from ..config import Config, FamilyConfig
from ..errors import ConfigError, HeedfulError
from .registry import family_of
from .weights import check_shapes

MAX_LAYERS = 1000


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
