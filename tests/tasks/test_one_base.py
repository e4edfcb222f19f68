"""What every task and every predictor answers, whatever it is for."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import heedful
from every_task import TINY
from heedful.errors import DataError
from heedful.tasks import PREDICTORS
from heedful.tasks.bundle import BundleError
from heedful.tasks.predictor import InputKind, ItemError, OutputKind, Predictor
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


GOOD: dict[str, list[Any]] = {
    "en-ko": ["The cat", "a book"],
    "writer": ["The cat", "a book"],
    "feelings": ["The cat", ("a", "book")],
    "vectors": ["The cat", "a book"],
    "answers": [("Who?", "The cat reads."), ("What?", "a book")],
    "entities": ["The cat", ["a", "book"]],
    "gaps": ["The [MASK]", "a [MASK]"],
    "pictures": [np.zeros((8, 8)), np.ones((8, 8))],
    "sales": [[float(n % 7) for n in range(48)], [float(n % 5) for n in range(60)]],
}


@pytest.mark.parametrize("name", GOOD)
def test_errors_return_in_the_places_of_refused_items(name: str) -> None:
    model: Any = TINY[name]()
    first, last = model.predict(GOOD[name])
    items = [7, GOOD[name][0], None, GOOD[name][1]]
    returned = model.predict((item for item in items), errors="return")
    assert [returned[1], returned[3]] == [first, last]
    for index in (0, 2):
        assert isinstance(returned[index], DataError)
        assert str(returned[index]) == f"{model.item_name} {index + 1}: {model.validation_error(items[index])}"
    with pytest.raises(ItemError, match=f"{model.item_name} 1: "):
        model.predict(items)
    assert model.predict([], errors="return") == []


def test_an_answer_that_fails_is_returned_as_an_error() -> None:
    model, fine = TINY["sales"](), GOOD["sales"][0]
    huge = [(-1.0) ** n * 1e308 for n in range(48)]
    first, failed, second = model.predict([fine, huge, fine], errors="return")
    assert first == second == pytest.approx(model.predict([fine])[0], rel=1e-4)
    assert (failed.index, failed.reason[:26]) == (1, "the forecast is not finite")


class Column:
    """A column of a table, as pandas and others have it: neither a list nor an array."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __array__(self, *types: Any, **options: Any) -> Any:
        return np.array(self.values)


@pytest.mark.parametrize("name", ["en-ko", "feelings", "gaps", "answers", "entities"])
def test_items_may_be_an_array_a_column_or_a_generator(name: str) -> None:
    model, items = TINY[name](), GOOD[name]
    expected = model.predict(items)
    assert model.predict(Column(items)) == model.predict(iter(items)) == expected
    if all(isinstance(item, str) for item in items):
        assert model.predict(np.array(items)) == expected
    for wrong in ({"text": 1}, b"text", "text", 7):
        with pytest.raises(DataError, match=f"predict takes a list, not {type(wrong).__name__}"):
            model.predict(wrong)


def test_series_and_images_may_be_arrays_of_several_but_not_of_one() -> None:
    sales, pictures = TINY["sales"](), TINY["pictures"]()
    series = np.stack([np.arange(48.0), np.arange(48.0) % 5])
    assert sales.predict(series) == sales.predict(series.tolist()) == sales.predict([Column(each) for each in series])
    assert sales.predict([iter(series[0])]) == sales.predict(series[:1])
    images = np.stack([np.zeros((8, 8), np.uint8), np.full((8, 8), 200, np.uint8)])
    assert pictures.predict(images) == pictures.predict(list(images))
    for model, single in (
        (sales, series[0]),
        (sales, series.T),
        (pictures, images[0]),
        (pictures, np.zeros((9, 9, 3))),
    ):
        with pytest.raises(DataError, match=rf"predict\(\[{model.item_name}\]\)"):
            model.predict(single)


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
