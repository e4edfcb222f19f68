"""What a run says of a step that has been read."""

from __future__ import annotations

from typing import Any

from .clock import Clock
from .errors import NonFiniteError
from .events import Trained
from .job import Job
from .progress import Progress
from .readings import Reading
from .update import Update

SHOWN = 40  # places of input that an error names


def trained(reading: Reading, progress: Progress, update: Update, clock: Clock) -> Trained:
    """The steps since the last event of this kind, up to the one read."""
    meter = progress.meter
    return Trained(
        step=reading.step,
        total_steps=update.total_steps,
        epoch=reading.epoch,
        loss=meter.total / meter.n,
        nll=meter.plain / meter.n,
        learning_rate=update.schedule(reading.step),
        grad_norm=reading.norm,
        tokens_per_second=clock.lap(),
        seconds=clock.now,
        seconds_left=clock.left(reading.step, update.total_steps),
    )


def non_finite(reading: Reading, job: Job[Any], progress: Progress) -> NonFiniteError:
    """What to say of a step that was not finite: which input was behind it."""
    places = [place for batch in reading.batches for place in job.describe(batch)]
    more = f" and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    kept = f"the last checkpoint is of step {progress.saves[-1]}" if progress.saves else "nothing was saved yet"
    return NonFiniteError(
        f"step {reading.step}: the loss, {reading.total:g} over {reading.n:g} tokens, or its gradient, of norm "
        f"{reading.norm:g}, is not finite. The step was not taken; {kept}. Look at its input, or lower the "
        f"learning_rate: {', '.join(places[:SHOWN])}{more}"
    )
