"""How good a translator is on pairs it has not seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...lens.report import Sample
from ..scoring import LengthScore, Score, by_length, corpus_scores, exact_share, sentence_score
from .translator import Translator


@dataclass(frozen=True)
class Evaluation:
    """Scores of a set of pairs; the score of a sample is chrF.

    `exact` is the share, in percent, of outputs that are an accepted answer.
    """

    scores: dict[str, Score]
    exact: float
    by_length: list[LengthScore]
    samples: list[Sample]
    unfinished: int

    @property
    def best(self) -> list[Sample]:
        """From the best sentence to the worst."""
        return sorted(self.samples, key=lambda sample: -sample.score)

    def to_dict(self) -> dict[str, Any]:
        """For metrics.json: everything but the samples."""
        return {
            "pairs": len(self.samples),
            "scores": {name: score.to_dict() for name, score in self.scores.items()},
            "exact": self.exact,
            "by_length": [[group.label, group.count, group.score] for group in self.by_length],
            "unfinished": self.unfinished,
        }


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    accepted: Sequence[Sequence[str]] | None = None,
    bootstrap: int = 1000,
    **generation: Any,
) -> Evaluation:
    """Translate the sources and compare. `accepted` lists every right answer where a reference is only one of them."""
    language = translator.settings.target
    answers = translator.translate(sources, **generation)
    outputs = [answer.text for answer in answers]
    right = [[reference] for reference in references] if accepted is None else accepted
    return Evaluation(
        scores=corpus_scores(outputs, references, language, bootstrap=bootstrap),
        exact=exact_share(outputs, right),
        by_length=by_length(sources, outputs, references, language),
        samples=[
            Sample(source, reference, output, sentence_score(output, reference), output in answers)
            for source, reference, output, answers in zip(sources, references, outputs, right, strict=True)
        ],
        unfinished=sum(not answer.finished for answer in answers),
    )
