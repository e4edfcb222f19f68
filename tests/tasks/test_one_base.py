"""What every task and every predictor answers, whatever it is for."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_args

import pytest

import heedful
from every_task import TINY
from heedful.tasks import PREDICTORS
from heedful.tasks.bundle import BundleError
from heedful.tasks.predictor import InputKind, OutputKind, Predictor
from heedful.tasks.registry import TRAINED
from heedful.tasks.run import RunConfig, Task


@pytest.mark.parametrize("name", TRAINED)
def test_a_task_says_all_that_a_run_asks_for(name: str) -> None:
    task = TRAINED[name]()
    assert isinstance(task, Task)
    assert not inspect.isabstract(type(task))
    assert task.name == task.predictor_class.task == name
    assert issubclass(task.config_class, RunConfig)
    assert task.example_name
    assert len(set(task.artifacts)) == len(task.artifacts) > 0


@pytest.mark.parametrize("name", PREDICTORS)
def test_a_predictor_says_what_it_takes_and_gives(name: str) -> None:
    kind = PREDICTORS[name]
    assert issubclass(kind, Predictor)
    assert kind.input_kind in get_args(InputKind)
    assert kind.output_kind in get_args(OutputKind)
    assert kind.batch_method is None or callable(getattr(kind, kind.batch_method))


def test_a_bundle_of_another_task_is_refused(tmp_path: Path) -> None:
    model: Any = TINY["feelings"]()
    model.save(tmp_path)
    assert heedful.load(tmp_path, "classification").settings == model.settings
    with pytest.raises(BundleError, match="is a model for classification, and not for translation"):
        heedful.load(tmp_path, "translation")
    load: Any = heedful.load
    with pytest.raises(BundleError, match="classification"):
        load(tmp_path, "clasification")


def test_why_an_item_is_refused_is_what_predict_says() -> None:
    model: Any = TINY["gaps"]()
    assert model.validation_error("the cat [MASK]") is None
    assert "it has no gap" in str(model.validation_error("the cat"))
