"""A small report with every part, for tests of its document and of its page; and the document that a page holds."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from heedful.core import Sinusoidal
from heedful.lens.report import (
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


def full_report(language: str = "en", text: str = "") -> ReportData:
    """A report with every part, and `text` in every field that holds text."""
    third = 1 / 3
    log: list[dict[str, Any]] = [
        {"kind": "train", "step": step, "epoch": 0, "loss": 8 / step, "lr": 1e-4 * step, "time": 1.0, "note": text}
        for step in range(1, 9)
    ]
    log += [{"kind": "valid", "step": step, "loss": 9 / step, "bleu": 10.0 * step, text: 1.0} for step in (4, 8)]
    return ReportData(
        title=f"Report{text}",
        language=language,
        facts=[(f"model{text}", f"tiny{text}"), ("parameters", 12345)],
        scores=[ScoreRow(f"test{text}", f"BLEU{text}", 31.25, (30.5, 32.0), f"nrefs:1{text}")],
        constructions=[(f"tense{text}", 45, 60), ("polarity", 0, 0)],
        by_length={
            f"Transformer{text}": [(f"1–5{text}", 10, 90.0), ("6–10", 20, 60.0), ("11+", 5, 30.0)],
            "GRU": [(f"1–5{text}", 10, 80.0), ("11+", 5, 10.0)],
        },
        curves=[CurveChart(f"loss{text}", "step", {f"intact{text}": [(0, 2.5), (1, 1.5)], "bare": [(0, 3.0)]})],
        comparison=[{f"run{text}": f"a{text}", "bleu": 31.25}, {f"run{text}": "b", "time": "1:02"}],
        samples=[
            ScoredSample(f"원문 {n}{text}", f"the reference {n}{text}", f"the output {n}{text}", float(n), n == 9)
            for n in range(12)
        ],
        confusion=Confusion([f"cat{text}", f"dog{text}"], [[5, 1], [2, 7]]),
        continuations=[Continuation(f"ROMEO:{text}", f"What light{text}")],
        images=[
            SeenImage(
                f"seven.png{text}", b"png", [(f"7{text}", 0.9), ("1", 0.1)], f"7{text}", [[[0.5, 0.1], [0.2, 0.2]]]
            )
        ],
        forecasts=[
            ForecastPlot(
                f"price{text}", [1.0, 2.0, 4.0], [5.0], [4.5], {f"naive{text}": [4.0]}, [(0, 2), (1, 3)], [0.3, 0.7]
            )
        ],
        attention=[
            AttentionMap(f"heads{text}", [f"나는{text}", "간다"], [f"I{text}", "go", "."], [[[0.5, 0.5]] * 3] * 2),
            AttentionMap("one", ["a", "b", "c"], [text or "x"], [[third, third, third]], ["mean"]),
        ],
        log=log,
        reading={"pairs": 12, f"file{text}": text, "dropped": {f"empty{text}": {"count": 3, "first": [f"a:1{text}"]}}},
        positions=Sinusoidal(128).table(100),
        notes=[f"a note{text}"],
    )


def report_held(path: Path) -> dict[str, Any]:
    """The document in the page of a report."""
    found = re.search(r'id="document">(.*?)</script>', path.read_text("utf-8"), re.DOTALL)
    assert found
    document: dict[str, Any] = json.loads(found[1])
    return document
