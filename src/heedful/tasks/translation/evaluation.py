"""How good a translator is on pairs it has not seen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...lens.report import Sample
from ..scoring import LengthScore, Score, by_length, calibration_error, corpus_scores, exact_share, sentence_score
from ..text_generator import Answer
from . import confidence
from .translator import Translator


@dataclass(frozen=True)
class Evaluation:
    """Scores of a set of pairs; the score of a sample is chrF.

    `exact` is the share, in percent, of outputs that are an accepted answer. `calibration` is how far from that, in
    percent, lie the model's own "probability" and its "confidence" (where it has one).
    """

    scores: dict[str, Score]
    exact: float
    by_length: list[LengthScore]
    samples: list[Sample]
    candidates: list[list[Answer]]
    calibration: dict[str, float]

    @property
    def answers(self) -> list[Answer]:
        """The best candidate of each."""
        return [best for best, *_ in self.candidates]

    @property
    def unfinished(self) -> int:
        """How many outputs had not come to an end when their room did."""
        return sum(not answer.finished for answer in self.answers)

    @property
    def right(self) -> list[bool]:
        """Which outputs are an accepted answer."""
        return [sample.exact for sample in self.samples]

    @property
    def best(self) -> list[Sample]:
        """From the best sentence to the worst."""
        return sorted(self.samples, key=lambda sample: -sample.score)

    def to_dict(self) -> dict[str, Any]:
        """For metrics.json: everything but the samples."""
        return {
            "n": len(self.samples),
            "scores": {
                "exact": Score("exact %", self.exact).to_dict(),
                **{name: score.to_dict() for name, score in self.scores.items()},
            },
            "by_length": [[group.label, group.count, group.score] for group in self.by_length],
            "calibration": self.calibration,
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
    candidates = translator.candidates(sources, **generation)
    answers = [best for best, *_ in candidates]
    outputs = [answer.text for answer in answers]
    right = [[reference] for reference in references] if accepted is None else accepted
    exact = [output in rights for output, rights in zip(outputs, right, strict=True)]
    return Evaluation(
        scores=corpus_scores(outputs, references, language, bootstrap=bootstrap),
        exact=exact_share(outputs, right),
        by_length=by_length(sources, outputs, references, language),
        samples=[
            Sample(source, reference, output, sentence_score(output, reference), hit)
            for source, reference, output, hit in zip(sources, references, outputs, exact, strict=True)
        ],
        candidates=candidates,
        calibration=_calibration(answers, exact),
    )


def _calibration(answers: Sequence[Answer], exact: Sequence[bool]) -> dict[str, float]:
    stated = {"probability": [math.exp(answer.logprob) for answer in answers]}
    sure = [answer.confidence for answer in answers if answer.confidence is not None]
    if len(sure) == len(answers):
        stated["confidence"] = sure
    return {name: calibration_error(shares, exact) for name, shares in stated.items()}


def learn_confidence(
    translator: Translator, evaluation: Evaluation, accepted: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Teach the translator how sure it may be, by several candidates of each sentence; what was learned, or why not."""
    found = evaluation.candidates
    if translator.generation.beam < confidence.CANDIDATES:  # it has a narrower search of its own
        sources = [sample.source for sample in evaluation.samples]
        found = translator.candidates(sources, n_best=confidence.CANDIDATES)
    candidates = [
        confidence.Seen(answer.logprob, answer.n_tokens, answer.text in right)
        for answers, right in zip(found, accepted, strict=True)
        for answer in answers
    ]
    reason = confidence.why_not(candidates)
    if reason is not None:
        return {"why_not": reason}
    given = zip(evaluation.answers, evaluation.right, strict=True)
    own = [confidence.Seen(answer.logprob, answer.n_tokens, right) for answer, right in given]
    learned = confidence.fit(candidates, own)
    translator.settings = translator.settings.changed(confidence=learned)
    return learned.to_dict()
