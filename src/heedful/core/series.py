"""A forecaster of series: each scaled to a common size, cut into patches, read, and its forecast scaled back.

Shapes: B batch, L steps, C channels, P patches, D d_model. Groups G: C where every channel is read on its own,
1 where all are read together.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from .embeddings import SeriesEmbedding
from .heads import Mean
from .mask_preparation import zero_padding
from .masks import Grid, Mask, Padded, as_padding, padding
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


class DirectForecast(nn.Module):
    """Each step that follows as one weighted sum of all steps, the same for every channel: (R, L, c) → (R, horizon, c).

    Beside patches it leaves to them what is not linear. It starts by saying nothing.
    """

    def __init__(self, context_length: int, horizon: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(horizon, context_length))

    def forward(self, series: Tensor) -> Tensor:
        return torch.einsum("hl,rlc->rhc", self.weight, series)


class Forecaster(nn.Module):
    """The steps that follow a series, from `context_length` steps of it.

    An embedding of one channel reads every channel on its own, with the same weights: channels become rows, and there
    may be any number of them. An embedding of several channels reads them together.

    The newest steps fill the patches; the oldest, where they fill none, count in the scale alone. A patch with a step
    that was not observed is hidden, and those after it stay where they are. Where the model is of lower precision than
    the series, only what is scaled is rounded: the forecast has the size and the precision of the series.

    `direct` forecasts from the steps themselves, and is added to what the patches say.
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
        """(B, L, C) → (B, horizon, C). `keep`, (B, L) or padding(…), says which steps were observed."""
        rows, seen, scale = self._scaled(series, keep)
        forecast = self.head(*self._encoded(rows, seen))
        if self.direct is not None:
            forecast = forecast + self.direct(zero_padding(rows, seen))
        forecast = forecast.unflatten(0, self._rows(series))  # (B, G, horizon, C/G)
        return scale.undo(forecast.transpose(1, 2).flatten(2))

    def encode(self, series: Tensor, keep: Padded = None) -> Tensor:
        """(B, L, C) → the vectors of the patches (B, G, P, D); those of hidden patches mean nothing."""
        rows, seen, _ = self._scaled(series, keep)
        return self._encoded(rows, seen)[0].unflatten(0, self._rows(series))

    def _scaled(self, series: Tensor, keep: Padded) -> tuple[Tensor, Tensor | None, Scale]:
        """The series as rows (B·G, L, C/G), scaled; which steps of them were observed; and the scale."""
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
        """The vectors of the newest patches (B·G, P, D), and which of them are real."""
        first = self.context_length - self.embedding.filling(self.context_length)
        x, real = self.embedding(rows[:, first:], None if seen is None else padding(seen[:, first:]))
        return self.encoder(x, real, positions=torch.arange(x.shape[1], device=x.device)), real

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
