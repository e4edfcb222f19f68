"""The report of a run: one self-contained HTML file, drawn by the same scripts as the look page."""

from pathlib import Path

from ...files import write_text
from ..page.rendering import render as render_page
from .data import (
    AttentionMap,
    Confusion,
    Continuation,
    CurveChart,
    ForecastPlot,
    ReportData,
    ScoredSample,
    ScoreRow,
    SeenImage,
)
from .document import report_document

__all__ = [
    "AttentionMap",
    "Confusion",
    "Continuation",
    "CurveChart",
    "ForecastPlot",
    "ReportData",
    "ScoreRow",
    "ScoredSample",
    "SeenImage",
    "render",
    "write_report",
]


def write_report(path: str | Path, data: ReportData) -> Path:
    """Write the report as one file. The same data gives the same bytes."""
    path = Path(path)
    write_text(path, render(data))
    return path


def render(data: ReportData) -> str:
    """Render the report as a page that opens in the data's language and can be switched to the other one."""
    return render_page(report_document(data), page="report")
