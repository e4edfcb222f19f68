"""The progress of a run, and the time it takes.

A checkpoint contains `Progress` beside its tensors; best scores and patience follow from it.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from .config import TrainingConfig
from .metrics import Meter, Validation
from .objective import Monitor


UNPACED = 3  # steps at the start of a process that do not tell its pace
PACED = 10  # steps after which the pace is measured again


@dataclass
class Progress:
    """The step, the position in the data, the time used, the rows logged, the checkpoints and all validations."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # the next batch of the epoch
    seconds: float = 0.0
    rows: int = 0
    planned: int = 0  # the steps that the time allows, once they are known; the schedule ends there
    saves: list[int] = field(default_factory=list)  # the last steps of this run that were saved
    meter: Meter = field(default_factory=Meter)
    validations: list[Validation] = field(default_factory=list)

    def ranked(self, monitor: Monitor) -> list[Validation]:
        """Return the validations, best first; among equals, lower losses and then earlier ones come first."""
        return sorted(self.validations, key=lambda valid: (monitor.key(valid.scores), valid.scores.get("loss", 0.0)))

    def final(self, monitor: Monitor, config: TrainingConfig) -> list[Validation]:
        """Return the validations whose mean weights would be the final ones if the run ended here."""
        if config.average == "last":
            return self.validations[-config.keep_last :]
        return self.ranked(monitor)[: config.keep_best if config.average == "best" else 1]

    def validations_since_best(self, monitor: Monitor) -> int:
        """Return how many validations have passed since the first one with the best score."""
        keys = [monitor.key(validation.scores) for validation in self.validations]
        return len(keys) - 1 - keys.index(min(keys)) if keys else 0

    def worth_keeping(self, monitor: Monitor, config: TrainingConfig) -> set[int]:
        """Return the steps whose checkpoints may be needed: the last, the best, and those of the final weights."""
        chosen = self.ranked(monitor)[: config.keep_best] + self.final(monitor, config)
        return {*self.saves, *(validation.step for validation in chosen)}

    @property
    def is_validated(self) -> bool:
        """True if the last step was validated."""
        return bool(self.validations) and self.validations[-1].step == self.step

    @property
    def is_saved(self) -> bool:
        """True if the last step was saved."""
        return self.saves[-1:] == [self.step]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, which preserves floats exactly."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        meter = Meter(**values["meter"])
        validations = [Validation(**validation) for validation in values["validations"]]
        return cls(**{**values, "meter": meter, "validations": validations})


class Clock:
    """The time a run takes, over all its resumptions, and its speed.

    `ran_out` changes only in `tick`, so that all decisions between two steps agree.
    """

    def __init__(self, seconds: float, step: int, *, limit: float = 0.0) -> None:
        self._start = time.monotonic() - seconds
        self._since = self._paced = seconds, step  # at the start of this process, and where its pace is measured from
        self._limit = limit
        self._lap, self._tokens = seconds, 0.0
        self.ran_out = 0 < limit <= seconds

    @property
    def now(self) -> float:
        """Seconds of the run so far."""
        return time.monotonic() - self._start

    def tick(self, step: int) -> None:
        self.ran_out = 0 < self._limit <= self.now
        if step == self._since[1] + UNPACED:
            self._paced = self.now, step

    def is_paced(self, step: int) -> bool:
        """Return True after every few steps that tell the pace."""
        return (step - self._since[1]) % PACED == 0

    def pace(self, step: int) -> float:
        """Return the steps per second, without the first ones, in which memory is allocated and kernels are made."""
        seconds, first = self._paced
        return max(step - first, 1) / max(self.now - seconds, 1e-9)

    def allowed(self, step: int) -> float:
        """Return the last step that the time limit allows at this pace."""
        return step + max(self._limit - self.now, 0.0) * self.pace(step) if self._limit else float("inf")

    def add_tokens(self, tokens: float) -> None:
        self._tokens += tokens

    def lap(self) -> float:
        """Return the tokens per second since the last call."""
        now = self.now
        speed = self._tokens / max(now - self._lap, 1e-9)
        self._lap, self._tokens = now, 0.0
        return speed

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Exclude the time spent inside from the lap."""
        began = self.now
        try:
            yield
        finally:
            self._lap += self.now - began

    def left(self, step: int, total: int) -> float:
        """Return the seconds that remain, at the speed since this process started."""
        steps_left = (total - step) / self.pace(step)
        return min(steps_left, max(self._limit - self.now, 0.0)) if self._limit else steps_left
