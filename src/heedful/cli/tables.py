"""Tables and results that commands print."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Column, Table

from ..lens.report import ScoredSample
from ..tasks.run import DataReport
from ..tasks.scoring import LengthScore, Score, main_metric
from ..tasks.translation.inspection import AlignmentScore
from ..tasks.translation.task import Evaluation
from .console import console, plain, say, warn

FILES = 8  # listed by name; a folder may hold thousands
PLACES = 3
MOST_ACROSS = 4  # scores side by side on 80 columns


def show_data_report(report: DataReport[Any]) -> None:
    """What was read, before anything is done with it."""
    sets = report.to_dict()
    _show_reading("Training data", sets["train"], sets.get("held_out") or 0)
    if sets.get("valid"):
        _show_reading("Validation data", sets["valid"])


def _show_reading(title: str, read: Mapping[str, Any], held_out: int = 0) -> None:
    """Files, what was not read or dropped and where, then every single figure."""
    files = read.get("files", [])
    root = _root(file["path"] for file in files)
    table = _table(f"{title}, in {root}" if root else title, "", "", "", right=[1])
    for file in files[:FILES]:
        table.add_row(plain(file["path"].removeprefix(root)), f"{_count(file):,}", plain(str(file.get("format", ""))))
    if rest := files[FILES:]:
        table.add_row(f"{len(rest):,} more files", f"{sum(map(_count, rest)):,}", "")
    table.add_section()
    for why, tally in read.get("skipped_files", {}).items():
        table.add_row(f"not read: {why}", "", plain(f"{tally['count']:,} of the files, the first: {tally['first'][0]}"))
    for why, tally in sorted(read.get("dropped", {}).items(), key=lambda item: -item[1]["count"]):
        table.add_row(f"dropped: {why}", f"{tally['count']:,}", plain(_places(tally, root)))
    table.add_section()
    for name, value in read.items():
        if isinstance(value, int) and not isinstance(value, bool):
            about = _lengths(read.get("words", {})) if name == "kept" else ""
            table.add_row(name.replace("_", " "), f"{value:,}", about, style="bold" if name == "kept" else None)
    if held_out:
        table.add_row("of these for validation", f"{held_out:,}", "")
    console.print(table)
    for note in read.get("notes", ()):
        say(note)


def _count(file: Mapping[str, Any]) -> int:
    """How many were found in a file, whatever they are."""
    return next((value for value in file.values() if isinstance(value, int)), 0)


def _table(title: str, *headers: str, right: Sequence[int] = ()) -> Table:
    """A table with some columns to the right; nothing is cut off, however narrow the screen."""
    columns = [
        Column(header, overflow="fold", justify="right" if place in right else "left")
        for place, header in enumerate(headers)
    ]
    return Table(*columns, title=plain(title), title_justify="left", box=box.SIMPLE)


def _root(paths: Iterable[str]) -> str:
    """The folder that all paths begin with, its slash included."""
    folders = {os.path.dirname(path) for path in paths}
    try:
        root = os.path.commonpath(folders) if folders else ""
    except ValueError:  # absolute ones and relative ones
        return ""
    return f"{root.rstrip('/')}/" if root else ""


def _places(tally: Mapping[str, Any], root: str) -> str:
    named = ", ".join(place.removeprefix(root) for place in tally["first"][:PLACES])
    return named + (", …" if tally["count"] > PLACES else "")


def _lengths(words: Mapping[str, Mapping[str, float]]) -> str:
    return "\n".join(f"{side}: {said['mean']:.1f} words, longest {said['longest']:,}" for side, said in words.items())


def show_scores(title: str, sets: Mapping[str, Sequence[Score]]) -> None:
    """Scores of several sets, each with its signature once below; many scores stand one below the other."""
    metrics = [score.metric for score in next(iter(sets.values()))]
    signatures = {score.metric: score.signature for scores in sets.values() for score in scores if score.signature}
    rows: dict[str, Sequence[Score]] = dict(sets)
    headers = metrics
    if len(metrics) > MOST_ACROSS:
        headers, rows = list(sets), dict(zip(metrics, zip(*sets.values(), strict=True), strict=True))
    table = _table(title, "", *headers, right=range(1, 1 + len(headers)))
    for name, row in rows.items():
        table.add_row(plain(name), *map(_figure, row))
    console.print(table)
    for metric, signature in signatures.items():
        say(f"{metric}: {signature}", "dim")


def _figure(score: Score) -> str:
    figure = f"{score.value:.2f}" if abs(score.value) >= 1 else f"{score.value:.4g}"
    return figure + ("" if score.interval is None else f" ± {score.interval:.1f}")


def _show_by_length(groups: Sequence[LengthScore], metric: str) -> None:
    """The score by the length of the source."""
    table = _table("By length of the source", "words", "pairs", metric, right=range(3))
    for group in groups:
        table.add_row(group.label, f"{group.count:,}", f"{group.score:.2f}")
    console.print(table)


def show_samples(title: str, samples: Sequence[ScoredSample]) -> None:
    """Sentences with what was expected and what came out."""
    table = _table(title, "source", "output", "expected")
    for sample in samples:
        mark = "✓" if sample.exact else "✗"
        expected = "" if sample.exact else sample.reference
        table.add_row(plain(sample.source), plain(f"{mark} {sample.output}"), plain(expected, "dim"))
    console.print(table)


def show_evaluation(result: Evaluation, count: int, language: str) -> None:
    """What `heedful evaluate` says of a translator: scores, by length, calibration, the best and the worst."""
    show_scores(f"{len(result.samples):,} pairs", {"all": [*result.scores.values(), Score("exact %", result.exact)]})
    _show_by_length(result.by_length, result.scores[main_metric(language)].metric)
    errors = result.calibration
    confidence = f"{errors['confidence']:.1f} %" if "confidence" in errors else "none (the model was not taught it)"
    say(
        f"Calibration error against exact match, ten bins: of the confidence {confidence}, "
        f"of the model's own probability {errors['probability']:.1f} %"
    )
    if result.unfinished:
        warn(f"warning: {result.unfinished:,} outputs had not come to an end when their room did")
    best = result.best[:count]
    worst = result.best[len(best) :][-count:][::-1] if count else []
    for title, some in (("Best", best), ("Worst", worst)):
        if some:
            show_samples(title, some)


def show_alignment(score: AlignmentScore, half: int) -> None:
    """How well a head's attention agrees with true alignments."""
    say(
        f"Alignment error rate: {score.error_rate:.1f} % by {score.head}, chosen on the first {half:,} pairs; "
        f"by a diagonal: {score.diagonal:.1f} %"
    )
