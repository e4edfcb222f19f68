"""The weights a run delivers: of its best validation, or the mean over several."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path

from torch import Tensor

from .averaging import mean_of
from .checkpoint import load_tensors, path_of
from .errors import CheckpointError, CheckpointWarning
from .progress import Validation


def mean_of_checkpoints(
    folder: Path, validations: Sequence[Validation], kind: str
) -> tuple[dict[str, Tensor], list[Validation]]:
    """The mean of the weights that were validated, and those that were used: a damaged one is named and left out."""
    weights, used = [], []
    for validation in validations:
        try:
            weights.append(load_tensors(path_of(folder, validation.step), kind))
            used.append(validation)
        except CheckpointError as error:
            warnings.warn(f"{error}; the final weights are made without it", CheckpointWarning, stacklevel=2)
    if not used:
        raise CheckpointError(f"in {folder}, no checkpoint for the final weights can be read; resume from an older one")
    return mean_of(weights), used


def words_for(used: Sequence[Validation], kind: str) -> str:
    """Which weights those are, for a model card."""
    steps = ", ".join(str(validation.step) for validation in sorted(used, key=lambda validation: validation.step))
    mean = f"mean over the steps {steps}" if len(used) > 1 else f"step {steps}"
    return f"the running average, {mean}" if kind == "ema" else f"those of {mean}"
