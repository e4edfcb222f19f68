"""The settings of translation and text-to-text that follow from the amount of data, where the user gave none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from heedful.config import read_mapping
from heedful.families import config_of
from heedful.tasks.scoring import rouge_share
from heedful.tasks.seq2seq import FEWEST_DRAFTS, VALIDATION_TEXTS, draft_count
from heedful.tasks.text_to_text.data import TextToTextConfig
from heedful.tasks.text_to_text.task import TextToTextTask
from heedful.tasks.translation.task import TranslationConfig, TranslationTask
from heedful.training import Monitor
from heedful.training.metrics import Validation
from heedful.training.resumption import Progress

RECIPES = Path(__file__).resolve().parents[2] / "recipes"
LITTLE, MUCH = 10_000, 1_000_000  # pairs


@dataclass
class Store:
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass
class Data:
    train: Store


def pairs(n: int, length: int = 9) -> Any:
    """Return data of n pairs whose longer side has `length` tokens and an end."""
    return Data(Store(np.stack([np.full(n, length // 2), np.full(n, length)], axis=1)))


def adapted(n: int, **values: Any) -> TextToTextConfig:
    config = TextToTextConfig.from_dict(values)
    return config.adapted(TextToTextTask().defaults(config, pairs(n)))


def test_little_data_gets_a_tiny_model_and_many_small_updates() -> None:
    little, much = adapted(LITTLE), adapted(MUCH)
    widths = [config.model.d_model for config in (little, much)]  # type: ignore[attr-defined]
    assert widths[0] < widths[1]
    assert little.training.batch_tokens < much.training.batch_tokens
    passes = little.training.total_steps(lambda _: 1) * little.training.batch_tokens / (LITTLE * 10)
    assert passes >= 30
    assert little.training.patience > 0
    rates = [config.training.learning_rate for config in (little, much)]
    assert rates[0] * widths[0] == pytest.approx(rates[1] * widths[1]), "a wider model learns in smaller steps"


def test_a_tiny_model_that_was_not_chosen_has_rotary_positions() -> None:
    assert adapted(LITTLE).model.positions == "rotary"  # type: ignore[attr-defined]
    for n, model in ((MUCH, {}), (LITTLE, "tiny"), (LITTLE, {"preset": "tiny"}), (LITTLE, {"positions": "sinusoidal"})):
        assert adapted(n, model=model).model.positions == "sinusoidal"  # type: ignore[attr-defined]
    assert adapted(LITTLE, model="bart-tiny").model.family == "bart"


def test_few_passes_over_the_data_need_no_dropout() -> None:
    def dropout(n: int, **values: Any) -> float:
        return adapted(n, **values).model.dropout  # type: ignore[attr-defined]

    on_cpu = {"max_minutes": 1.0, "device": "cpu"}
    assert dropout(LITTLE) == dropout(MUCH) == config_of("tiny").dropout > 0  # type: ignore[attr-defined]
    assert dropout(10 * MUCH) == 0, "10,000 steps of 4096 tokens are half a pass over 100 million"
    assert dropout(LITTLE, training={"steps": 100}) == 0
    assert dropout(30 * LITTLE, training=on_cpu) == 0
    assert dropout(LITTLE, training=on_cpu) > 0
    assert dropout(LITTLE, training={"steps": 100, "r_drop": 1.0}) > 0, "R-Drop compares two drops"
    for model in ("tiny", {"preset": "tiny"}, {"dropout": 0.1}):
        assert dropout(LITTLE, training={"steps": 100}, model=model) == 0.1


def test_what_is_given_is_kept_and_the_rest_fits_it() -> None:
    training = adapted(LITTLE, training={"steps": 100}).training
    assert (training.steps, training.epochs, training.patience) == (100, None, 0)
    assert training.validate_every == 5
    training = adapted(LITTLE, training={"epochs": 2, "batch_tokens": 500}).training
    assert (training.steps, training.epochs) == (None, 2)
    assert training.validate_every == pytest.approx(2 * 10 * LITTLE / 500 / 20, rel=0.1)
    assert adapted(LITTLE, training={"validate_every": 0}).training.patience == 0
    assert adapted(MUCH, model={"preset": "tiny"}).model.d_model == 128  # type: ignore[attr-defined]


def test_settings_that_are_complete_stay() -> None:
    training = TextToTextConfig().training.changed(steps=7)
    assert adapted(LITTLE, training=training).training == training


@pytest.mark.parametrize("given", [{"learning_rate": 1e-3}, {"schedule": "inverse_sqrt"}, {"parallel": "shard"}])
def test_optimizer_rate_and_schedule_adapt_together_or_not_at_all(given: dict[str, Any]) -> None:
    plain, training = TextToTextConfig.from_dict({"training": given}).training, adapted(LITTLE, training=given).training
    for name in ("optimizer", "learning_rate", "schedule", "warmup_steps"):
        assert getattr(training, name) == getattr(plain, name)


def test_a_post_norm_model_keeps_its_slow_start() -> None:
    training, plain = adapted(LITTLE, model={"preset": "base"}).training, TextToTextConfig().training
    assert (training.optimizer, training.warmup_steps) == (plain.optimizer, plain.warmup_steps)


@pytest.mark.parametrize("name", ["multi30k-en-de-tiny", "multi30k-en-de-small", "enko-gettext"])
@pytest.mark.parametrize("n", [LITTLE, MUCH])
def test_a_recipe_decides_everything_itself(name: str, n: int) -> None:
    values = read_mapping(RECIPES / f"{name}.yaml")
    assert values.pop("task") == "translation"
    config = TranslationConfig.from_dict(values)
    assert config.adapted(TranslationTask().defaults(config, pairs(n))) == config


def test_answers_are_drafted_for_fewer_texts_where_targets_are_long() -> None:
    counts = [draft_count(np.array([[5, length]])) for length in (5, 30, 100, 200, 5000)]
    assert counts == sorted(counts, reverse=True)
    assert (counts[0], counts[-1]) == (VALIDATION_TEXTS, FEWEST_DRAFTS)
    assert counts[3] < VALIDATION_TEXTS / 4


def test_rouge_counts_letters_and_digits() -> None:
    assert rouge_share(["ab, c1"]) == 4 / 5
    assert rouge_share([")]>"]) == 0
    assert rouge_share(["가나 다"]) == 1
    assert rouge_share([]) == 0


def test_patience_waits_while_nothing_is_right_and_the_loss_falls() -> None:
    progress, monitor = Progress(), Monitor("exact", higher_is_better=True)
    for step, (exact, loss, waited) in enumerate(
        [(0.0, 3.0, 0), (0.0, 2.0, 0), (0.0, 2.5, 1), (0.0, 1.0, 0), (5.0, 1.1, 0), (5.0, 0.5, 1), (4.0, 0.4, 2)]
    ):
        progress.validations.append(Validation(step, {"exact": exact, "loss": loss}))
        assert progress.validations_since_best(monitor) == waited, step
