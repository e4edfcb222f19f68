"""How good an output is: corpus scores with their signatures and intervals, scores of a sentence, scores by length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

# Languages that write no spaces between words need their own cutting for BLEU; chrF needs none.
BLEU_CUTTING = {"zh": "zh", "ja": "char", "th": "char"}
SEED = 12345  # sacreBLEU's
LENGTH_EDGES = (5, 10, 15, 20, 30, 50)


@dataclass(frozen=True)
class Score:
    """A figure that can be compared: its signature says how it was computed. `interval` is ± 95 %, in points."""

    metric: str
    value: float
    interval: float | None = None
    signature: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        around = "" if self.interval is None else f" ± {self.interval:.1f}"
        return f"{self.metric} {self.value:.2f}{around}"


@dataclass(frozen=True)
class LengthScore:
    """The score of the sentences whose source has a number of words within a range."""

    label: str
    count: int
    score: float


def corpus_scores(
    outputs: Sequence[str], references: Sequence[str], language: str, *, bootstrap: int = 0
) -> dict[str, Score]:
    """BLEU and chrF of a corpus, cased; with `bootstrap` resamplings, the 95 % interval too."""
    cutting = BLEU_CUTTING.get(_main_code(language), "13a")
    metrics = {"bleu": ("BLEU", BLEU(tokenize=cutting, force=True)), "chrf": ("chrF2", CHRF())}
    scores = {}
    for key, (name, metric) in metrics.items():
        value = metric.corpus_score(list(outputs), [list(references)]).score
        interval = _interval(metric, outputs, references, bootstrap) if bootstrap > 1 else None
        scores[key] = Score(name, float(value), interval, str(metric.get_signature()))
    return scores


def _interval(metric: Any, outputs: Sequence[str], references: Sequence[str], bootstrap: int) -> float:
    """Half of what 95 % of the resampled scores lie within: sacreBLEU's figure, its samples drawn one at a time.

    The library itself draws all of them at once, which takes gigabytes for a large set, and stops at a sample
    that scores 0.
    """
    metric.n_bootstrap, metric.seed = bootstrap, str(SEED)  # for the signature
    statistics = np.array(metric._extract_corpus_statistics(list(outputs), [list(references)]), dtype=np.float32)
    random = np.random.default_rng(SEED)
    samples = (statistics[random.choice(len(statistics), len(statistics))].sum(0) for _ in range(bootstrap))
    ranked = sorted(float(metric._compute_score_from_stats(sample).score) for sample in samples)
    outside = bootstrap // 40
    return 0.5 * (ranked[bootstrap - outside - 1] - ranked[outside])


def main_metric(language: str) -> str:
    """What a model is chosen by: BLEU, or chrF where words carry many endings."""
    return "chrf" if _main_code(language) == "ko" else "bleu"


def _main_code(language: str) -> str:
    """zh of zh-CN: how a language is written does not hang on where."""
    return language.split("-")[0].lower()


def sentence_score(output: str, reference: str) -> float:
    """chrF of one sentence: BLEU means little below a corpus."""
    return float(CHRF().sentence_score(output, [reference]).score)


def exact_share(outputs: Sequence[str], accepted: Sequence[Sequence[str]]) -> float:
    """The share of outputs, in percent, that are one of their accepted answers."""
    hits = sum(output in answers for output, answers in zip(outputs, accepted, strict=True))
    return 100.0 * hits / max(1, len(outputs))


def calibration_error(probabilities: Sequence[float], right: Sequence[bool], bins: int = 10) -> float:
    """How far, in percent, stated probabilities lie from what came true: the expected calibration error.

    The answers are put into `bins` groups of equal size by their probability; the distance between a group's mean
    probability and its share of right answers is averaged over all answers.
    """
    order = np.argsort(np.asarray(probabilities, dtype=np.float64), kind="stable")
    stated, true = np.asarray(probabilities, dtype=np.float64)[order], np.asarray(right, dtype=np.float64)[order]
    groups = np.array_split(stated - true, min(bins, max(1, len(order))))
    return 100.0 * sum(abs(float(group.sum())) for group in groups) / max(1, len(order))


def by_length(
    sources: Sequence[str], outputs: Sequence[str], references: Sequence[str], language: str
) -> list[LengthScore]:
    """The main score over sentences grouped by the words of their source; groups without sentences are left out."""
    groups: dict[int, list[int]] = {}
    for index, source in enumerate(sources):
        words = len(source.split())
        groups.setdefault(sum(words > edge for edge in LENGTH_EDGES), []).append(index)
    metric = main_metric(language)
    found = []
    for group, members in sorted(groups.items()):
        scores = corpus_scores([outputs[i] for i in members], [references[i] for i in members], language)
        found.append(LengthScore(_label(group), len(members), scores[metric].value))
    return found


def _label(group: int) -> str:
    if group == len(LENGTH_EDGES):
        return f"{LENGTH_EDGES[-1] + 1}+"
    return f"{LENGTH_EDGES[group - 1] + 1 if group else 1}-{LENGTH_EDGES[group]}"
