"""The registry of experiments, and what a run of one finds.

An experiment measures arms side by side: the intact model, and models in which one part is broken or exchanged. Its
claim is a list of gaps between scores, from claims.yaml. It holds if every gap is wide enough with every seed.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import process_time

import torch
import yaml

from ..errors import ConfigError, unknown


@dataclass(frozen=True)
class Arm:
    """The scores of one model, and a curve: by training step, or by what `Experiment.x` names."""

    scores: Mapping[str, float]
    curve: Sequence[float] = ()


Measurement = Mapping[str, Arm]  # by the name of the arm
Measure = Callable[[int, float], Measurement]  # takes a seed and the share of the full number of steps


@dataclass(frozen=True)
class Gap:
    """The score `high`, such as "intact.written", is above the score `low` by at least this much."""

    high: str
    low: str
    least: float

    def size(self, measurement: Measurement) -> float:
        """Return the difference of the two scores."""
        (high_arm, high), (low_arm, low) = self.high.split("."), self.low.split(".")
        return measurement[high_arm].scores[high] - measurement[low_arm].scores[low]


@dataclass(frozen=True)
class Experiment:
    """An experiment. The sentences about it, in both languages, are in the catalogs."""

    name: str
    measure: Measure = field(repr=False)
    gaps: tuple[Gap, ...]
    x: str  # what a curve runs over
    y: str  # and what it shows
    ticks: tuple[float, ...] = ()  # the places of a curve's points, where they are not its steps


@dataclass(frozen=True)
class Findings:
    """The measurements of an experiment, one for each seed."""

    experiment: Experiment
    measurements: Sequence[Measurement]
    seconds: float = 0.0  # of computing

    @property
    def holds(self) -> bool:
        """True if every gap of the claim is there with every seed."""
        return all(n == len(self.measurements) for _, n in self.support())

    def support(self) -> list[tuple[Gap, int]]:
        """Return each gap, and with how many seeds it is wide enough."""
        return [
            (gap, sum(gap.size(measurement) >= gap.least for measurement in self.measurements))
            for gap in self.experiment.gaps
        ]

    def scores(self) -> dict[str, dict[str, list[float]]]:
        """Return the scores by arm and name, one for each seed."""
        return {
            arm: {name: [each[arm].scores[name] for each in self.measurements] for name in first.scores}
            for arm, first in self.measurements[0].items()
        }

    def curves(self) -> dict[str, list[float]]:
        """Return the curve of each arm that has one, the mean over the seeds."""
        arms = {arm: [each[arm].curve for each in self.measurements] for arm in self.measurements[0]}
        return {
            arm: [sum(values) / len(values) for values in zip(*curves, strict=True)]
            for arm, curves in arms.items()
            if curves[0]
        }


EXPERIMENTS: dict[str, Experiment] = {}
CLAIMS = yaml.safe_load(Path(__file__).with_name("claims.yaml").read_text(encoding="utf-8"))


def experiment(
    name: str, x: str = "step", y: str = "loss", ticks: tuple[float, ...] = ()
) -> Callable[[Measure], Measure]:
    """Register a function that measures an experiment once."""

    def add(measure: Measure) -> Measure:
        gaps = tuple(Gap(high, low, float(least)) for high, low, least in CLAIMS[name])
        EXPERIMENTS[name] = Experiment(name, measure, gaps, x, y, ticks)
        return measure

    return add


def run(name: str, *, seeds: int = 3, effort: float = 1.0) -> Findings:
    """Run an experiment with the seeds 0, 1, ….

    Args:
        name: One of EXPERIMENTS.
        seeds: How many seeds.
        effort: The share of the full number of training steps; tests and impatient readers take less.

    Raises:
        ConfigError: An unknown name, or no seed.
    """
    if name not in EXPERIMENTS:
        raise ConfigError(unknown("experiment", name, EXPERIMENTS))
    if seeds < 1 or not 0 < effort <= 1:
        raise ConfigError(
            f"an experiment needs at least 1 seed and an effort above 0 up to 1, not {seeds} and {effort}"
        )
    threads, begin = torch.get_num_threads(), process_time()
    torch.set_num_threads(1)  # these models are so small that threads wait for each other; and runs are repeatable
    try:
        with torch.random.fork_rng(devices=[]):
            measurements = [EXPERIMENTS[name].measure(seed, effort) for seed in range(seeds)]
    finally:
        torch.set_num_threads(threads)
    return Findings(EXPERIMENTS[name], measurements, process_time() - begin)


def numbered(name: str, numbers: Sequence[int], values: Iterable[float]) -> dict[str, float]:
    """Return scores such as "length_12", by the number that each value is for."""
    return {f"{name}_{n}": float(value) for n, value in zip(numbers, values, strict=True)}


def scaled(steps: int, effort: float) -> int:
    """Return the number of steps for an effort, at least two."""
    return max(2, round(steps * effort))
