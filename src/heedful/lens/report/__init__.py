"""The report of a run: one HTML file that needs nothing else, in English or Korean."""

from .data import AttentionMap, Confusion, Continuation, ForecastPlot, ReportData, Sample, ScoreRow, SeenImage
from .page import render, write_report

__all__ = [
    "AttentionMap",
    "Confusion",
    "Continuation",
    "ForecastPlot",
    "ReportData",
    "Sample",
    "ScoreRow",
    "SeenImage",
    "render",
    "write_report",
]
