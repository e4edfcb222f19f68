"""Scores of classes, against formulas by hand and scikit-learn's."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn import metrics

from heedful.tasks.class_scores import (
    accuracy,
    class_scores,
    confusion_matrix,
    each_class,
    macro_f1,
    share_interval,
)

LABELS = ["a", "b", "c"]


def test_scores_of_a_small_example() -> None:
    """Truth a a a b b c, prediction a a b b c c."""
    confusion = confusion_matrix([0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 2, 2], 3)
    assert confusion.tolist() == [[2, 1, 0], [0, 1, 1], [0, 0, 1]]
    assert accuracy(confusion) == pytest.approx(100 * 4 / 6)
    first, second, third = each_class(confusion, LABELS)
    assert (first.label, first.n) == ("a", 3)
    assert (first.precision, first.recall, first.f1) == pytest.approx((100, 200 / 3, 80))
    assert (second.precision, second.recall, second.f1) == pytest.approx((50, 50, 50))
    assert (third.precision, third.recall, third.f1) == pytest.approx((50, 100, 200 / 3))
    assert macro_f1(confusion) == pytest.approx((80 + 50 + 200 / 3) / 3)


@pytest.mark.parametrize("seed", range(5))
def test_as_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    true = random.integers(0, 6, 200)
    shares = random.dirichlet(np.ones(6), 200)
    predicted = shares.argmax(axis=1)
    scores = class_scores(true.tolist(), shares, list("uvwxyz"))
    np.testing.assert_array_equal(scores.confusion, metrics.confusion_matrix(true, predicted))
    assert scores.scores["accuracy"].value == pytest.approx(100 * metrics.accuracy_score(true, predicted))
    assert scores.scores["macro_f1"].value == pytest.approx(100 * metrics.f1_score(true, predicted, average="macro"))
    expected = metrics.precision_recall_fscore_support(true, predicted)
    for name, values in zip(("precision", "recall", "f1"), expected[:3], strict=True):
        assert [getattr(row, name) for row in scores.classes] == pytest.approx(100 * values)
    assert [row.n for row in scores.classes] == expected[3].tolist()


def test_a_class_that_does_not_occur_is_not_in_the_mean() -> None:
    true, predicted = [0, 0, 1], [0, 1, 1]
    expected = 100 * metrics.f1_score(true, predicted, average="macro")
    assert macro_f1(confusion_matrix(true, predicted, 5)) == pytest.approx(expected)


def test_a_class_that_was_never_predicted_has_no_precision_and_counts() -> None:
    confusion = confusion_matrix([0, 1], [0, 0], 2)
    assert each_class(confusion, ["a", "b"])[1].f1 == 0
    assert macro_f1(confusion) == pytest.approx(100 * (2 / 3) / 2)


def test_no_example_at_all() -> None:
    scores = class_scores([], np.zeros((0, 3)), LABELS)
    assert (scores.scores["accuracy"].value, scores.scores["macro_f1"].value, scores.calibration) == (0, 0, 0)


def test_calibration_is_of_the_predicted_class() -> None:
    """Sure of 90 % and right half of the time: 40 points off."""
    shares = np.tile([0.9, 0.1], (200, 1))
    assert class_scores([0, 1] * 100, shares, ["a", "b"]).calibration == pytest.approx(40)


def test_the_interval_is_wilsons() -> None:
    """By the definition: its ends are the shares p that lie z of their own deviations from what was seen."""
    n, seen = 40, 0.9
    half = share_interval(100 * seen, n) / 100
    z = 1.959964
    middle = (seen + z * z / (2 * n)) / (1 + z * z / n)
    for p in (middle - half, middle + half):
        assert abs(seen - p) == pytest.approx(z * (p * (1 - p) / n) ** 0.5)
    assert share_interval(100.0, 10) > 5  # nothing wrong in ten is no proof


def test_plain_values_for_a_file() -> None:
    scores = class_scores([0, 2], np.eye(3)[[0, 1]], LABELS).to_dict()
    assert json.loads(json.dumps(scores)) == scores
    assert (scores["n"], scores["labels"], scores["confusion"]) == (2, LABELS, [[1, 0, 0], [0, 0, 0], [0, 1, 0]])
