"""What people read of a run: the model card in its folder, and the report of one run or of several side by side."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ...config import read_mapping
from ...core import Sinusoidal
from ...lens.report import ReportData, ScoreRow
from ...lens.report import write_report as write_page
from ..bundle import Bundle, BundleError
from .folder import METRICS, READING, REPORT
from .task import DATA, AnyTask


def write_report(
    task: AnyTask,
    folders: Sequence[str | Path],
    out: str | Path | None = None,
    *,
    language: str = "en",
    title: str | None = None,
) -> Path:
    """One page: of the first run in full, and where there are more, all of them compared."""
    runs = [FinishedRun(task, Path(folder)) for folder in folders]
    path = runs[0].folder / REPORT if out is None else Path(out)
    write_page(path, _data(task, runs, language, title))
    return path


class FinishedRun:
    """What a folder says about its run."""

    def __init__(self, task: AnyTask, folder: Path) -> None:
        self.folder = folder
        bundle = Bundle.read(folder)
        if bundle.task != task.name:
            raise BundleError(f"{folder} is a run of {bundle.task}, not of {task.name}, and cannot stand on one page")
        self.predictor = task.predictor_class.from_bundle(folder, bundle)
        if not (folder / METRICS).is_file():
            raise BundleError(f"{folder} holds no {METRICS}; a report is made from a folder that training wrote")
        self.metrics: dict[str, Any] = read_mapping(folder / METRICS)

    @property
    def log(self) -> list[dict[str, Any]]:
        path = self.folder / "log.jsonl"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    @property
    def reading(self) -> dict[str, Any] | None:
        path = self.folder / DATA / READING
        return read_mapping(path).get("train") if path.exists() else None

    @property
    def sets(self) -> dict[str, Any]:
        """Every set that was scored, by its name."""
        return {"validation": self.metrics["validation"], **self.metrics.get("sets", {})}

    @property
    def model(self) -> str:
        """In a few words."""
        attention = getattr(self.predictor.config, "attention", None)
        return self.predictor.config.family + ("" if attention is None else f", attention {attention}")

    def positions(self) -> Any:
        """The sinusoids, where the model uses them."""
        found = [part for part in self.predictor.module.modules() if isinstance(part, Sinusoidal)]
        return found[0].table(100)[:, :128].tolist() if found else None


def _data(task: AnyTask, runs: Sequence[FinishedRun], language: str, title: str | None) -> ReportData:
    first = runs[0]
    names = _names(runs)
    common = {
        "facts": _facts(first),
        "scores": [row for name, entry in first.sets.items() for row in _rows(name, entry)],
        "by_length": {
            name: run.metrics["validation"]["by_length"]
            for name, run in zip(names, runs, strict=True)
            if "by_length" in run.metrics["validation"]
        },
        "comparison": [_compared(run) for run in runs] if len(runs) > 1 else [],
        "log": first.log,
        "reading": first.reading,
        "positions": first.positions(),
        "notes": first.metrics.get("notes", []),
    }
    sections = task.report_sections(first.predictor, first.metrics, first.folder)
    return ReportData(
        title=title or f"{', '.join(names)}: {task.title(first.predictor)}", language=language, **{**common, **sections}
    )


def _names(runs: Sequence[FinishedRun]) -> list[str]:
    """The folders' names, or their paths where names repeat."""
    names = [run.folder.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.folder) for run in runs]


def _facts(run: FinishedRun) -> list[tuple[str, object]]:
    training, tokenizer = run.metrics["training"], run.predictor.tokenizer
    return [
        ("model", run.model),
        ("parameters", run.metrics["parameters"]),
        *([] if tokenizer is None else [("pieces", tokenizer.vocab_size)]),
        ("steps", training["steps"]),
        ("seconds", round(training["seconds"])),
        ("ended", training["ended"]),
    ]


def _rows(name: str, entry: dict[str, Any]) -> list[ScoreRow]:
    return [
        ScoreRow(name, score["metric"], score["value"], _interval(score), score["signature"])
        for score in entry["scores"].values()
    ]


def _interval(score: dict[str, Any]) -> tuple[float, float] | None:
    value, around = score["value"], score["interval"]
    return None if around is None else (max(0.0, value - around), min(100.0, value + around))


def _compared(run: FinishedRun) -> dict[str, object]:
    row: dict[str, object] = {
        "run": run.folder.resolve().name,
        "model": run.model,
        "parameters": run.metrics["parameters"],
    }
    row |= {score["metric"]: round(score["value"], 4) for score in run.metrics["validation"]["scores"].values()}
    row |= {
        f"{name} {score['metric']}": round(score["value"], 2)
        for name, entry in run.metrics.get("sets", {}).items()
        for score in list(entry["scores"].values())[:1]
    }
    return row | {"steps": run.metrics["training"]["steps"], "seconds": run.metrics["training"]["seconds"]}


def model_card(task: AnyTask, predictor: Any, metrics: Mapping[str, Any], out: Path) -> str:
    """README.md for a bundle's folder."""
    validation, training = metrics["validation"], metrics["training"]
    scores = "\n".join(
        f"| {score['metric']} | {score['value']:.4g}{_around(score)} | {_code(score['signature'])} |"
        for score in validation["scores"].values()
    )
    notes = "\n".join(task.card_notes(predictor, metrics))
    return f"""# {task.title(predictor)}

A model of the family `{predictor.config.family}` with {metrics["parameters"]:,} parameters, trained with Heedful.

```sh
heedful predict {out} …
```

```python
import heedful

heedful.load("{out}").predict([…])
```

## How good it is

On {validation["n"]:,} {task.example_name} for validation:

| score | value | signature |
|---|---|---|
{scores}

{notes}
The scores are of {task.example_name} like the training data; on others they will be worse. `report.html` shows more.

## How it was made

{training["steps"]:,} steps in {training["seconds"]:,.0f} s. It ended because {training["ended"]}.
The weights are {training["weights"]}.
`run.yaml` holds every setting and the names of the data files, `log.jsonl` the course of the training.
"""


def _around(score: Mapping[str, Any]) -> str:
    return "" if score["interval"] is None else f" ± {score['interval']:.1f}"


def _code(signature: str) -> str:
    """A bar would end the table's cell, even inside a code span."""
    return "`{}`".format(signature.replace("|", "\\|")) if signature else ""


def imported_card(model: Any, authors_card: str | None = None) -> str:
    """README.md for a model from elsewhere; `authors_card` is the file with its authors' own words."""
    parameters = sum(parameter.numel() for parameter in model.module.parameters())
    authors = f"Its authors' own words, licence included, are in {authors_card}.\n" if authors_card else ""
    return f"""# A model for {model.task}

A model of the family {model.config.family} with {parameters:,} parameters, imported as it was published.
{authors}
```python
import heedful

model = heedful.load("this folder")
model.predict([…])
```
"""
