"""`heedful train forecasting`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..config import read_mapping
from ..tasks.forecasting.task import ForecastingTask
from ..tasks.run.folder import METRICS
from .running import Common, Out, launch, with_common
from .words import say

NAME = ForecastingTask.name
EXAMPLE = "Example: heedful train forecasting --data prices.csv --columns close --horizon 5 --out runs/prices"


@with_common
def forecasting(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE…",
            help="Tables (.csv, .tsv, .gz) with a header: a step a row, a channel a column, with a column of dates "
            "(date) or none, and one of names (symbol) where they hold several series.",
        ),
    ] = None,
    columns: Annotated[str | None, typer.Option(help="The columns to forecast; all unless given.")] = None,
    series: Annotated[str | None, typer.Option(help="The series to use; all unless given: AAPL,IBM.")] = None,
    context: Annotated[int | None, typer.Option(min=2, help="From how many steps. 30 in the usual model.")] = None,
    horizon: Annotated[int | None, typer.Option(min=1, help="How many steps. 5 in the usual model.")] = None,
    channels: Annotated[
        str | None, typer.Option(help="independent (each on its own, the same weights) or mixed (read together).")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="A sized model: patchtst-tiny, patchtst-42, patchtst-64 (the paper's).")
    ] = None,
    *,
    common: Common,
) -> None:
    """Train a forecaster on tables of series, such as prices, and judge it beside "tomorrow = today".

    Each series is divided by time: the first 70 % to train, 10 % to validate, 20 % to test (data.split). Settings come
    from --config, then from the options, then from --set. A run that was stopped goes on with --resume.
    """

    def options(values: dict[str, Any]) -> None:
        given = {"context_length": context, "horizon": horizon, "channels": channels}
        changes = {name: value for name, value in given.items() if value is not None}
        if series is not None:
            values["data"] = {**values.get("data", {}), "series": [name.strip() for name in series.split(",")]}
        if preset is not None:
            values["model"] = {"preset": preset}
        if changes:
            chosen = values.get("model", {})
            values["model"] = {**({"preset": chosen} if isinstance(chosen, str) else chosen), **changes}

    task = ForecastingTask()
    if launch(task, out, common, data=data, columns=columns, options=options):
        for sentence in task.verdicts(read_mapping(out / METRICS)):
            say(sentence)
