"""How good an image classifier is on images whose classes are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any

import numpy as np

from ...data.image_sets import LabeledImage, image_sources
from ...errors import DataError
from ..class_scores import ClassScores, class_scores
from ..predictor import ItemError
from .classifier import ImageClassifier
from .splitting import check_labels

CHUNK = 1024  # images asked about at once
SAMPLES = 100  # that metrics.json lists: the surest mistakes, at most half of them, and right ones of all classes


@dataclass(frozen=True)
class Guess:
    """One image, the class it is of, and the class it was taken for, with the probabilities of both."""

    place: str
    label: str
    prediction: str
    probability: float
    of_label: float

    @property
    def right(self) -> bool:
        return self.label == self.prediction


@dataclass(frozen=True, eq=False)
class ImageEvaluation:
    """The scores of a set of images, and every guess in the set's order."""

    scores: ClassScores
    guesses: list[Guess]

    @property
    def mistakes(self) -> list[Guess]:
        """The surest first."""
        return sorted((guess for guess in self.guesses if not guess.right), key=lambda guess: -guess.probability)

    def to_dict(self) -> dict[str, Any]:
        """For metrics.json."""
        wrong = self.mistakes[: SAMPLES // 2]
        listed = [*wrong, *_by_turns(guess for guess in self.guesses if guess.right)[: SAMPLES - len(wrong)]]
        return {"validation": self.scores.to_dict(), "samples": [asdict(guess) for guess in listed]}


def evaluate(classifier: ImageClassifier, images: Iterable[LabeledImage]) -> ImageEvaluation:
    """Ask about every image, as a user would. One that cannot be read is refused: the score would be of another set."""
    labels = classifier.settings.labels
    ids = {label: number for number, label in enumerate(labels)}
    coming = iter(images)
    true: list[int] = []
    shares: list[list[float]] = []
    guesses: list[Guess] = []
    while several := list(islice(coming, CHUNK)):
        check_labels(Counter(one.label for one in several), labels, "given")
        for one, answer in zip(several, _answers(classifier, several), strict=True):
            best = next(iter(answer))
            true.append(ids[one.label])
            shares.append([answer[label] for label in labels])
            guesses.append(Guess(one.place, one.label, best, answer[best], answer[one.label]))
    if not guesses:
        raise DataError("there is no image to evaluate on")
    return ImageEvaluation(class_scores(true, np.array(shares), labels), guesses)


def evaluate_files(
    classifier: ImageClassifier, paths: Sequence[str], columns: Sequence[str] | None = None
) -> ImageEvaluation:
    """On a set in files; of one that has a part to test on (t10k, x_test), that part."""
    sources = image_sources(paths, part="test", columns=columns)
    return evaluate(classifier, chain.from_iterable(source.images() for source in sources))


def _by_turns(guesses: Iterable[Guess]) -> list[Guess]:
    """The first of each class, then the second of each, and so on."""
    seen: Counter[str] = Counter()
    turns: list[tuple[int, Guess]] = []
    for guess in guesses:
        turns.append((seen[guess.label], guess))
        seen[guess.label] += 1
    return [guess for _, guess in sorted(turns, key=lambda turn: turn[0])]


def _answers(classifier: ImageClassifier, several: Sequence[LabeledImage]) -> list[dict[str, float]]:
    try:
        return classifier.predict([one.image for one in several])
    except ItemError as error:
        raise DataError(f"{several[error.index].place}: {error.reason}") from None
