"""Where an image classifier looks: its image, the patches it is cut into, and the class token's attention over them.

Shapes: H height, W width, C channels; heads × rows × columns of patches.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ...data.image_sets.store import VALID, ImageStore
from ...data.images import Pixels, pixels_of, resized
from ...lens.recorder import record
from ...lens.report import SeenImage
from .data import IMAGES
from .predictor import ImageClassifier


@torch.inference_mode()
def see_image(classifier: ImageClassifier, image: Any, *, label: str = "", place: str = "") -> SeenImage:
    """What the class token gives to each patch in the last layer, and what came of it; `label` is the true class.

    What it gives to itself, and to DeiT's other token, is left out, so a head's patches sum to less than 1.
    """
    module = classifier.module
    n_channels, height, width = classifier.shape
    last = len(module.encoder.layers) - 1
    with record(module, layers=last) as recording:
        (answer,) = classifier.predict([image])
    weights = recording.encoder[last][0, :, 0].float().cpu()  # (heads, prefix + patches): the row of the class token
    size = module.embedding.patch_size
    over = weights[:, -module.embedding.n_patches :].unflatten(1, (height // size, width // size))
    shown = resized(pixels_of(image, n_channels), height, width, classifier.settings.resample)
    return SeenImage(Path(place).name, png(shown), list(answer.items()), label, over.tolist())


def see_samples(
    classifier: ImageClassifier, data: Path, samples: Sequence[Mapping[str, Any]], n: int = 8
) -> list[SeenImage]:
    """Of the `samples` that metrics.json lists, from the images in a run's `data`: half of them mistakes, if there are
    so many, the others right."""
    store = ImageStore(data / IMAGES)
    at = {store.place(row): row for row in store.rows(VALID).tolist()}
    wrong, right = ([one for one in samples if (one["label"] == one["prediction"]) is truth] for truth in (False, True))
    few = wrong[: max(n // 2, n - len(right))]
    return [
        see_image(classifier, store.pixels[at[one["place"]]], label=one["label"], place=one["place"])
        for one in [*few, *right[: n - len(few)]]
    ]


def png(pixels: Pixels) -> bytes:
    """Grey or colour (H, W, C) as the bytes of a file; Pillow is not needed for it."""
    height, width, n_channels = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # 0: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[n_channels], 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
