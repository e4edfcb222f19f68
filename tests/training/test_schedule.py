"""The learning rate against the formulas it stands for."""

from __future__ import annotations

import math

import pytest
from copying import config

from heedful.training.optimizers import schedule


@pytest.mark.parametrize("step", [1, 7, 3999, 4000, 4001, 100_000])
def test_inverse_sqrt_is_the_papers(step: int) -> None:
    d_model, warmup = 512, 4000
    rate = schedule(config(schedule="inverse_sqrt", learning_rate=(d_model * warmup) ** -0.5, warmup_steps=warmup), 1)
    assert rate(step) == pytest.approx(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5), rel=1e-12)


def test_cosine_rises_falls_and_stays() -> None:
    rate = schedule(config(schedule="cosine", learning_rate=2.0, warmup_steps=10, min_lr_ratio=0.1), 110)
    assert [rate(1), rate(5), rate(10)] == pytest.approx([0.2, 1.0, 2.0])
    assert rate(60) == pytest.approx((2.0 + 0.2) / 2)  # halfway down
    assert rate(35) == pytest.approx(0.2 + 1.8 * (1 + math.cos(math.pi / 4)) / 2)
    assert [rate(110), rate(500)] == pytest.approx([0.2, 0.2])
    assert all(rate(step) >= rate(step + 1) for step in range(10, 120))


def test_cosine_that_never_leaves_its_warm_up() -> None:
    rate = schedule(config(schedule="cosine", learning_rate=2.0, warmup_steps=10), 5)
    assert [rate(step) for step in (1, 5)] == pytest.approx([0.2, 1.0])


def test_constant_is_level_after_its_warm_up() -> None:
    rate = schedule(config(schedule="constant", learning_rate=2.0, warmup_steps=4), 100)
    assert [rate(step) for step in (1, 4, 5, 99)] == pytest.approx([0.5, 2.0, 2.0, 2.0])
    assert schedule(config(schedule="constant", learning_rate=2.0, warmup_steps=0), 100)(1) == 2.0
