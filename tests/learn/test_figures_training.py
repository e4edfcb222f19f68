"""The training of the toy translator: its loss and its schedule agree with a formula and with torch."""

from __future__ import annotations

import math

import pytest
import torch

from heedful.learn.figures import figure_data
from heedful.learn.figures.translator import D_MODEL, STEPS, WARMUP
from heedful.learn.toy import PADDING, START, toy_batch, toy_model, toy_pairs


def test_the_rates_are_those_of_the_paper() -> None:
    runs = figure_data("training-run", "en")["runs"]
    formula = [D_MODEL**-0.5 * min(step**-0.5, step * WARMUP**-1.5) for step in range(1, STEPS + 1)]
    assert runs["warmup"]["rates"] == pytest.approx(formula, abs=1e-5)
    assert runs["smoothing"]["rates"] == runs["warmup"]["rates"]
    assert set(runs["none"]["rates"]) == {round(max(formula), 5)}


def test_the_first_loss_is_the_mean_over_all_words_by_the_shares_of_the_pairs() -> None:
    model, total, n = toy_model(), 0.0, 0.0
    for pair in toy_pairs():
        source, target = toy_batch([pair.source]), toy_batch([pair.target])
        inputs = torch.cat([torch.tensor([[START]]), target[:, :-1]], dim=1)
        logprobs = model(source, inputs).detach().log_softmax(dim=-1)
        total -= pair.share * sum(float(logprobs[0, at, token]) for at, token in enumerate(target[0].tolist()))
        n += pair.share * target.shape[1]
        assert PADDING not in target
    for run in figure_data("training-run", "en")["runs"].values():
        assert run["losses"][0] == pytest.approx(total / n, abs=2e-3)


def test_every_run_learns_and_smoothing_ends_higher() -> None:
    data = figure_data("training-run", "en")
    for run in data["runs"].values():
        assert len(run["losses"]) == STEPS
        assert run["losses"][-1] < 0.3 < math.log(30) < run["losses"][0] + 1
        assert len(run["translations"]) == len(data["steps"])
    rights = zip(data["runs"]["warmup"]["translations"][-1], data["sentences"], strict=True)
    assert all(text in sentence["right"] for text, sentence in rights)
    ends = {name: run["losses"][-1] for name, run in data["runs"].items()}
    assert ends["none"] == pytest.approx(ends["warmup"], abs=0.03)  # so small a model needs no warm-up
    assert ends["smoothing"] > ends["warmup"] + 0.05
    tenth = {name: run["losses"][9] for name, run in data["runs"].items()}
    assert tenth["none"] < tenth["warmup"]
    assert [sentence["trained"] for sentence in data["sentences"]] == [True, True, False]
