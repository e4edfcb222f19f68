"""What a run says of a step that has been read."""

from __future__ import annotations

from typing import Any

from .arrivals import StepValues
from .clock import Clock
from .errors import NonFiniteError
from .events import Trained
from .objective import Objective
from .progress import Meter, Progress
from .update import Update

SHOWN = 40  # places of input that an error names


def trained(meter: Meter, update: Update, clock: Clock) -> Trained:
    """The steps since the last event of this kind."""
    return Trained(
        step=meter.step,
        total_steps=update.total_steps,
        epoch=meter.epoch,
        loss=meter.total / meter.n,
        nll=meter.plain / meter.n,
        learning_rate=update.schedule(meter.step),
        grad_norm=meter.norm,
        tokens_per_second=clock.lap(),
        seconds=clock.now,
        seconds_left=clock.left(meter.step, update.total_steps),
    )


def non_finite(values: StepValues, objective: Objective[Any], progress: Progress) -> NonFiniteError:
    """What to say of a step that was not finite: which input was behind it."""
    places = [place for batch in values.batches for place in objective.describe(batch)]
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    kept = f"the last checkpoint is of step {progress.saves[-1]}" if progress.saves else "nothing was saved yet"
    return NonFiniteError(
        f"step {values.step}: the loss, {values.total:g} over {values.n:g} tokens, or its gradient, of norm "
        f"{values.norm:g}, is not finite. The step was not taken; {kept}. Look at its input, or lower the "
        f"learning_rate: {', '.join(places[:SHOWN])}{more}"
    )
