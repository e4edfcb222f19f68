"""A folder becomes a module."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from torch import nn

from ...errors import ConfigError
from ..exchange import Imported, published_family, read_published
from ..weights import WeightsError
from .files import read_tensors
from .objects import read_object
from .recognition import refuse_bundle, refuse_other_folders, without_weights


def read_checkpoint(folder: str | Path, **changes: Any) -> Imported:
    """A module in evaluation mode with its config, generation defaults and labels, from Hugging Face's layout.

    Nothing is allocated before all names and shapes fit. Weights stay mapped to their files where the layout allows:
    leave the files as they are while the module lives. `changes` are made to the config: head="mean".
    """
    folder = Path(folder)
    refuse_other_folders(folder)
    config = read_object(folder / "config.json")
    refuse_bundle(folder, config)
    defaults = folder / "generation_config.json"
    generation = read_object(defaults) if defaults.is_file() else None
    try:
        published_family(config)  # before the weights: of a model that is not known, they do not matter
        tensors = read_tensors(folder)
        if tensors is None:
            raise without_weights(folder)
        return read_published(config, tensors, generation, **changes)
    except ConfigError as error:
        raise ConfigError(f"{folder}: {error}") from None
    except WeightsError as error:
        named = str(error).startswith(str(folder))
        raise error if named else WeightsError(f"{folder}: {error}") from None


def import_checkpoint(folder: str | Path, **changes: Any) -> nn.Module:
    """A published model, ready to use, from a folder with config.json and model.safetensors.

    >>> heedful.import_checkpoint("bert-base-uncased", head="mean")
    """
    module: nn.Module = read_checkpoint(folder, **changes).module
    return module
