"""The page of a run, or of several side by side, from what lies in their folders."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...config import read_mapping
from ...core import Sinusoidal
from ...lens.report import AttentionMap, ReportData, Sample, ScoreRow
from ...lens.report import write_report as write_page
from ..bundle import Bundle, BundleError
from .looking import has_attention, look
from .prepare import READING
from .translator import Translator

LOOKS = 2  # sentences whose attention is drawn
REPORT = "report.html"


def write_report(
    folders: Sequence[str | Path], out: str | Path | None = None, *, language: str = "en", title: str | None = None
) -> Path:
    """One page: of the first run in full, and where there are more, all of them compared."""
    runs = [_Run(Path(folder)) for folder in folders]
    path = runs[0].folder / REPORT if out is None else Path(out)
    write_page(path, _data(runs, language, title))
    return path


class _Run:
    """What a folder says about its run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.translator = Translator.from_bundle(folder, Bundle.read(folder))
        if not (folder / "metrics.json").is_file():
            raise BundleError(f"{folder} holds no metrics.json; a report is made from a folder that training wrote")
        self.metrics: dict[str, Any] = read_mapping(folder / "metrics.json")

    @property
    def log(self) -> list[dict[str, Any]]:
        path = self.folder / "log.jsonl"
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []

    @property
    def reading(self) -> dict[str, Any] | None:
        path = self.folder / "data" / READING
        return read_mapping(path)["train"] if path.exists() else None

    @property
    def sets(self) -> dict[str, Any]:
        """Every set that was scored, by its name."""
        return {"validation": self.metrics["validation"], **self.metrics.get("sets", {})}

    def attention(self) -> list[AttentionMap]:
        """Maps of a few sentences by the last layer's heads."""
        if not has_attention(self.translator):
            return []
        samples = sorted(self.metrics["samples"], key=lambda sample: (-sample["score"], -len(sample["source"])))
        spoken = [sample for sample in samples if sample["output"].split()]
        return [self._map(sample["source"], sample["output"]) for sample in spoken[:LOOKS]]

    def _map(self, source: str, output: str) -> AttentionMap:
        seen = look(self.translator, source, output)
        last = max(head.layer for head in seen.weights if head.layer is not None)
        heads = [head for head in seen.weights if head.layer == last and head.head is not None]
        return AttentionMap(source, seen.source, seen.target, [seen.weights[head].tolist() for head in heads])

    def positions(self) -> Any:
        """The sinusoids, where the model uses them."""
        found = [part for part in self.translator.module.modules() if isinstance(part, Sinusoidal)]
        return found[0].table(100)[:, :128].tolist() if found else None


def _data(runs: Sequence[_Run], language: str, title: str | None) -> ReportData:
    first = runs[0]
    settings, metrics = first.translator.settings, first.metrics
    return ReportData(
        title=title or f"{', '.join(_names(runs))}: {settings.source} → {settings.target}",
        language=language,
        facts=_facts(first),
        scores=[row for name, entry in first.sets.items() for row in _rows(name, entry)],
        constructions=[(name, right, total) for name, (right, total) in metrics.get("constructions", {}).items()],
        by_length={name: run.metrics["validation"]["by_length"] for name, run in zip(_names(runs), runs, strict=True)},
        comparison=[_compared(run) for run in runs] if len(runs) > 1 else [],
        samples=[Sample(**sample) for sample in metrics["samples"]],
        attention=first.attention(),
        log=first.log,
        reading=first.reading,
        positions=first.positions(),
        notes=metrics.get("notes", []),
    )


def _names(runs: Sequence[_Run]) -> list[str]:
    """The folders' names, or their paths where names repeat."""
    names = [run.folder.resolve().name for run in runs]
    return names if len(set(names)) == len(names) else [str(run.folder) for run in runs]


def _facts(run: _Run) -> list[tuple[str, object]]:
    training = run.metrics["training"]
    return [
        ("model", _name(run)),
        ("parameters", run.metrics["parameters"]),
        ("pieces", run.translator.tokenizer.vocab_size),
        ("steps", training["steps"]),
        ("seconds", round(training["seconds"])),
        ("ended", training["ended"]),
    ]


def _rows(name: str, entry: dict[str, Any]) -> list[ScoreRow]:
    rows = [ScoreRow(name, "exact match", entry["exact"])]
    for score in entry["scores"].values():
        value, around = score["value"], score["interval"]
        interval = None if around is None else (max(0.0, value - around), min(100.0, value + around))
        rows.append(ScoreRow(name, score["metric"], value, interval, score["signature"]))
    return rows


def _name(run: _Run) -> str:
    attention = getattr(run.translator.config, "attention", None)
    return run.translator.config.family + ("" if attention is None else f", attention {attention}")


def _compared(run: _Run) -> dict[str, object]:
    validation = run.metrics["validation"]
    row: dict[str, object] = {
        "run": run.folder.resolve().name,
        "model": _name(run),
        "parameters": run.metrics["parameters"],
    }
    row |= {score["metric"]: round(score["value"], 2) for score in validation["scores"].values()}
    row |= {name: round(entry["exact"], 2) for name, entry in run.metrics.get("sets", {}).items()}
    if "alignment" in run.metrics:
        row["alignment error"] = round(run.metrics["alignment"]["error_rate"], 1)
    return row | {"steps": run.metrics["training"]["steps"], "seconds": run.metrics["training"]["seconds"]}
