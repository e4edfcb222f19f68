"""ROUGE: how much of a reference an output brings, and how much else: F1 of tokens, of pairs of them, of their order.

A token is a run of letters and digits of any script, in lower case; a character of a script that puts no spaces
between words (Chinese, Japanese, Thai, …) is a token of its own. Nothing is stemmed. For English that is what the
usual tools count; unlike them, no script is left out. With the unit "characters" every letter and digit is a token:
a wrong particle of Korean then costs its own syllables, not the whole word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np

from .scoring import SEED, Score

Unit = Literal["words", "characters"]
METRICS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
HANGUL = re.compile(r"[가-힣]")
# Thai, Lao, Burmese, Khmer, kana, Han: where one word ends and the next begins is not written.
SOLID = re.compile(
    r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u3096\u30a1-\u30fe\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)


def tokens(text: str, unit: Unit = "words") -> list[str]:
    """What is counted of a text."""
    kept = "".join(map(_kept, unicodedata.normalize("NFC", text).lower()))
    if unit == "characters":
        return [character for character in kept if character != " "]
    return SOLID.sub(r" \1 ", kept).split()


@cache
def _kept(character: str) -> str:
    """Letters, the marks on them and digits; all else separates."""
    return character if unicodedata.category(character)[0] in "LMN" else " "


def rouge(output: str, reference: str, unit: Unit = "words") -> dict[str, float]:
    """The F1 of one output, from 0 to 1: "rouge1", "rouge2", "rougeL".

    ROUGE-L is of the longest common subsequence of the two texts as wholes. Where neither has a token (both are "?"),
    the score is 1 if they are the same.
    """
    ours, theirs = tokens(output, unit), tokens(reference, unit)
    if not ours and not theirs:
        return dict.fromkeys(METRICS, float(output.strip() == reference.strip()))
    return {
        "rouge1": _overlap(ours, theirs, 1),
        "rouge2": _overlap(ours, theirs, 2),
        "rougeL": _f1(common(ours, theirs), len(ours), len(theirs)),
    }


def rouge_scores(
    outputs: Sequence[str], references: Sequence[str], *, unit: Unit = "words", bootstrap: int = 0
) -> dict[str, Score]:
    """The means over all outputs, in percent; with `bootstrap` resamplings, the 95 % interval too."""
    each = [rouge(output, reference, unit) for output, reference in zip(outputs, references, strict=True)]
    drawn = f"|bs:{bootstrap}|seed:{SEED}" if bootstrap > 1 else ""
    signature = f"f1|mean|tok:{unit}|script:all|case:lc|stem:no{drawn}"
    scores = {}
    for key, metric in METRICS.items():
        values = 100.0 * np.array([one[key] for one in each])
        interval = _interval(values, bootstrap) if bootstrap > 1 and len(values) else None
        named = metric if unit == "words" else f"{metric} ({unit})"
        scores[key] = Score(named, float(values.mean()) if len(values) else 0.0, interval, signature)
    return scores


def mostly_hangul(texts: Sequence[str]) -> bool:
    """Whether most letters and digits of some texts are Korean."""
    counted = sum(len(tokens(text, "characters")) for text in texts)
    return 2 * sum(len(HANGUL.findall(unicodedata.normalize("NFC", text))) for text in texts) > counted


def common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence.

    The rows of the usual table, a bit a column: a 0 stands where the length grows. Each token of `first` makes the
    next row from the last with one addition (Hyyrö 2004).
    """
    where: dict[str, int] = {}
    for place, token in enumerate(second):
        where[token] = where.get(token, 0) | 1 << place
    whole = (1 << len(second)) - 1
    row = whole
    for token in first:
        met = row & where.get(token, 0)
        row = ((row + met) | (row - met)) & whole
    return len(second) - row.bit_count()


def _overlap(ours: Sequence[str], theirs: Sequence[str], n: int) -> float:
    """F1 of the runs of n tokens, each counted as often as both texts have it."""
    first, second = (Counter(zip(*(row[start:] for start in range(n)), strict=False)) for row in (ours, theirs))
    return _f1((first & second).total(), first.total(), second.total())


def _f1(shared: int, n_ours: int, n_theirs: int) -> float:
    return 2 * shared / (n_ours + n_theirs) if shared else 0.0


def _interval(values: np.ndarray, bootstrap: int) -> float:
    """Half of what 95 % of the resampled means lie within, drawn as for the other scores."""
    random = np.random.default_rng(SEED)
    ranked = sorted(float(values[random.choice(len(values), len(values))].mean()) for _ in range(bootstrap))
    outside = bootstrap // 40
    return 0.5 * (ranked[bootstrap - outside - 1] - ranked[outside])
