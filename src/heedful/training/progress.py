"""Where a run stands: all that a checkpoint must know beside tensors. Best scores and patience follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from .arrivals import StepValues
from .config import TrainingConfig
from .objective import Monitor


@dataclass(frozen=True)
class Validation:
    """The scores at a step."""

    step: int
    scores: dict[str, float]


@dataclass
class Meter:
    """Sums since the last row of the log, and what the last step was like."""

    step: int = 0
    epoch: int = 0
    norm: float = 0.0
    total: float = 0.0
    plain: float = 0.0
    n: float = 0.0

    def add(self, values: StepValues) -> None:
        """Count a step in."""
        self.step, self.epoch, self.norm = values.step, values.epoch, values.norm
        self.total += values.total
        self.plain += values.plain
        self.n += values.n


@dataclass
class Progress:
    """The step, the place in the data, the time used, the rows logged, what was saved and every validation so far."""

    step: int = 0
    epoch: int = 0
    batch: int = 0  # how many batches of the epoch were used
    seconds: float = 0.0
    rows: int = 0
    saves: list[int] = field(default_factory=list)  # the last steps of this run that were saved
    meter: Meter = field(default_factory=Meter)
    validations: list[Validation] = field(default_factory=list)

    def ranked(self, monitor: Monitor) -> list[Validation]:
        """The validations, the best first; of equals, the one with the lower loss, then the earlier."""
        return sorted(self.validations, key=lambda found: (monitor.key(found.scores), found.scores.get("loss", 0.0)))

    def final(self, monitor: Monitor, config: TrainingConfig) -> list[Validation]:
        """The validations whose weights, or the mean of them, the run would deliver if it ended here."""
        if config.average == "last":
            return self.validations[-config.keep_last :]
        return self.ranked(monitor)[: config.keep_best if config.average == "best" else 1]

    def waited(self, monitor: Monitor) -> int:
        """How many validations have passed since the first with the best score."""
        keys = [monitor.key(validation.scores) for validation in self.validations]
        return len(keys) - 1 - keys.index(min(keys)) if keys else 0

    def worth_keeping(self, monitor: Monitor, config: TrainingConfig) -> set[int]:
        """The steps whose checkpoints may be needed: the last ones, the best ones, and those of the final weights."""
        chosen = self.ranked(monitor)[: config.keep_best] + self.final(monitor, config)
        return {*self.saves, *(validation.step for validation in chosen)}

    @property
    def is_validated(self) -> bool:
        """Whether this very step was."""
        return bool(self.validations) and self.validations[-1].step == self.step

    @property
    def is_saved(self) -> bool:
        """Whether this very step was."""
        return self.saves[-1:] == [self.step]

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which keeps every digit of a float."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """What `to_dict` gave."""
        meter = Meter(**values["meter"])
        validations = [Validation(**validation) for validation in values["validations"]]
        return cls(**{**values, "meter": meter, "validations": validations})
