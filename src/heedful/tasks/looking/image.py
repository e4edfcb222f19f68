"""An image classifier at work: the image as it was read, its patches, and what each class got."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from torch import Tensor

from ...data.images import Pixels
from ...lens.trace import trace
from ..images import ImageClassifier
from ..images.predictor import png
from .assembling import Notes, apart, classes_of, only, token

PREFIX = ("class", "distillation")  # what stands before the patches, by its place


def see_image(classifier: ImageClassifier, item: Any, notes: Notes, words: Mapping[str, Any]) -> dict[str, Any]:
    """Of a file, or whatever else `predict` takes for an image."""
    only(words, classifier)
    classifier = apart(classifier)
    prepared = classifier.prepared(item)
    with trace(classifier.module) as seen:
        (shares,) = classifier.look([prepared])
    embedding, (_, height, width) = classifier.module.embedding, classifier.shape
    rows, columns = height // embedding.patch_size, width // embedding.patch_size
    prefix = [token(name, special=True) for name in PREFIX[: len(embedding.prefix)]]
    patches = [token(f"{row + 1},{column + 1}") for row in range(rows) for column in range(columns)]
    return {
        "kind": "image",
        "question": os.fspath(item) if isinstance(item, str | os.PathLike) else None,
        "answer": next(iter(shares)),
        "sequences": {"source": [*prefix, *patches]},
        "classes": classes_of(shares),
        "image": {
            "png": "data:image/png;base64," + base64.b64encode(png(_pixels(classifier, prepared))).decode("ascii"),
            "size": height,
            "patch": embedding.patch_size,
            "rows": rows,
            "columns": columns,
            "prefix": len(prefix),
        },
        **notes.inside(classifier.module, seen),
    }


def _pixels(classifier: ImageClassifier, prepared: Tensor) -> Pixels:
    """(C, H, W) as the model read it → (H, W, C) in the levels of a file; grey where no file could hold it."""
    settings = classifier.settings
    values = np.moveaxis(prepared.numpy(), 0, -1) * np.float64(settings.std) + np.float64(settings.mean)
    pixels = np.rint(values / settings.rescale).clip(0, 255).astype(np.uint8)
    return pixels if pixels.shape[2] in (1, 3) else pixels.mean(axis=2, keepdims=True).astype(np.uint8)
