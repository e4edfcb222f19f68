"""Findings in words, tables and pages, in English and Korean."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import ConfigError, unknown
from ..files import write_text
from ..lens.report import CurveChart, ReportData, write_report
from ..lens.report.document import averaged, decimal, number
from ..lens.terminal import sparkline
from .experiments import Findings, Gap

LOCALES = Path(__file__).parent / "locales"
BARS = 20  # of a sparkline


@cache
def catalog(language: str) -> dict[str, dict[str, str]]:
    """Return every sentence and label in a language, by group and key."""
    languages = [path.stem for path in LOCALES.glob("*.json")]
    if language not in languages:
        raise ConfigError(unknown("language", language, languages))
    messages: dict[str, dict[str, str]] = json.loads((LOCALES / f"{language}.json").read_text(encoding="utf-8"))
    return messages


def label(group: str, key: str, language: str) -> str:
    """Return the label of an arm or a metric; numbers at the end of a key, as in "length_12", stand in its label."""
    base, _, n = key.rpartition("_")
    labels = catalog(language)[group]
    return labels[f"{base}_n"].format(n=n) if n.isdecimal() else labels[key]


def claim(name: str, language: str = "en") -> str:
    """Return what an experiment claims."""
    return catalog(language)["experiments"][name]


def verdict(findings: Findings, language: str = "en") -> list[str]:
    """Return whether the claim holds, and a sentence about each gap."""
    messages = catalog(language)["messages"]
    seeds = len(findings.measurements)
    return [
        messages["holds" if findings.holds else "absent"].format(n=seeds),
        *(_gap(findings, gap, n, language) for gap, n in findings.support()),
    ]


def _gap(findings: Findings, gap: Gap, n: int, language: str) -> str:
    scores = findings.scores()
    texts = {}
    for side, mean, (arm, metric) in (("high", "a", gap.high.split(".")), ("low", "b", gap.low.split("."))):
        texts[side] = f"{label('arms', arm, language)} ({label('metrics', metric, language)})"
        texts[mean] = number(sum(scores[arm][metric]) / len(scores[arm][metric]))
    seeds = len(findings.measurements)
    return catalog(language)["messages"]["gap"].format(**texts, least=number(gap.least), n=n, seeds=seeds)


def table(findings: Findings, language: str = "en") -> list[dict[str, str]]:
    """Return a row for each arm: its name, and the mean of each score with the range over the seeds."""
    scores = findings.scores()
    metrics = dict.fromkeys(metric for arm in scores.values() for metric in arm)
    first = catalog(language)["messages"]["model"]
    return [
        {first: label("arms", arm, language)}
        | {label("metrics", metric, language): _spread(values.get(metric)) for metric in metrics}
        for arm, values in scores.items()
    ]


def _spread(values: list[float] | None) -> str:
    if values is None:
        return "–"
    low, mean, high = map(decimal, (min(values), sum(values) / len(values), max(values)))
    return mean if low == high else f"{mean} ({low} – {high})"


def sparklines(findings: Findings, language: str = "en") -> dict[str, str]:
    """Return the curve of each arm as a line of bars; all lines of an experiment share one scale."""
    curves = {
        arm: [y for _, y in averaged([(0.0, y) for y in curve], BARS)] for arm, curve in findings.curves().items()
    }
    joined = [value for curve in curves.values() for value in curve]
    bars, lines = iter(sparkline(joined, max(1, len(joined)))), {}
    for arm, curve in curves.items():
        lines[label("arms", arm, language)] = "".join(next(bars) for _ in curve)
    return lines


def report(findings: Findings, language: str = "en") -> ReportData:
    """Return the page of an experiment: claim, verdict, scores and curves."""
    experiment, messages = findings.experiment, catalog(language)
    lines = {
        label("arms", arm, language): list(zip(experiment.ticks or range(len(curve)), curve, strict=True))
        for arm, curve in findings.curves().items()
    }
    chart = CurveChart(messages["curves"][experiment.y], messages["axes"][experiment.x], lines)
    return ReportData(
        title=messages["messages"]["title"].format(name=experiment.name),
        language=language,
        notes=[f"{messages['messages']['claim']}: {claim(experiment.name, language)}", *verdict(findings, language)],
        comparison=table(findings, language),
        curves=[chart] if lines else [],
    )


def write(findings: Findings, folder: Path, language: str = "en") -> list[Path]:
    """Write the page and the numbers of an experiment into a folder."""
    experiment = findings.experiment
    numbers: dict[str, Any] = {
        "experiment": experiment.name,
        "holds": findings.holds,
        "scores": findings.scores(),
        "curves": findings.curves(),
    }
    data = folder / f"{experiment.name}.json"
    folder.mkdir(parents=True, exist_ok=True)
    write_text(data, json.dumps(numbers, indent=1) + "\n")
    return [write_report(folder / f"{experiment.name}.html", report(findings, language)), data]
