"""What a forecaster says of some windows, beside the truth, and which patches it attended to: plain data for a plot.

Shapes: L steps of context, P patches, H heads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...lens.recorder import record
from .forecaster import SeriesForecaster
from .judging import forecast_of, rivals
from .windows import Cut, WindowBatch, Windows

LOOKS = 4
DIGITS = 6


def looks(predictor: SeriesForecaster, windows: Windows, count: int = LOOKS) -> list[dict[str, Any]]:
    """Some windows, spread evenly, each by another column; those in which nothing is judged are passed over."""
    chosen = np.unique(np.linspace(0, len(windows) - 1, min(count, len(windows))).astype(np.int64))
    columns = len(windows.store.columns)
    found = [_look(predictor, windows, int(window), place % columns) for place, window in enumerate(chosen)]
    return [look for look in found if look is not None]


def _look(predictor: SeriesForecaster, windows: Windows, window: int, column: int) -> dict[str, Any] | None:
    store, model = windows.store, windows.model
    cut = windows.cut([window])
    if not cut.counts[..., column].any():
        return None
    begin = int(windows.begins([window])[0])
    times = [store.when(row) for row in range(begin, begin + model.context_length + model.horizon)]
    others = rivals(windows, predictor.settings.season, predictor.linear)
    forecasts = {
        name: forecast(cut.context)
        for name, forecast in {"forecast": forecast_of(predictor.module, windows), **others}.items()
    }

    def shown(values: NDArray[Any]) -> list[float | None]:
        real = store.scale.undo(values)[0, :, column].tolist()
        return [None if np.isnan(value) else float(f"{value:.{DIGITS}g}") for value in real]

    return {
        "series": store.owner(begin).name,
        "column": store.columns[column],
        "times": None if times[0] is None else times,
        "context": shown(cut.context),
        "truth": shown(cut.target),
        "forecast": shown(forecasts.pop("forecast")),
        "rivals": {name: shown(values) for name, values in forecasts.items()},
        "attention": _attention(predictor, windows, cut, column),
    }


@torch.inference_mode()
def _attention(predictor: SeriesForecaster, windows: Windows, cut: Cut, column: int) -> dict[str, Any]:
    """The last layer's, of the row that a column is read in.

    `patches` are their first steps and those behind their last, counted in the context. `mean` and `heads` are how much
    a patch is attended to, on average over the patches that attend; `weights` the whole map (P, P), mean over heads.
    `reach` is how many steps away, on average, a head looks.
    """
    model, last = windows.model, windows.model.n_layers - 1
    device = next(predictor.module.parameters()).device
    batch = WindowBatch.of(cut, windows.together, whole=windows.store.whole).to(device)
    with record(predictor.module, layers=last) as recording:
        predictor.module(batch.context, batch.keep)
    row = column // windows.together
    weights: Tensor = recording.encoder[last][row].float().cpu()  # (H, P, P)
    begins = (model.context_length - model.patch_length) % model.stride + model.stride * torch.arange(model.n_patches)
    apart = (begins[:, None] - begins[None]).abs()
    return {
        "patches": [[begin, begin + model.patch_length] for begin in begins.tolist()],
        "mean": _rounded(weights.mean(dim=(0, 1))),
        "heads": _rounded(weights.mean(dim=1)),
        "weights": _rounded(weights.mean(dim=0)),
        "reach": _rounded((weights * apart).sum(dim=2).mean(dim=1)),
    }


def _rounded(values: Tensor) -> Any:
    return torch.round(values.double(), decimals=4).tolist()
