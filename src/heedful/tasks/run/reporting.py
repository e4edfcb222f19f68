"""What people read about a run: the model card in its folder, and the report of one run or of several."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from ...config import read_mapping
from ...core import Sinusoidal
from ...lens.report import ReportData, ScoreRow
from ...lens.report import write_report as write_page
from ..bundle import Bundle, BundleError
from ..class_scores import escaped_markdown
from .data import DATA
from .folder import METRICS, READING, REPORT
from .task import AnyTask


def write_report(
    task: AnyTask,
    folders: Sequence[str | Path],
    out: str | Path | None = None,
    *,
    language: str = "en",
    title: str | None = None,
) -> Path:
    """Write a page about the run in the first folder, with a comparison where there are more; return its path."""
    runs = [FinishedRun(task, Path(folder)) for folder in folders]
    first = runs[0]
    names = [run.name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.folder) for run in runs]
    content = {
        "facts": first.facts(),
        "scores": first.score_rows(),
        "by_length": {
            name: run.validation["by_length"]
            for name, run in zip(names, runs, strict=True)
            if "by_length" in run.validation
        },
        "comparison": [run.comparison_row() for run in runs] if len(runs) > 1 else [],
        "log": first.log(),
        "reading": first.reading(),
        "positions": first.sinusoids(),
        "notes": [*task.verdicts(first.metrics), *first.metrics.get("notes", [])],
    }
    content |= task.report_sections(first.predictor, first.metrics, first.folder)
    path = first.folder / REPORT if out is None else Path(out)
    title = title or f"{', '.join(names)}: {task.title(first.predictor)}"
    write_page(path, ReportData(title=title, language=language, **content))
    return path


class FinishedRun:
    """The contents of a folder that training wrote."""

    def __init__(self, task: AnyTask, folder: Path) -> None:
        self.folder, self.name = folder, folder.resolve().name
        bundle = Bundle.read(folder)
        if bundle.task != task.name:
            raise BundleError(f"{folder} is a run of {bundle.task}, not of {task.name}; a page compares one task")
        self.predictor = task.predictor_class.from_bundle(folder, bundle)
        if not (folder / METRICS).is_file():
            raise BundleError(f"{folder} has no {METRICS}; a report needs a folder that training wrote")
        self.metrics: dict[str, Any] = read_mapping(folder / METRICS)
        self.training = _part(self.metrics, "training", {"steps", "seconds", "ended"}, folder / METRICS)
        self.test_sets: dict[str, Any] = self.metrics.get("sets", {})
        self.validation = _part(self.metrics, "validation", {"scores"}, folder / METRICS)
        sets = [_part(self.test_sets, name, {"scores"}, folder / METRICS) for name in self.test_sets]
        if "parameters" not in self.metrics:
            raise BundleError(f"{folder / METRICS} is not what training writes: it has no parameters")
        for scored in (self.validation, *sets):
            for name in scored["scores"]:
                _part(scored["scores"], name, {"value", "interval", "metric", "signature"}, folder / METRICS)
        attention = getattr(self.predictor.config, "attention", None)
        self.model = self.predictor.config.family + ("" if attention is None else f", attention {attention}")

    def log(self) -> list[dict[str, Any]]:
        """Return the rows of the log, without one that was cut while it was written."""
        path = self.folder / "log.jsonl"
        rows = []
        for line in path.read_text("utf-8", errors="replace").splitlines() if path.exists() else ():
            with suppress(ValueError):
                rows.append(json.loads(line))
        return [row for row in rows if isinstance(row, dict)]

    def reading(self) -> dict[str, Any] | None:
        path = self.folder / DATA / READING
        return read_mapping(path).get("train") if path.exists() else None

    def sinusoids(self) -> Any:
        """Return a table of the model's sinusoidal positions; None if it has none."""
        schemes = [part for part in self.predictor.module.modules() if isinstance(part, Sinusoidal)]
        return schemes[0].table(100)[:, :128].tolist() if schemes else None

    def facts(self) -> list[tuple[str, object]]:
        tokenizer = self.predictor.tokenizer
        return [
            ("model", self.model),
            ("parameters", self.metrics["parameters"]),
            *([] if tokenizer is None else [("pieces", tokenizer.vocab_size)]),
            ("steps", self.training["steps"]),
            ("seconds", round(self.training["seconds"])),
            ("ended", self.training["ended"]),
        ]

    def score_rows(self) -> list[ScoreRow]:
        """Return the scores of the validation data and of every test set, with their intervals."""
        rows = []
        for name, scored in {"validation": self.validation, **self.test_sets}.items():
            for score in scored["scores"].values():
                value, half = score["value"], score["interval"]
                interval = None if half is None else (max(0.0, value - half), min(100.0, value + half))
                rows.append(ScoreRow(name, score["metric"], value, interval, score["signature"]))
        return rows

    def comparison_row(self) -> dict[str, object]:
        """Return the scores of the validation data, and the first score of each test set."""
        return {
            "run": self.name,
            "model": self.model,
            "parameters": self.metrics["parameters"],
            **{score["metric"]: round(score["value"], 4) for score in self.validation["scores"].values()},
            **{
                f"{name} {score['metric']}": round(score["value"], 2)
                for name, scored in self.test_sets.items()
                for score in list(scored["scores"].values())[:1]
            },
            "steps": self.training["steps"],
            "seconds": self.training["seconds"],
        }


def _part(values: Mapping[str, Any], name: str, keys: set[str], path: Path) -> dict[str, Any]:
    """Return a part of a run's metrics; BundleError if it is missing, or lacks one of its keys."""
    part = values.get(name)
    if not isinstance(part, dict) or not keys <= part.keys():
        raise BundleError(f"{path} is not what training writes: it has no {name} with {', '.join(sorted(keys))}")
    return part


def model_card(task: AnyTask, predictor: Any, metrics: Mapping[str, Any], out: Path) -> str:
    """Return the README.md of a run's folder."""
    validation, training = metrics["validation"], metrics["training"]
    rows = []
    for score in validation["scores"].values():
        interval = "" if score["interval"] is None else f" ± {score['interval']:.1f}"
        signature = score["signature"].replace("|", "\\|")  # a bar would end the cell, even inside a code span
        metric = escaped_markdown(score["metric"])
        rows.append(f"| {metric} | {score['value']:.4g}{interval} | {f'`{signature}`' if signature else ''} |")
    scores = "\n".join(rows)
    notes = "\n".join([*map(escaped_markdown, task.verdicts(metrics)), *task.card_notes(predictor, metrics)])
    return f"""# {escaped_markdown(task.title(predictor))}

A model of the family `{predictor.config.family}` with {metrics["parameters"]:,} parameters, trained with Heedful.

```sh
heedful predict {out} …
```

```python
import heedful

heedful.load("{out}").predict([…])
```

## Scores

On {validation["n"]:,} {task.example_name} for validation:

| score | value | signature |
|---|---|---|
{scores}

{notes}
These {task.example_name} resemble the training data; on other data, expect lower scores. `report.html` shows more.

## Training

{training["steps"]:,} steps in {training["seconds"]:,.0f} s. It ended because {training["ended"]}.
The weights are {training["weights"]}.
`run.yaml` holds every setting and the names of the data files, `log.jsonl` the training log.
"""


def imported_card(model: Any, authors_card: str | None = None) -> str:
    """Return the README.md of an imported model; `authors_card` is the file that holds the authors' own card."""
    parameters = sum(parameter.numel() for parameter in model.module.parameters())
    authors = f"The authors' own card, with their license, is in {authors_card}.\n" if authors_card else ""
    return f"""# A model for {model.task}

A model of the family {model.config.family} with {parameters:,} parameters, imported without changes.
{authors}
```python
import heedful

model = heedful.load("this folder")
model.predict([…])
```
"""
