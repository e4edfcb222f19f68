"""Embeddings map inputs and their padding to a sequence of vectors and its padding.

Shapes: B batch, T tokens, D d_model, V vocabulary, P patches, C channels, L days of a series.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .init import linear, table
from .mask_preparation import zero_padding
from .masks import Grid, Mask, Padded, as_padding, can_read, padding

Embedded = tuple[Tensor, Mask]  # (B, T, D) and its padding mask


class TokenEmbedding(nn.Module):
    """A vector per token id, by default scaled by √D as in the paper. Segment ids add a vector each."""

    def __init__(self, vocab_size: int, d_model: int, *, scale: bool = True, n_segments: int = 0) -> None:
        super().__init__()
        self.scale = math.sqrt(d_model) if scale else 1.0
        self.weight = table(vocab_size, d_model)
        self.segments = table(n_segments, d_model) if n_segments else None

    def forward(self, tokens: Tensor, keep: Padded = None, *, segments: Tensor | None = None) -> Embedded:
        ids = _ids(tokens, self.weight.shape[0], "token ids")
        x = self.look_up(ids)
        if self.segments is not None:
            parts = torch.zeros_like(ids) if segments is None else _ids(segments, self.segments.shape[0], "segments")
            if parts.shape != ids.shape:
                raise ValueError(f"segments have the shape of the tokens, {tuple(ids.shape)}, not {tuple(parts.shape)}")
            x = x + F.embedding(parts, self.segments)
        elif segments is not None:
            raise ValueError("this model has no segments; build it with n_segments, or omit segments")
        return x, as_padding(keep)

    def look_up(self, ids: Tensor) -> Tensor:
        """Return the scaled vectors of token ids: (B, T) → (B, T, D)."""
        return F.embedding(ids, self.weight) * self.scale

    def extra_repr(self) -> str:
        return f"{self.weight.shape[0]}, {self.weight.shape[1]}, scale={self.scale:g}"


def _ids(ids: Tensor, n: int, what: str) -> Tensor:
    """Check that ids are integers of shape (B, T) below n, and return them as int64."""
    if not isinstance(ids, Tensor):
        raise TypeError(f"{what} must be a tensor of integers of shape (B, T), not a {type(ids).__name__}")
    if ids.dim() != 2 or ids.is_floating_point() or ids.dtype == torch.bool:
        raise TypeError(f"{what} must be integers of shape (B, T), not {ids.dtype} of shape {tuple(ids.shape)}")
    check_range(ids, n, what)
    return ids.long()


def check_range(ids: Tensor, n: int, what: str) -> None:
    """Raise an error for ids outside 0 to n − 1 if the host can read them; devices check by themselves."""
    if not ids.numel() or not can_read(ids):
        return
    low, high = int(ids.min()), int(ids.max())
    if low < 0 or high >= n:
        raise ValueError(f"{what} must be from 0 to {n - 1}, but one is {low if low < 0 else high}")


class Vectors(nn.Module):
    """For inputs that are vectors already: returns (B, T, D) unchanged."""

    def forward(self, x: Tensor, keep: Padded = None, *, segments: Tensor | None = None) -> Embedded:
        if segments is not None:
            raise ValueError("vectors have no segments")
        return x, as_padding(keep)


class PatchEmbedding(nn.Module):
    """Cuts an image (B, C, height, width) into square patches, row by row, and projects each to a vector: (B, P, D).

    `n_prefix` learned vectors precede the patches: the class token, and DeiT's distillation token.
    """

    def __init__(
        self,
        d_model: int,
        *,
        image_size: int | tuple[int, int],
        patch_size: int,
        n_channels: int = 3,
        n_prefix: int = 1,
    ) -> None:
        super().__init__()
        height, width = (image_size, image_size) if isinstance(image_size, int) else image_size
        if height % patch_size or width % patch_size:
            raise ValueError(
                f"an image of {height} x {width} cannot be cut into patches of {patch_size} x {patch_size}"
            )
        self.shape = n_channels, height, width
        self.patch_size = patch_size
        self.n_patches = (height // patch_size) * (width // patch_size)
        self.project = linear(n_channels * patch_size * patch_size, d_model)
        self.prefix = table(n_prefix, d_model)

    def forward(self, images: Tensor, keep: Padded = None, *, segments: Tensor | None = None) -> Embedded:
        if images.dim() != 4 or tuple(images.shape[1:]) != self.shape or not images.is_floating_point():
            expected = ", ".join(map(str, self.shape))
            raise ValueError(
                f"images must be floats of shape (B, {expected}), not {tuple(images.shape)} of {images.dtype}"
            )
        if keep is not None or segments is not None:
            raise ValueError("an image has neither padding nor segments")
        patches = F.unfold(images, self.patch_size, stride=self.patch_size).transpose(1, 2)  # (B, P, C·size²)
        prefix = self.prefix.expand(images.shape[0], -1, -1)
        vectors = self.project(patches.to(self.project.weight.dtype))
        return torch.cat([prefix, vectors], dim=1), as_padding(None)


class SeriesEmbedding(nn.Module):
    """Cuts a series (B, L, C) into patches of `patch_length` steps every `stride` and projects each: (B, P, D).

    30 days in patches of 6 with stride 3 make 9. All channels of a patch share its vector; to embed channels
    separately, pass them as rows.
    """

    def __init__(self, d_model: int, *, patch_length: int = 6, stride: int = 3, n_channels: int = 1) -> None:
        super().__init__()
        if patch_length < 1 or stride < 1:
            raise ValueError(f"patch_length={patch_length} and stride={stride} must be at least 1")
        self.patch_length = patch_length
        self.stride = stride
        self.n_channels = n_channels
        self.project = linear(patch_length * n_channels, d_model)

    def filling(self, length: int) -> int:
        """Return how many of `length` steps fill whole patches, for callers that may drop the oldest steps."""
        return length - (length - self.patch_length) % self.stride

    def n_patches(self, length: int) -> int:
        """Return the number of patches of a series; an error if its last steps do not fill a patch."""
        over = length - self.filling(length)
        if length < self.patch_length or over:
            allowed = f"{length - over} or {length - over + self.stride}" if length > self.patch_length else "more"
            raise ValueError(
                f"{length} steps cannot be cut into patches of {self.patch_length} every {self.stride} "
                f"without losing the newest; pass {allowed} steps"
            )
        return (length - self.patch_length) // self.stride + 1

    def forward(self, series: Tensor, keep: Padded = None, *, segments: Tensor | None = None) -> Embedded:
        """Embed (B, L, C). `keep` marks the observed steps; a patch is real if all of its steps are observed."""
        if series.dim() != 3 or series.shape[2] != self.n_channels:
            raise ValueError(f"series must have the shape (B, length, {self.n_channels}), not {tuple(series.shape)}")
        if segments is not None:
            raise ValueError("a series has no segments")
        length = series.shape[1]
        self.n_patches(length)
        real = as_padding(keep).real_keys(Grid(series.shape[0], length, length, 0, series.device))
        patches = zero_padding(series, real).unfold(1, self.patch_length, self.stride)  # (B, P, C, patch)
        patch_keep = None if real is None else padding(real.unfold(1, self.patch_length, self.stride).all(dim=-1))
        return self.project(patches.flatten(2)), as_padding(patch_keep)
