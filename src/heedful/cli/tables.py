"""Tables that several verbs print."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

from rich import box
from rich.table import Column, Table

from ..data.pairs import Lengths, Reading, Tally
from ..lens.report import Sample
from ..tasks.scoring import LengthScore, Score
from ..tasks.translation.prepare import Readings
from .words import console, plain, say

FILES = 8  # listed by name; a folder may hold thousands
PLACES = 3


def show_readings(readings: Readings) -> None:
    """What was read, before anything is done with it."""
    _show_reading("Training pairs", readings.train, readings.held_out)
    if readings.valid is not None:
        _show_reading("Validation pairs", readings.valid)


def _show_reading(title: str, reading: Reading, held_out: int = 0) -> None:
    root = _root(file.path for file in reading.files)
    table = _table(f"{title}, in {root}" if root else title, "", "pairs", "")
    table.columns[1].justify = "right"
    for file in reading.files[:FILES]:
        table.add_row(plain(file.path.removeprefix(root)), f"{file.pairs:,}", file.format)
    if rest := reading.files[FILES:]:
        table.add_row(f"{len(rest):,} more files", f"{sum(file.pairs for file in rest):,}", "")
    table.add_section()
    for why, tally in reading.skipped.items():
        table.add_row(f"not read: {why}", "", plain(f"{tally.count:,} of the files, the first: {tally.places[0]}"))
    for why, tally in sorted(reading.dropped.items(), key=lambda item: -item[1].count):
        table.add_row(f"dropped: {why}", f"{tally.count:,}", plain(_places(tally, root)))
    table.add_section()
    table.add_row("kept", f"{reading.kept:,}", _lengths(reading.words), style="bold")
    if held_out:
        table.add_row("of these for validation", f"{held_out:,}", "")
    console.print(table)


def _table(title: str, *headers: str) -> Table:
    columns = [Column(header, overflow="fold") for header in headers]  # nothing is cut off, however narrow the screen
    return Table(*columns, title=plain(title), title_justify="left", box=box.SIMPLE)


def _root(paths: Iterable[str]) -> str:
    """The folder that all paths begin with, its slash included."""
    folders = {os.path.dirname(path) for path in paths}
    try:
        root = os.path.commonpath(folders) if folders else ""
    except ValueError:  # absolute ones and relative ones
        return ""
    return f"{root.rstrip('/')}/" if root else ""


def _places(tally: Tally, root: str) -> str:
    named = ", ".join(place.removeprefix(root) for place in tally.places[:PLACES])
    return named + (", …" if tally.count > PLACES else "")


def _lengths(words: Mapping[str, Lengths]) -> str:
    return "\n".join(f"{side}: {found.mean:.1f} words, longest {found.longest:,}" for side, found in words.items())


def show_scores(title: str, sets: Mapping[str, Sequence[Score]]) -> None:
    """Scores of several sets, each with its signature once below."""
    table = _table(title, "", *[score.metric for score in next(iter(sets.values()))])
    signatures = {score.metric: score.signature for scores in sets.values() for score in scores if score.signature}
    for name, scores in sets.items():
        table.add_row(plain(name), *[_figure(score) for score in scores])
    for column in table.columns[1:]:
        column.justify = "right"
    console.print(table)
    for metric, signature in signatures.items():
        say(f"{metric}: {signature}", "dim")


def _figure(score: Score) -> str:
    return f"{score.value:.2f}" + ("" if score.interval is None else f" ± {score.interval:.1f}")


def show_by_length(groups: Sequence[LengthScore], metric: str) -> None:
    """The score by the length of the source."""
    table = _table("By length of the source", "words", "pairs", metric)
    for group in groups:
        table.add_row(group.label, f"{group.count:,}", f"{group.score:.2f}")
    for column in table.columns:
        column.justify = "right"
    console.print(table)


def show_samples(title: str, samples: Sequence[Sample]) -> None:
    """Sentences with what was expected and what came out."""
    table = _table(title, "source", "output", "expected")
    for sample in samples:
        mark = "✓" if sample.exact else "✗"
        expected = "" if sample.exact else sample.reference
        table.add_row(plain(sample.source), plain(f"{mark} {sample.output}"), plain(expected, "dim"))
    console.print(table)
