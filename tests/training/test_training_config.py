"""The settings of a run, and the errors for invalid ones."""

from __future__ import annotations

from typing import Any

import pytest

from heedful.errors import ConfigError
from heedful.training import TrainingConfig
from heedful.training.parallel.process_group import torch_device


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"steps": 0}, "steps must be at least 1, not 0"),
        ({"gradient_accumulation_steps": 0}, "gradient_accumulation_steps must be at least 1"),
        ({"learning_rate": 0.0}, "learning_rate must be above 0"),
        ({"max_grad_norm": -1.0}, r"max_grad_norm must be 0 \(off\) or more, not -1.0"),
        ({"ema_decay": 1.0}, "ema_decay must be from 0 to below 1"),
        ({"label_smoothing": 1.5}, "label_smoothing must be from 0 to below 1"),
        ({"betas": [0.9]}, "betas are two numbers"),
        ({"betas": [0.9, 1.0]}, "betas are two numbers"),
        ({"schedule": "cosin"}, "did you mean 'cosine'"),
        ({"warmup_steps": 0}, "give warmup_steps of at least 1"),
        ({"min_lr_ratio": 1.1}, "min_lr_ratio must be from 0 to 1"),
        ({"patience": 3, "validate_every": 0}, "validate_every=0 has only the last one"),
        ({"seed": -1}, "seed must be from 0"),
        ({"learning_rates": 1.0}, "did you mean 'learning_rate'"),
        ({"clip": 1.0}, "training: 'clip' is now called 'max_grad_norm'"),
        ({"ema": 0.9}, "training: 'ema' is now called 'ema_decay'"),
    ],
)
def test_invalid_settings_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingConfig(**values)


def test_the_defaults_are_right_and_travel() -> None:
    config = TrainingConfig()
    assert TrainingConfig.from_dict(config.to_dict()) == config


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ({}, 10_000),
        ({"steps": 7}, 7),
        ({"epochs": 3}, 3 + 4 + 5),
        ({"epochs": 3, "gradient_accumulation_steps": 2}, 2 + 2 + 3),  # no update spans two epochs
        ({"epochs": 3, "steps": 8}, 8),
        ({"epochs": 3, "steps": 80}, 12),
    ],
)
def test_steps_or_epochs_whichever_comes_first(values: dict[str, Any], total: int) -> None:
    assert TrainingConfig(**values).total_steps(lambda epoch: epoch + 3) == total


def test_a_device_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match=r'"auto"'):
        torch_device("cuda:99")
    with pytest.raises(ConfigError, match="'gpu' cannot be used here"):
        torch_device("gpu")
    with pytest.raises(ConfigError, match="'meta' cannot be used here"):
        torch_device("meta")
    assert torch_device("cpu").type == "cpu"
