"""From Python: a bundle that is whole, or an error that names the file; a text's answer does not depend on others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from small_runs import small_config, symbol_files

import heedful as package
from heedful.errors import ConfigError, DataError
from heedful.tasks.bundle import BundleError
from heedful.tasks.predictor import ItemError
from heedful.tasks.translation.task import train
from heedful.training import Event, Trained
from shell import heedful

pytest_plugins = ["quick_model"]

TEXTS = ["a b c", "", "j", "a b. " * 200, "밥을 먹었어요.", "c d e f", "🙂"]
FILES = ("config.json", "model.safetensors", "tokenizer.json")


@pytest.fixture
def bundle(model: Path, tmp_path: Path) -> Path:
    """A bundle of one's own, without the rest of the run."""
    for name in FILES:
        shutil.copy(model / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.filterwarnings("ignore::heedful.tasks.translation.data.LongTextWarning")
def test_together_or_alone_the_answers_are_the_same(beam: int, model: Path) -> None:
    translator = package.load(model, "translation")
    together = translator.answers(TEXTS, beam=beam)
    for text, answer in zip(TEXTS, together, strict=True):
        (alone,) = translator.answers([text], beam=beam)
        assert (alone.text, alone.finished) == (answer.text, answer.finished)
        assert alone.logprob == pytest.approx(answer.logprob, abs=1e-3)
    assert together[1].text == ""


def test_what_is_saved_is_what_was_loaded(model: Path, tmp_path: Path) -> None:
    translator = package.load(model, "translation")
    translator.save(tmp_path / "copy")
    for name in FILES:
        assert (tmp_path / "copy" / name).read_bytes() == (model / name).read_bytes()
    assert translator.task == "translation"


@pytest.mark.parametrize("device", ["cpu", "cpu:0", "auto", torch.device("cpu")])
def test_a_device_is_named_in_any_way_torch_knows(device: Any, model: Path) -> None:
    assert len(package.load(model, "translation", device=device).predict(["a"])) == 1


def test_a_device_that_is_not_there_is_an_error_in_words(model: Path) -> None:
    with pytest.raises(ConfigError, match="'abacus' cannot be used here"):
        package.load(model, "translation", device="abacus")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("a b c", r"put one text in brackets: predict\(\[text\]\)"),
        (["a", None], "text 2: a text is a str, not NoneType"),
        ([b"a"], "text 1: a text is a str, not bytes"),
        (["a", "b \ud800"], "text 2: half a surrogate pair"),
        ({"a": "b"}, "predict takes a list, not dict"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(texts: Any, said: str, model: Path) -> None:
    with pytest.raises(DataError, match=said):
        package.load(model, "translation").predict(texts)


def test_a_refused_text_gives_its_error_in_the_place_of_its_answer(model: Path) -> None:
    translator = package.load(model, "translation")
    texts: list[Any] = ["a b", None, "", "b \ud800", "c d"]
    first, second, empty, third, last = translator.predict(texts, errors="return", beam=2)
    assert [first, empty, last] == translator.predict(["a b", "", "c d"], beam=2)
    assert isinstance(second, ItemError)
    assert (str(second), second.index) == ("text 2: a text is a str, not NoneType", 1)
    assert isinstance(third, DataError)
    assert str(third).startswith("text 4: half a surrogate pair")
    answers = translator.answers(texts, errors="return", beam=2)
    assert [getattr(answer, "text", None) for answer in answers] == [first, None, empty, None, last]
    (alone,) = translator.predict([cast("str", None)], errors="return")
    assert isinstance(alone, ItemError)
    assert alone.reason == "a text is a str, not NoneType"


def test_texts_come_from_arrays_columns_and_generators(model: Path) -> None:
    translator, texts = package.load(model, "translation"), ["a b", "c"]
    expected = translator.predict(texts)
    assert translator.predict(np.array(texts)) == translator.predict(text for text in texts) == expected
    assert translator.predict(dict.fromkeys(texts).keys()) == expected


def test_a_word_that_the_search_does_not_know_is_refused(model: Path) -> None:
    options: Any = {"bean": 3}  # a type checker refuses it written out
    with pytest.raises(ConfigError, match="did you mean 'beam'"):
        package.load(model, "translation").predict(["a"], **options)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", ["missing", "empty", "truncated", "altered", "not text"])
def test_a_damaged_bundle_names_the_file(name: str, harm: str, bundle: Path) -> None:
    path = bundle / name
    content = path.read_bytes()
    middle = len(content) // 2
    if harm == "missing":
        path.unlink()
    elif harm == "altered":  # one bit; in the config, one word
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        path.write_bytes(content.replace(b'"task"', b'"tusk"') if name == "config.json" else flipped)
    else:
        path.write_bytes({"empty": b"", "truncated": content[:middle], "not text": b"\xff" * 100}[harm])
    with pytest.raises(BundleError, match=name) as error:
        package.load(bundle, "translation")
    assert "\n" not in str(error.value)
    done = heedful("predict", bundle, "a")
    assert done.code == 1
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": 99}, "its format is 99"),
        ({"task": "cooking"}, "unknown task 'cooking'"),
        ({"extra": 1}, "unknown key 'extra'"),
        ({"settings": {"source": "xa"}}, "settings"),
        ({"settings": 5}, "config.json"),
        ({"model": {"family": "origina"}}, "did you mean 'original'"),
        ({"sha256": {}}, "does not name model.safetensors"),
    ],
)
def test_a_config_that_says_something_else_is_refused(change: dict[str, Any], said: str, bundle: Path) -> None:
    values = json.loads((bundle / "config.json").read_text()) | change
    (bundle / "config.json").write_text(json.dumps(values))
    with pytest.raises(BundleError, match=said):
        package.load(bundle, "translation")


def test_a_folder_that_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="is not a folder"):
        package.load(tmp_path / "nowhere", "translation")
    with pytest.raises(BundleError, match=r"holds no trained model: config\.json is missing; it was not written by"):
        package.load(tmp_path, "translation")


def test_training_is_a_call_and_until_it_ends_there_is_no_model(tmp_path: Path) -> None:
    config = small_config({"steps": 2, "log_every": 1, "validate_every": 0, "batch_tokens": 128})
    files = symbol_files(tmp_path, train=50, valid=5)
    seen: list[Event] = []

    def look(event: Event) -> None:
        seen.append(event)
        if isinstance(event, Trained):
            with pytest.raises(BundleError, match="training has not finished; continue it with --resume"):
                package.load(tmp_path / "run", "translation")

    translator = train(config, files, tmp_path / "run", watch=lambda job: [look])
    assert sum(isinstance(event, Trained) for event in seen) == 2
    assert translator.predict(["a b"]) == package.load(tmp_path / "run", "translation").predict(["a b"])
