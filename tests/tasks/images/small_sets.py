"""Small sets of images that can be learned, and runs that learn them in seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.tasks.images.data import ImagesConfig

CLASSES = ("left", "right", "top")


def shapes(n: int, seed: int = 0, size: int = 6) -> tuple[NDArray[np.uint8], NDArray[np.str_]]:
    """Noise, brighter at one of three sides, which is the class."""
    random = np.random.default_rng(seed)
    images = random.integers(0, 120, (n, size, size), dtype=np.uint8)
    classes = random.integers(0, len(CLASSES), n)
    for image, number in zip(images, classes, strict=True):
        side = (np.s_[:, :2], np.s_[:, -2:], np.s_[:2])[number]
        image[side] += 110
    return images, np.array(CLASSES)[classes]


def npz(path: Path, n: int = 120, seed: int = 0, **more: NDArray[Any]) -> str:
    images, labels = shapes(n, seed)
    np.savez(path, x=images, y=labels, **more)  # type: ignore[arg-type]
    return str(path)


def small_config(training: dict[str, Any] | None = None, **changes: Any) -> ImagesConfig:
    """One layer of 16 over nine patches."""
    values: dict[str, Any] = {
        "model": {"preset": "vit-tiny", "d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 1, "patch_size": 2},
        "training": {
            "steps": 40,
            "validate_every": 20,
            "save_every": 0,
            "batch_tokens": 360,
            "learning_rate": 1e-2,
            "warmup_steps": 5,
            "ema_decay": 0.9,
            **(training or {}),
        },
        **changes,
    }
    return ImagesConfig.from_dict(values)
