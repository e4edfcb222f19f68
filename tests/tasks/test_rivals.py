"""The linear models that classifiers are compared with, and what is said of a model that does not beat its rival."""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful.config import read_mapping
from heedful.lens.page.rendering import catalog
from heedful.tasks.classification.ngrams import LONGEST, NgramClassifier, log_count_ratios, ngrams
from heedful.tasks.classification.task import ClassificationConfig, ClassificationTask
from heedful.tasks.linear_classifier import SparseRows, fit_linear
from heedful.tasks.masked.task import MaskedConfig, MaskedTask
from heedful.tasks.rivals import ADVICE, NOTHING, Rival, to_other_sources, verdicts
from heedful.tasks.run import Files, train


@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_linear_model_is_that_of_scikit_learn(n_classes: int) -> None:
    from sklearn.linear_model import LogisticRegression

    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(90, 6)) * (draw.random((90, 6)) < 0.5)
    labels = (inputs @ draw.normal(size=(6, n_classes)) + draw.gumbel(size=(90, n_classes))).argmax(axis=1)
    reference = LogisticRegression(C=1 / 0.3, tol=1e-8, max_iter=1000).fit(inputs, labels).predict_proba(inputs)
    dense = torch.tensor(inputs, dtype=torch.float32)
    rows, columns = dense.nonzero(as_tuple=True)
    sparse = SparseRows(columns, dense[rows, columns], torch.bincount(rows, minlength=90))
    # Of two classes, scikit-learn has the difference of the weights, whose square is twice the sum of their squares.
    penalty = 0.3 * (2 if n_classes == 2 else 1)
    for times, transposed_times in ((dense.matmul, dense.T.matmul), (sparse.times, sparse.transposed(6).times)):
        weights, bias = fit_linear(times, transposed_times, labels.tolist(), (6, n_classes), penalty)
        assert torch.allclose((dense @ weights + bias).softmax(dim=-1), torch.tensor(reference).float(), atol=2e-3)


def test_ngrams_are_those_of_a_plain_loop() -> None:
    texts = ["A cat, a CAT", "", "  cat\tsat ", "고양이 물", "x"]
    words, grams = [], []
    for row, text in enumerate(texts):
        split = text.lower().split()
        words += [(row, word) for word in split]
    for row, text in enumerate(texts):
        split = text.lower().split()
        words += [(row, f"{first} {second}") for first, second in pairwise(split)]
    for size in range(2, LONGEST + 1):
        for row, text in enumerate(texts):
            for word in text.lower().split():
                padded = f" {word} "
                grams += [(row, padded[at : at + size]) for at in range(len(padded) - size + 1)]
    for expected, (rows, hashes) in zip((words, grams), ngrams(texts), strict=True):
        assert rows.tolist() == [row for row, _ in expected]
        pairs = set(zip([gram for _, gram in expected], hashes.tolist(), strict=True))
        assert len(pairs) == len({gram for gram, _ in pairs}) == len({number for _, number in pairs})


def classes(model: NgramClassifier, *examples: tuple[str, ...]) -> list[int]:
    return [int(row.argmax()) for row in model.log_probabilities(examples)]


def test_the_classifier_reads_both_texts_of_a_pair() -> None:
    draw = random.Random(0)
    colors = ["red", "blue"]
    examples = [(draw.choice(colors), draw.choice(colors)) for _ in range(200)]
    for field in (0, 1):
        labels = [colors.index(example[field]) for example in examples]
        model = NgramClassifier.fit(examples, labels, 2)
        assert classes(model, ("red", "blue"), ("blue", "red")) == ([0, 1] if field == 0 else [1, 0])


def test_the_classifier_survives_texts_without_ngrams_of_the_training() -> None:
    model = NgramClassifier.fit([("",), ("red",), ("red",)], [1, 0, 0], 3)
    assert classes(model, ("",), ("물",), ("red red",)) == [classes(model, ("",))[0]] * 2 + [0]
    assert classes(NgramClassifier.fit([("",), ("",), ("",)], [1, 1, 0], 2), ("x",)) == [1]


def test_an_answer_does_not_depend_on_the_other_texts() -> None:
    texts = [("a red cat",), ("blue",), ("",), ("a blue dog saw a red cat",)]
    model = NgramClassifier.fit(texts, [0, 1, 1, 0], 2)
    together = model.log_probabilities(texts)
    assert all(torch.equal(model.log_probabilities([text])[0], row) for text, row in zip(texts, together, strict=True))


def test_the_ratios_are_those_of_naive_bayes() -> None:
    texts, labels = ["a b", "a c", "b", "b c"], [0, 0, 1, 2]
    columns = sorted({word for text in texts for word in text.split()})
    entries = [(row, columns.index(word)) for row, text in enumerate(texts) for word in text.split()]
    rows, ids = torch.tensor(entries).T
    ratios = log_count_ratios(SparseRows(ids, torch.ones(7), torch.bincount(rows)).transposed(3), labels, 3)
    for feature, word in enumerate(columns):
        for label in range(3):
            shares = []
            for inside in (True, False):
                parts = [text.split() for text, each in zip(texts, labels, strict=True) if (each == label) == inside]
                counts = Counter(sum(parts, [*columns]))  # each word once more than it occurs
                shares.append(counts[word] / counts.total())
            assert float(ratios[feature, label]) == pytest.approx(math.log(shares[0] / shares[1]), abs=1e-5)


def scores(**values: float) -> dict[str, Any]:
    return {name: {"metric": f"the {name}", "value": value} for name, value in values.items()}


def test_a_rival_is_named_when_it_is_better() -> None:
    rivals = (
        Rival("constant", ("f1", "accuracy")),
        Rival("linear", ("accuracy",), is_trivial=False),
        Rival("frequency", ("loss",), higher_is_better=False, margin=0.5),
    )
    assert verdicts(rivals, scores(accuracy=80, constant=50, linear=80)) == []
    assert verdicts(rivals, scores(accuracy=80, constant=50, linear=80.5)) == [
        f"A simpler method is better: 80.00 (the accuracy) against 80.50 (the linear). {ADVICE}"
    ]
    assert verdicts(rivals, scores(accuracy=50, constant=50, linear=80)) == [
        f"This model learned nothing: 50.00 (the accuracy) against 50.00 (the constant). {ADVICE}"
    ]
    assert verdicts(rivals, scores(accuracy=60, f1=40, constant=50, linear=10))[0].startswith(NOTHING)
    assert verdicts(rivals, scores(loss=2.4, frequency=3)) == []
    assert len(verdicts(rivals, scores(loss=2.6, frequency=3))) == 1
    assert verdicts(rivals, {}) == []


def test_reports_translate_what_is_said() -> None:
    """The page recognizes a sentence by its English pattern, and the names in it by theirs."""
    phrases = catalog("en")["phrases"]
    for is_trivial, key in ((True, "learned_nothing"), (False, "simpler_method")):
        (sentence,) = verdicts((Rival("linear", ("accuracy",), is_trivial),), scores(accuracy=1, linear=2))
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(phrases[key]))
        found = re.fullmatch(pattern, sentence)
        assert found is not None
        assert found.groupdict() == {
            "value": "1.00", "metric": "the accuracy", "other": "2.00", "rival": "the linear", "what": ADVICE
        }  # fmt: skip
    assert phrases["rival_advice"] == ADVICE


def test_answers_to_other_sources_are_all_answers_elsewhere() -> None:
    answers = [str(number) for number in range(21)]
    others = to_other_sources(answers)
    assert others is not None
    assert sorted(others) == sorted(answers)
    assert all(one != other for one, other in zip(answers, others, strict=True))
    assert to_other_sources(answers[:5]) is None


def test_a_model_that_learned_nothing_says_so_to_the_next_run(tmp_path: Path) -> None:
    draw = random.Random(0)
    texts = [" ".join(draw.choice("abcdefgh") for _ in range(6)) for _ in range(100)]
    (tmp_path / "plain.txt").write_text("\n".join(texts))
    labelled = "".join(f"{text}\t{'xy'['a' in text]}\n" for text in texts)
    (tmp_path / "labelled.tsv").write_text(f"text\tlabel\n{labelled}")
    training = {"steps": 1, "device": "cpu", "validate_every": 0, "learning_rate": 1e-9}
    model = {"d_model": 16, "n_heads": 2, "d_ff": 16, "n_layers": 1, "max_length": 32}
    config = MaskedConfig.from_dict({"model": model, "training": training})
    train(MaskedTask(), config, Files((str(tmp_path / "plain.txt"),)), tmp_path / "base")
    (sentence,) = read_mapping(tmp_path / "base" / "metrics.json")["verdicts"]
    assert sentence.startswith(NOTHING)
    assert sentence in (tmp_path / "base" / "README.md").read_text()
    second = ClassificationConfig.from_dict({"base": str(tmp_path / "base"), "training": training})
    with pytest.warns(UserWarning, match=re.escape(f"base: {sentence}")):
        train(ClassificationTask(), second, Files((str(tmp_path / "labelled.tsv"),)), tmp_path / "next")
