"""Light changes to training images: each is moved, turned and swapped by its own chance, all at once, on the device.

What an image shows at a place is looked up where that place was before. Shapes: B batch, C channels, H height, W width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from .config import AugmentConfig


def augmented(images: Tensor, config: AugmentConfig) -> Tensor:
    """Images (B, C, H, W) changed as the settings allow, by chance drawn from torch."""
    n, _, height, width = images.shape
    if not (config.shift or config.rotate or config.flip):
        return images

    def drawn(most: float) -> Tensor:
        """Evenly from −most to most, one for each image."""
        return (torch.rand(n, device=images.device) * 2 - 1) * most

    pixels = round(config.shift * max(height, width)) or (1 if config.shift else 0)
    down, right = (drawn(pixels + 0.5).round().clamp(-pixels, pixels) for _ in range(2))
    angle = drawn(math.radians(config.rotate))
    mirror = torch.where(drawn(1.0) < 0, -1.0, 1.0) if config.flip else torch.ones_like(angle)
    return moved(images, right, down, angle, mirror)


def moved(images: Tensor, right: Tensor, down: Tensor, angle: Tensor, mirror: Tensor) -> Tensor:
    """Each image mirrored (−1), turned about its middle and moved by so many pixels; the edge is drawn out."""
    _, _, height, width = images.shape
    y, x = (torch.arange(size, device=images.device, dtype=torch.float32) - (size - 1) / 2 for size in (height, width))
    y, x = y[None, :, None] - down[:, None, None], x[None, None, :] - right[:, None, None]  # (B, H, 1), (B, 1, W)
    cos, sin = angle.cos()[:, None, None], angle.sin()[:, None, None]
    from_x, from_y = (cos * x + sin * y) * mirror[:, None, None], cos * y - sin * x
    grid = torch.stack([from_x * (2 / max(1, width - 1)), from_y * (2 / max(1, height - 1))], dim=-1)  # (B, H, W, 2)
    return F.grid_sample(images, grid, mode="bilinear", padding_mode="border", align_corners=True)
