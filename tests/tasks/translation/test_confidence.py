"""Confidence: learned from made-up sets whose probabilities are known, kept in the bundle, measured by evaluate."""

from __future__ import annotations

import json
import math
import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from small_runs import small_config, symbol_files

import heedful as package
from heedful.config import read_mapping
from heedful.errors import DataError
from heedful.tasks.scoring import calibration_error
from heedful.tasks.translation import Translator
from heedful.tasks.translation.predictor import MIN_CANDIDATES, Confidence, ScoredAnswer
from heedful.tasks.translation.task import train
from shell import heedful

TRUE = Confidence(base=1.0, by_logprob=1.5, by_token=0.2)


def made_up(count: int, seed: int = 0, doubt: float = 0.125, true: Confidence = TRUE) -> list[ScoredAnswer]:
    """Answers that a smoothed model scored, each right with the probability that `true` says."""
    draw, actual = random.Random(seed), []
    for _ in range(count):
        length = draw.randint(3, 20)
        logprob = sum(-0.1 - draw.expovariate(1 / doubt) for _ in range(length))
        actual.append(ScoredAnswer(logprob, length, draw.random() < true.of(logprob, length)))
    return actual


def stated(learned: Confidence, answers: list[ScoredAnswer]) -> list[float]:
    return [learned.of(seen.logprob, seen.n_tokens) for seen in answers]


def rights(answers: list[ScoredAnswer]) -> list[bool]:
    return [seen.right for seen in answers]


def test_the_true_numbers_are_found() -> None:
    answers = made_up(20_000)
    actual = Confidence.fit(answers, answers)
    for name in ("base", "by_logprob", "by_token"):
        assert getattr(actual, name) == pytest.approx(getattr(TRUE, name), abs=0.12)
    assert sum(stated(actual, answers)) == pytest.approx(sum(rights(answers)), abs=1)  # the level


def test_on_other_sentences_it_is_calibrated_and_the_raw_probability_is_not() -> None:
    answers = made_up(2000)
    actual, others = Confidence.fit(answers, answers), made_up(5000, seed=1)
    assert calibration_error(stated(actual, others), rights(others)) < 3
    assert calibration_error([math.exp(seen.logprob) for seen in others], rights(others)) > 20


def test_a_model_that_is_hardly_ever_wrong_learns_from_its_other_candidates() -> None:
    """Of 300 answers a few are wrong; their candidates are worse, and so are other sentences."""
    true = Confidence(base=5.0, by_logprob=1.5, by_token=0.2)
    answers, candidates = made_up(300, doubt=0.02, true=true), made_up(1200, doubt=0.3, true=true)
    assert 0 < sum(not seen.right for seen in answers) < MIN_CANDIDATES
    actual = Confidence.fit([*answers, *candidates], answers)
    others, worse = made_up(5000, 1, doubt=0.02, true=true), made_up(5000, 2, doubt=0.3, true=true)
    assert calibration_error(stated(actual, others), rights(others)) < 2
    assert calibration_error(stated(actual, worse), rights(worse)) < 10


@pytest.mark.parametrize("right", [True, False])
def test_a_level_that_was_never_seen_broken_is_no_certainty(right: bool) -> None:
    answers = [seen._replace(right=right) for seen in made_up(100)]
    shares = stated(Confidence.fit(made_up(1000), answers), answers)
    assert sum(shares) / 100 == pytest.approx(0.99 if right else 0.01, abs=0.01)
    assert 0 < min(shares) <= max(shares) < 1


@pytest.mark.parametrize("count", [40, 1000])
def test_even_where_right_and_wrong_never_mix_the_numbers_stay_small(count: int) -> None:
    logprobs = [-0.1 * place / count if place % 2 else -5.0 - place / count for place in range(count)]
    answers = [ScoredAnswer(logprob, 5, logprob > -1) for logprob in logprobs]
    actual = Confidence.fit(answers, answers)
    assert 0.5 < actual.of(-0.1, 5) < 1
    assert 0 < actual.of(-5.0, 5) < 0.5
    assert abs(actual.by_logprob) < 10
    assert actual.of(-1e9, 5) == 0.0  # and nothing overflows
    assert actual.of(1e9, 5) == 1.0


def test_too_few_to_learn_from_are_said() -> None:
    hit, miss = ScoredAnswer(-1.0, 5, True), ScoredAnswer(-2.0, 5, False)
    assert Confidence.fit([hit] * MIN_CANDIDATES + [miss] * MIN_CANDIDATES, [hit]).by_logprob > 0
    with pytest.raises(DataError, match=r"of 103 candidates .* 100 are right and 3 wrong; at least 20 of each"):
        Confidence.fit([hit] * 100 + [miss] * 3, [hit])
    with pytest.raises(DataError, match="of 0 candidates"):
        Confidence.fit([], [])


def test_the_calibration_error_is_that_of_its_definition() -> None:
    assert calibration_error([0.7] * 10, [True] * 5 + [False] * 5, bins=1) == pytest.approx(20)
    assert calibration_error([0.0, 1.0], [False, True]) == 0
    assert calibration_error([0.0, 1.0], [True, False]) == 100
    # Three bins of two: |0.1 + 0.2 - 1|, |0.5 + 0.5 - 1|, |0.9 + 0.8 - 1|, over six.
    shares, right = [0.5, 0.1, 0.9, 0.2, 0.8, 0.5], [True, False, False, True, True, False]
    assert calibration_error(shares, right, bins=3) == pytest.approx(100 * (0.7 + 0.0 + 0.7) / 6)
    assert calibration_error([], []) == 0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that is right about most of its validation sentences, and wrong about enough."""
    folder = tmp_path_factory.mktemp("run")
    files = symbol_files(folder, train=2500, valid=300)
    settings: dict[str, Any] = {"steps": 130, "label_smoothing": 0.1}
    train(small_config(settings, generation={"beam": 2}), files, folder / "run")
    return folder / "run"


def test_training_teaches_it_and_the_bundle_keeps_it(run: Path) -> None:
    translator: Translator = package.load(run, "translation")
    learned = read_mapping(run / "metrics.json")["confidence"]
    assert translator.settings.confidence == Confidence(**learned)
    assert "calibrated on these pairs" in (run / "README.md").read_text()
    (answer,) = translator.answers(["a b c d"])
    assert answer.confidence == Confidence(**learned).of(answer.logprob, answer.n_tokens)
    assert answer.n_tokens == len(answer.pieces)
    assert sum(piece.logprob for piece in answer.pieces) == pytest.approx(answer.logprob)
    assert translator.answers([""])[0].confidence is None


def test_a_bundle_from_before_gives_none(run: Path, tmp_path: Path) -> None:
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        shutil.copy(run / name, tmp_path / name)
    values = json.loads((tmp_path / "config.json").read_text())
    del values["settings"]["confidence"]
    (tmp_path / "config.json").write_text(json.dumps(values))
    assert package.load(tmp_path, "translation").answers(["a b"])[0].confidence is None
    done = heedful("predict", tmp_path, "a b", "--scores")
    assert re.fullmatch(r"[a-j ]*\t\t-\d+\.\d{4}\n", done.out)
    assert "gives no confidence" in done.err


def test_evaluate_measures_it_beside_the_raw_probability(run: Path, tmp_path: Path) -> None:
    test = symbol_files(tmp_path, train=400).train[0]
    done = heedful("evaluate", run, "--data", test, "--out", tmp_path / "scores.json")
    assert done.code == 0, done.err
    actual = json.loads((tmp_path / "scores.json").read_text())
    calibration = actual["calibration"]
    assert calibration["confidence"] < 12 < calibration["probability"]
    assert f"confidence {calibration['confidence']:.1f} %" in done.out
    assert f"raw probability {calibration['probability']:.1f} %" in done.out
    answers = package.load(run, "translation").answers([sample["source"] for sample in actual["samples"]])
    right = [sample["exact"] for sample in actual["samples"]]
    assert calibration["confidence"] == pytest.approx(calibration_error([a.confidence or 0 for a in answers], right))


def test_answers_that_are_accepted_count_as_right(tmp_path: Path) -> None:
    """Every answer of an untrained model is accepted but a few: it learns that it is right."""
    files = symbol_files(tmp_path, train=60, valid=60)
    config = small_config({"steps": 1})
    first = train(config, files, tmp_path / "first")
    assert first.settings.confidence is None
    assert "gives no confidence" in (tmp_path / "first" / "README.md").read_text()
    sources = [line.split("\t")[0] for line in Path(files.valid[0]).read_text().splitlines()]
    outputs = first.predict(sources)
    accepted = {source: (output,) for source, output in list(zip(sources, outputs, strict=True))[MIN_CANDIDATES + 5 :]}
    again = train(config, files, tmp_path / "again", accepted=accepted)
    assert again.settings.confidence is not None


def test_an_answer_that_was_cut_is_not_right(run: Path) -> None:
    (answers,) = package.load(run, "translation").candidates(["a b c d e f"], max_new_tokens=2, beam=2, n_best=2)
    assert all((answer.confidence == 0) == (not answer.finished) for answer in answers)
    assert not all(answer.finished for answer in answers)
