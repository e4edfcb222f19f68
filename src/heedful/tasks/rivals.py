"""The simple methods that a model must beat, and the sentences about a model that does not."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

NOTHING = "This model learned nothing"
ADVICE = "Train it longer, give it more data, or start from a pretrained model where the task can (--init-from)."
FEWEST = 20  # answers: with fewer, chance decides whether those to other sources are worse


class Rival(NamedTuple):
    """A simple method, whose score stands beside the model's in metrics.json."""

    baseline: str  # the name of its score
    scores: tuple[str, ...]  # the names of the model's score: the first one that is there
    is_trivial: bool = True  # a model that is no better has learned nothing
    higher_is_better: bool = True
    margin: float = 0.0  # by how much a model is better that has learned something

    def verdict(self, scores: Mapping[str, Any]) -> str | None:
        """Return a sentence if the method is better by these scores, or as good and trivial."""
        score = next((scores[name] for name in self.scores if name in scores), None)
        baseline = scores.get(self.baseline)
        if score is None or baseline is None:
            return None
        ahead = (score["value"] - baseline["value"]) * (1 if self.higher_is_better else -1)
        if ahead > self.margin or (ahead == 0 and not self.is_trivial):
            return None
        figures = f"{score['value']:.2f} ({score['metric']}) against {baseline['value']:.2f} ({baseline['metric']})"
        return f"{NOTHING if self.is_trivial else 'A simpler method is better'}: {figures}. {ADVICE}"


def verdicts(rivals: Sequence[Rival], scores: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each rival that is better; if the model learned nothing, one that says so."""
    sentences = [sentence for rival in rivals if (sentence := rival.verdict(scores))]
    return [sentence for sentence in sentences if sentence.startswith(NOTHING)][:1] or sentences


def to_other_sources(answers: Sequence[str]) -> Sequence[str] | None:
    """Return the answers in another order, if there are enough: a model that ignores its source loses nothing by it."""
    half = len(answers) // 2
    return [*answers[half:], *answers[:half]] if len(answers) >= FEWEST else None
