"""Tables and results that commands print."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich import box
from rich.table import Column, Table

from ..lens.report import Confusion, ScoredSample
from ..lens.report.document import frequent_mistakes
from ..tasks.run import DataReport
from ..tasks.scoring import Score, main_metric
from ..tasks.translation.inspection import AlignmentScore
from ..tasks.translation.task import Evaluation
from .console import console, plain, say, warn
from .language import translate

MAX_FILES = 8  # listed by name; a folder may hold thousands
MAX_PLACES = 3  # listed for each reason
MAX_COLUMNS = 4  # of scores, in 80 characters


def show_data_report(report: DataReport[Any]) -> None:
    """Print what was read for training and validation."""
    sets = report.to_dict()
    _show_reading("Training data", sets["train"], sets.get("held_out") or 0)
    if sets.get("valid"):
        _show_reading("Validation data", sets["valid"])


def _show_reading(title: str, read: Mapping[str, Any], held_out: int = 0) -> None:
    """Print the files, what was skipped or dropped and where, and all counts."""
    files = read.get("files", [])
    root = _root(file["path"] for file in files)
    table = _table(f"{title}, in {root}" if root else title, "", "", "", right=[1])
    for file in files[:MAX_FILES]:
        table.add_row(
            plain(file["path"].removeprefix(root)), f"{_count(file):,}", plain(translate(str(file.get("format", ""))))
        )
    if rest := files[MAX_FILES:]:
        table.add_row(translate(f"{len(rest):,} more files"), f"{sum(map(_count, rest)):,}", "")
    table.add_section()
    for reason, tally in read.get("skipped_files", {}).items():
        first = f"{tally['count']:,} files, the first: {tally['first'][0]}"
        table.add_row(translate(f"not read: {reason}"), "", plain(translate(first)))
    for reason, tally in sorted(read.get("dropped", {}).items(), key=lambda item: -item[1]["count"]):
        places = ", ".join(place.removeprefix(root) for place in tally["first"][:MAX_PLACES])
        more = ", …" if tally["count"] > MAX_PLACES else ""
        table.add_row(translate(f"dropped: {reason}"), f"{tally['count']:,}", plain(places + more))
    table.add_section()
    for name, value in read.items():
        if isinstance(value, int) and not isinstance(value, bool):
            lengths = read.get("words", {}) if name == "kept" else {}
            details = "\n".join(
                translate(f"{side}: {length['mean']:.1f} words, longest {length['longest']:,}")
                for side, length in lengths.items()
            )
            label = translate(name.replace("_", " "))
            table.add_row(label, f"{value:,}", details, style="bold" if name == "kept" else None)
    if held_out:
        table.add_row(translate("of these for validation"), f"{held_out:,}", "")
    console.print(table)
    for note in read.get("notes", ()):
        say(note)
    for warning in read.get("warnings", ()):
        warn(f"warning: {warning}")


def _count(file: Mapping[str, Any]) -> int:
    """Return the number of examples that were read from a file."""
    return next((value for value in file.values() if isinstance(value, int)), 0)


def _table(title: str, *headers: str, right: Sequence[int] = ()) -> Table:
    """Return a table with some columns aligned right, its title and headers translated; cells are never cut."""
    columns = [
        Column(translate(header), overflow="fold", justify="right" if place in right else "left")
        for place, header in enumerate(headers)
    ]
    return Table(*columns, title=plain(translate(title)), title_justify="left", box=box.SIMPLE)


def _root(paths: Iterable[str]) -> str:
    """Return the folder that all paths are in, with a slash, or an empty string."""
    folders = {os.path.dirname(path) for path in paths}
    try:
        root = os.path.commonpath(folders) if folders else ""
    except ValueError:  # some are absolute, some relative
        return ""
    return f"{root.rstrip('/')}/" if root else ""


def show_scores(title: str, sets: Mapping[str, Sequence[Score]]) -> None:
    """Print the scores of several data sets, transposed if there are many, and the signatures of the metrics."""
    metrics = [score.metric for score in next(iter(sets.values()))]
    signatures = {score.metric: score.signature for scores in sets.values() for score in scores if score.signature}
    rows: dict[str, Sequence[Score]] = dict(sets)
    headers = metrics
    if len(metrics) > MAX_COLUMNS:
        headers, rows = list(sets), dict(zip(metrics, zip(*sets.values(), strict=True), strict=True))
    table = _table(title, "", *headers, right=range(1, 1 + len(headers)))
    for name, row in rows.items():
        table.add_row(plain(translate(name)), *map(_format, row))
    console.print(table)
    for metric, signature in signatures.items():
        say(f"{translate(metric)}: {translate(signature)}", "dim")


def _format(score: Score) -> str:
    value = f"{score.value:.2f}" if abs(score.value) >= 1 else f"{score.value:.4g}"
    return value + ("" if score.interval is None else f" ± {score.interval:.1f}")


def show_samples(title: str, samples: Sequence[ScoredSample]) -> None:
    """Print sources with outputs and, where they differ, the expected texts."""
    table = _table(title, "source", "output", "expected")
    for sample in samples:
        mark = "✓" if sample.exact else "✗"
        expected = "" if sample.exact else sample.reference
        table.add_row(plain(sample.source), plain(f"{mark} {sample.output}"), plain(expected, "dim"))
    console.print(table)


def refused_note(results: Mapping[str, Any]) -> str:
    """Return what a title says of examples that were refused; nothing if there were none."""
    refused = results.get("refused")
    return f" ({refused['count']:,} of {refused['of']:,} refused)" if refused else ""


def show_evaluation(result: Evaluation, n_samples: int, language: str, note: str = "") -> None:
    """Print the evaluation of a translator: scores, scores by length, calibration, best and worst samples."""
    show_scores(
        f"{len(result.samples):,} pairs{note}", {"all": [*result.scores.values(), Score("exact %", result.exact)]}
    )
    metric = result.scores[main_metric(language)].metric
    table = _table("By length of the source", "words", "pairs", metric, right=range(3))
    for label, count, score in result.by_length:
        table.add_row(label, f"{count:,}", f"{score:.2f}")
    console.print(table)
    errors = result.calibration
    confidence = f"{errors['confidence']:.1f} %" if "confidence" in errors else "none (the model is not calibrated)"
    say(
        f"Calibration error against exact match (ten bins): confidence {confidence}, "
        f"raw probability {errors['probability']:.1f} %"
    )
    show_unfinished(result.unfinished, len(result.samples))
    ranked = sorted(result.samples, key=lambda sample: -sample.score)
    best = ranked[:n_samples]
    worst = ranked[len(best) :][-n_samples:][::-1] if n_samples else []
    for title, samples in (("Best", best), ("Worst", worst)):
        if samples:
            show_samples(title, samples)


def show_classes(results: Mapping[str, Any]) -> None:
    """Print the scores of each class, and which class is most often taken for which."""
    table = _table("By class", "class", "count", "precision", "recall", "F1", right=range(1, 5))
    for row in results["classes"]:
        shares = (f"{row[key]:.1f}" for key in ("precision", "recall", "f1"))
        table.add_row(plain(row["label"]), f"{row['n']:,}", *shares)
    console.print(table)
    table = _table("The most frequent mistakes", "class", "taken for", "count", right=[2])
    for mistake in frequent_mistakes(Confusion(results["labels"], results["confusion"])):
        table.add_row(*map(plain, mistake))
    console.print(table)


def show_unfinished(unfinished: int, n: int) -> None:
    """Print how many answers are cut, as a warning if there are any."""
    sentence = f"{unfinished:,} of {n:,} answers were cut at their length limit"
    warn(f"warning: {sentence} (generation.max_new_tokens)") if unfinished else say(sentence)


def show_alignment(score: AlignmentScore, half: int) -> None:
    """Print how well a head's attention agrees with the reference alignments."""
    say(
        f"Alignment error rate: {score.error_rate:.1f} % ({score.head}, chosen on the first {half:,} pairs); "
        f"of the diagonal: {score.diagonal:.1f} %"
    )
