"""A forecaster of series: each scaled to a common size, cut into patches, read, and its forecast scaled back.

Shapes: B batch, L steps, C channels, P patches, D d_model. Groups G: C where every channel is read on its own,
1 where all are read together.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from .binding import zero_padding
from .embeddings import SeriesEmbedding
from .heads import Mean
from .masks import Mask, Padded, as_padding, padding
from .rules import Grid
from .stacks import Encoder


class Scale(NamedTuple):
    """Where each series lies and how wide it is: (B, 1, C) each."""

    location: Tensor
    width: Tensor

    def apply(self, series: Tensor) -> Tensor:
        """To the common size."""
        return (series - self.location) / self.width

    def undo(self, forecast: Tensor) -> Tensor:
        """Back to the size of the series."""
        return forecast * self.width + self.location


class NoScale(nn.Module):
    """Series as they are."""

    def forward(self, series: Tensor, keep: Mask | None = None) -> Scale:
        location = series.new_zeros(series.shape[0], 1, series.shape[2])
        return Scale(location, torch.ones_like(location))


class InstanceScale(nn.Module):
    """Each series by its own mean and deviation over the steps that were observed.

    `eps` is added to the variance: a constant series becomes zeros, and its forecast stays near the constant.
    """

    def __init__(self, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.mean = Mean()

    def forward(self, series: Tensor, keep: Mask | None = None) -> Scale:
        location = self.mean(series, keep)[:, None]
        variance = self.mean((series - location).square(), keep)[:, None]
        return Scale(location, (variance + self.eps).sqrt())


class MeanScale(nn.Module):
    """Each series by the mean of its absolute values, at least `least`, and not moved; zeros stay as they are."""

    def __init__(self, *, least: float = 1e-10) -> None:
        super().__init__()
        self.least = least
        self.mean = Mean()

    def forward(self, series: Tensor, keep: Mask | None = None) -> Scale:
        width = self.mean(series.abs(), keep)[:, None].clamp(min=self.least)
        return Scale(torch.zeros_like(width), width)


class Forecaster(nn.Module):
    """The steps that follow a series, from `context_length` steps of it.

    An embedding of one channel reads every channel on its own, with the same weights: channels become rows, and there
    may be any number of them. An embedding of several channels reads them together.

    The newest steps fill the patches; the oldest, where they fill none, count in the scale alone. A patch with a step
    that was not observed is hidden, and those after it stay where they are. Where the model is of lower precision than
    the series, only what is scaled is rounded: the forecast has the size and the precision of the series.
    """

    def __init__(
        self, *, context_length: int, scale: nn.Module, embedding: SeriesEmbedding, encoder: Encoder, head: nn.Module
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.scale = scale
        self.embedding = embedding
        self.encoder = encoder
        self.head = head

    def forward(self, series: Tensor, keep: Padded = None) -> Tensor:
        """(B, L, C) → (B, horizon, C). `keep`, (B, L) or padding(…), says which steps were observed."""
        x, real, scale = self._read(series, keep)
        forecast = self.head(x, real).unflatten(0, self._rows(series))  # (B, G, horizon, C/G)
        return scale.undo(forecast.transpose(1, 2).flatten(2))

    def encode(self, series: Tensor, keep: Padded = None) -> Tensor:
        """(B, L, C) → the vectors of the patches (B, G, P, D); those of hidden patches mean nothing."""
        return self._read(series, keep)[0].unflatten(0, self._rows(series))

    def _read(self, series: Tensor, keep: Padded) -> tuple[Tensor, Mask, Scale]:
        """The vectors of all rows (B·G, P, D), which of them are real, and the scale of the series."""
        self._check(series)
        batch, groups = self._rows(series)
        length = self.context_length
        observed = as_padding(keep)
        seen = observed.real_keys(Grid(batch, length, length, 0, series.device))
        series = zero_padding(series, seen)
        scale: Scale = self.scale(series, observed)

        first = length - self.embedding.filling(length)
        scaled = scale.apply(series)[:, first:].to(self.embedding.project.weight.dtype)
        rows = scaled.unflatten(2, (groups, -1)).transpose(1, 2).flatten(0, 1)  # (B·G, L, C/G)
        if seen is not None:
            seen = seen.expand(batch, -1)[:, first:].repeat_interleave(groups, dim=0)
        x, real = self.embedding(rows, None if seen is None else padding(seen))
        return self.encoder(x, real, positions=torch.arange(x.shape[1], device=x.device)), real, scale

    def _rows(self, series: Tensor) -> tuple[int, int]:
        """B and G."""
        return series.shape[0], series.shape[2] // self.embedding.n_channels

    def _check(self, series: Tensor) -> None:
        together = self.embedding.n_channels
        fits = series.dim() == 3 and series.is_floating_point() and together in (1, series.shape[2])
        if not fits:
            wanted = f"(B, {self.context_length}, {'channels' if together == 1 else together})"
            raise ValueError(f"series are floats of shape {wanted} here, not {series.dtype} of {tuple(series.shape)}")
        if series.shape[1] != self.context_length:
            raise ValueError(
                f"this model reads {self.context_length} steps, not {series.shape[1]}; give the newest of a longer "
                "series, and before a shorter one anything, with a keep that says which steps were observed"
            )
