"""The report of a run: one HTML file that needs nothing else, in English or Korean."""

from .data import AttentionMap, ReportData, Sample, ScoreRow
from .page import render, write_report

__all__ = ["AttentionMap", "ReportData", "Sample", "ScoreRow", "render", "write_report"]
