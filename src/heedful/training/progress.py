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


@dataclass
class Progress:
    """The step, the position in the data, the time used, the rows logged, the checkpoints and all validations."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # the next batch of the epoch
    seconds: float = 0.0
    rows: int = 0
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
        self._since = seconds, step  # at the start of this process
        self._limit = limit
        self._lap, self._tokens = seconds, 0.0
        self.ran_out = 0 < limit <= seconds

    @property
    def now(self) -> float:
        """Seconds of the run so far."""
        return time.monotonic() - self._start

    def tick(self) -> None:
        self.ran_out = 0 < self._limit <= self.now

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
        seconds, first = self._since
        steps_left = (total - step) * (self.now - seconds) / max(step - first, 1)
        return min(steps_left, max(self._limit - self.now, 0.0)) if self._limit else steps_left
