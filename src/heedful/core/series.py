"""A forecaster: scales each series, encodes its patches, and scales the forecast back.

Shapes: B batch, L steps, C channels, P patches, D d_model. Groups G: C if channels are read
independently, 1 if they are read together.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from .embeddings import SeriesEmbedding
from .heads import MeanPool
from .mask_preparation import zero_padding
from .masks import Grid, Mask, Padded, as_padding, padding
from .stacks import Encoder


class Scale(NamedTuple):
    """The location and the scale of each series: (B, 1, C) each."""

    location: Tensor
    width: Tensor

    def apply(self, series: Tensor) -> Tensor:
        """Normalize a series to the common scale."""
        return (series - self.location) / self.width

    def undo(self, forecast: Tensor) -> Tensor:
        """Return a forecast to the scale of the series."""
        return forecast * self.width + self.location


class NoScale(nn.Module):
    """Leaves series as they are, at scale one."""

    def forward(self, series: Tensor, keep: Mask | None = None) -> Scale:
        location = series.new_zeros(series.shape[0], 1, series.shape[2])
        return Scale(location, torch.ones_like(location))


class InstanceScale(nn.Module):
    """Scales each series by its mean and standard deviation over the observed steps.

    `eps` is added to the variance: a constant series becomes zeros, and its forecast stays near the constant.
    """

    def __init__(self, *, eps: float = 1e-5) -> None:
        super().__init__()
        self.eps = eps
        self.mean = MeanPool()

    def forward(self, series: Tensor, keep: Mask | None = None) -> Scale:
        location = self.mean(series, keep)[:, None]
        variance = self.mean((series - location).square(), keep)[:, None]
        return Scale(location, (variance + self.eps).sqrt())


class MeanScale(nn.Module):
    """Divides each series by the mean of its absolute values, at least `least`, without shifting it."""

    def __init__(self, *, least: float = 1e-10) -> None:
        super().__init__()
        self.least = least
        self.mean = MeanPool()

    def forward(self, series: Tensor, keep: Mask | None = None) -> Scale:
        width = self.mean(series.abs(), keep)[:, None].clamp(min=self.least)
        return Scale(torch.zeros_like(width), width)


class DirectForecast(nn.Module):
    """A linear forecast: each future step is a weighted sum of all steps, (R, L, c) → (R, horizon, c).

    Channels share the weights, which start at zero. Beside patches, it leaves to them what is not linear.
    """

    def __init__(self, context_length: int, horizon: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(horizon, context_length))

    def forward(self, series: Tensor) -> Tensor:
        return torch.einsum("hl,rlc->rhc", self.weight, series)


class Forecaster(nn.Module):
    """Forecasts a series from its last `context_length` steps.

    With an embedding of one channel, channels are read independently with the same weights: they become rows, and
    their number is free. An embedding of several channels reads them together.

    The newest steps fill the patches; the oldest steps that fill none only affect the scale. A patch with an unobserved
    step is hidden, and later patches keep their positions. If the model has a lower precision than the series, only
    the scaled values are rounded: the forecast has the precision of the series.

    `direct` forecasts from the steps themselves; its output is added to the forecast from the patches.
    """

    def __init__(
        self,
        *,
        context_length: int,
        scale: nn.Module,
        embedding: SeriesEmbedding,
        encoder: Encoder,
        head: nn.Module,
        direct: nn.Module | None = None,
    ) -> None:
        super().__init__()
        self.context_length = context_length
        self.scale = scale
        self.embedding = embedding
        self.encoder = encoder
        self.head = head
        self.direct = direct

    def forward(self, series: Tensor, keep: Padded = None) -> Tensor:
        """Forecast (B, L, C) → (B, horizon, C). `keep`, (B, L) or padding(…), marks the observed steps."""
        rows, seen, scale = self._scaled(series, keep)
        forecast = self.head(*self._encoded(rows, seen))
        if self.direct is not None:
            forecast = forecast + self.direct(zero_padding(rows, seen))
        forecast = forecast.unflatten(0, self._rows(series))  # (B, G, horizon, C/G)
        return scale.undo(forecast.transpose(1, 2).flatten(2))

    def encode(self, series: Tensor, keep: Padded = None) -> Tensor:
        """Encode (B, L, C) to the vectors of the patches (B, G, P, D); those of hidden patches are undefined."""
        rows, seen, _ = self._scaled(series, keep)
        return self._encoded(rows, seen)[0].unflatten(0, self._rows(series))

    def _scaled(self, series: Tensor, keep: Padded) -> tuple[Tensor, Tensor | None, Scale]:
        """Return the scaled series as rows (B·G, L, C/G), which of their steps were observed, and the scale."""
        self._check(series)
        batch, groups = self._rows(series)
        length = self.context_length
        observed = as_padding(keep)
        seen = observed.real_keys(Grid(batch, length, length, 0, series.device))
        series = zero_padding(series, seen)
        scale: Scale = self.scale(series, observed)

        scaled = scale.apply(series).to(self.embedding.project.weight.dtype)
        rows = scaled.unflatten(2, (groups, -1)).transpose(1, 2).flatten(0, 1)
        return rows, None if seen is None else seen.expand(batch, -1).repeat_interleave(groups, dim=0), scale

    def _encoded(self, rows: Tensor, seen: Tensor | None) -> tuple[Tensor, Mask]:
        """Return the vectors of the newest patches (B·G, P, D), and which of them are real."""
        first = self.context_length - self.embedding.filling(self.context_length)
        x, real = self.embedding(rows[:, first:], None if seen is None else padding(seen[:, first:]))
        return self.encoder(x, real, positions=torch.arange(x.shape[1], device=x.device)), real

    def _rows(self, series: Tensor) -> tuple[int, int]:
        return series.shape[0], series.shape[2] // self.embedding.n_channels

    def _check(self, series: Tensor) -> None:
        n_channels = self.embedding.n_channels
        fits = series.dim() == 3 and series.is_floating_point() and n_channels in (1, series.shape[2])
        if not fits:
            expected = f"(B, {self.context_length}, {'channels' if n_channels == 1 else n_channels})"
            raise ValueError(f"series must be floats of shape {expected}, not {series.dtype} of {tuple(series.shape)}")
        if series.shape[1] != self.context_length:
            raise ValueError(
                f"this model reads {self.context_length} steps, not {series.shape[1]}; pass the newest of a longer "
                "series; pad a shorter one at the start and mark the observed steps with keep"
            )
