"""The simple methods that a model must beat, and sentences about a model that does not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MORE_DATA = "Train it longer, give it more data, or check that the data is what it should be."
PRETRAINED = "Train it longer, give it more data, or start from a pretrained model (--init-from)."
FEWEST_ANSWERS = 20  # with fewer, answers to other sources say nothing


@dataclass(frozen=True)
class Rival:
    """A simple method, whose score stands beside the model's in metrics.json.

    Args:
        baseline: The name of the method's score.
        scores: The names of the model's score; the first one that is there counts.
        advice: What to do when the method is better.
        is_trivial: A model that does not beat it has learned nothing.
        higher_is_better: Of the two scores.
        margin: By how much the model must be better, where chance alone can make it so.
    """

    baseline: str
    scores: tuple[str, ...]
    advice: str
    is_trivial: bool = True
    higher_is_better: bool = True
    margin: float = 0.0

    def verdict(self, scores: Mapping[str, Any]) -> str | None:
        """Return a sentence if the method is better by these scores (a trivial one: as good)."""
        score = next((scores[name] for name in self.scores if name in scores), None)
        baseline = scores.get(self.baseline)
        if score is None or baseline is None:
            return None
        ahead = (score["value"] - baseline["value"]) * (1 if self.higher_is_better else -1)
        if ahead > self.margin or (ahead == 0 and not self.is_trivial):
            return None
        metric, rival = score["metric"], baseline["metric"]
        value, other = f"{score['value']:.2f}", f"{baseline['value']:.2f}"
        if self.is_trivial:
            return f"This model learned nothing: {metric} {value} against {other} ({rival}). {self.advice}"
        return f"A simpler method is better: {metric} {value} against {other} ({rival}). {self.advice}"


def learned_nothing(rivals: Sequence[Rival], scores: Mapping[str, Any]) -> str | None:
    """Return the sentence that says so if a trivial rival is as good; otherwise None."""
    verdicts = (rival.verdict(scores) for rival in rivals if rival.is_trivial)
    return next((verdict for verdict in verdicts if verdict), None)


def verdicts(rivals: Sequence[Rival], scores: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each rival that is better; if the model learned nothing, that one alone."""
    if nothing := learned_nothing(rivals, scores):
        return [nothing]
    return [verdict for rival in rivals if (verdict := rival.verdict(scores))]


def to_other_sources(answers: Sequence[str]) -> Sequence[str] | None:
    """Return the answers in another order: a model that ignores its source is as good with these.

    None if there are too few of them.
    """
    half = len(answers) // 2
    return [*answers[half:], *answers[:half]] if len(answers) >= FEWEST_ANSWERS else None
