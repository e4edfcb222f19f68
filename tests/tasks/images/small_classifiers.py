"""Tiny image classifiers of transformers with random weights, in memory and as the folder that is imported."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from heedful.families import Imported, PublishedWarning, read_published
from heedful.tasks.images import ImageClassifier
from published_images import deit, vit
from published_pairs import files


def drawn(height: int, width: int, *channels: int, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, *channels), dtype=np.uint8)


def hf_classifier(family: str, **changes: Any) -> Any:
    """A classifier of transformers over 12 x 12 pixels."""
    torch.manual_seed(0)
    sizes = {"num_channels": 3, "num_labels": 5} | changes
    if family == "vit":
        model = vit(transformers.ViTForImageClassification, **sizes)
    else:
        model = deit(transformers.DeiTForImageClassificationWithTeacher, **sizes)
    for key, tensor in model.state_dict().items():
        tensor.normal_(1.0 if "norm" in key else 0.0, 0.2)
    return model.eval()


def as_imported(model: Any, **changes: Any) -> Imported:
    """What is read from its files."""
    config, _ = files(model)
    return read_published(config, {key: tensor.clone() for key, tensor in model.state_dict().items()}, **changes)


def classifier(folder: Path, family: str = "vit", **changes: Any) -> ImageClassifier:
    """From a folder without a word on how images are prepared: they are resized to 12 x 12."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PublishedWarning)
        return ImageClassifier.from_checkpoint(as_imported(hf_classifier(family, **changes)), folder)
