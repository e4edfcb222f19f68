"""Bundles and published folders that are damaged or made to harm are refused, and named, before anything is built."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful
from every_task import TINY, image_classifier, language_model
from heedful.errors import HeedfulError, NonFiniteOutputError
from heedful.families.weights import WeightsError
from heedful.files import sha256_of
from heedful.tasks.bundle import BundleError
from published_folders import bert, publish
from shell import heedful as shell

ITEMS: dict[str, Any] = {
    "answers": ("Who reads?", "The cat reads a book."),
    "gaps": "The [MASK] reads.",
    "pictures": torch.rand(16, 16, generator=torch.Generator().manual_seed(0)).numpy(),
    "sales": [float(n % 7) for n in range(60)],
    "ko-en": "나는 물을 마셔요.",
}


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    """Change the tensors of a bundle; its checksums stay right."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})
    change_config(folder, lambda values: values["sha256"].update({path.name: sha256_of(path)}))


def change_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = folder / "config.json"
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


def put(value: float) -> Callable[[dict[str, torch.Tensor]], None]:
    """Put one value into the last floating-point tensor."""

    def change(tensors: Mapping[str, torch.Tensor]) -> None:
        name = [name for name, tensor in tensors.items() if tensor.is_floating_point()][-1]
        tensors[name].view(-1)[-1] = value

    return change


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize("name", TINY)
def test_weights_with_nan_or_inf_are_not_loaded(name: str, value: float, tmp_path: Path) -> None:
    TINY[name]().save(tmp_path)
    change_weights(tmp_path, put(value))
    with pytest.raises(WeightsError, match=r"model\.safetensors: \S+ holds NaN or inf"):
        heedful.load(tmp_path)


def test_finite_weights_whose_sum_overflows_are_loaded(tmp_path: Path) -> None:
    image_classifier().save(tmp_path)
    change_weights(tmp_path, lambda tensors: tensors["embedding.project.weight"].fill_(3e38))
    heedful.load(tmp_path)


@pytest.mark.parametrize("value", [torch.inf, torch.nan])
def test_weights_with_nan_or_inf_are_not_imported_and_nothing_is_written(value: float, tmp_path: Path) -> None:
    folder = publish(tmp_path / "published", bert())
    tensors = load_file(folder / "model.safetensors")
    tensors["bert.embeddings.word_embeddings.weight"][3, 3] = value
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    done = shell("import", folder, "--out", tmp_path / "out")
    assert done.code == 1
    assert "bert.embeddings.word_embeddings.weight holds NaN or inf" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["published"]


@pytest.mark.parametrize("name", TINY)
def test_an_output_with_nan_or_inf_is_an_error_in_python(name: str) -> None:
    model = TINY[name]()
    item = ITEMS.get(name, "The cat reads.")
    model.predict([item])
    with torch.no_grad():
        for parameter in model.module.parameters():  # finite, and too large to compute with
            parameter.fill_(1e30)
    with pytest.raises(NonFiniteOutputError, match="NaN or inf"):
        model.predict([item])


def test_an_output_with_nan_or_inf_is_an_error_in_the_terminal(tmp_path: Path) -> None:
    TINY["feelings"]().save(tmp_path)
    change_weights(tmp_path, lambda tensors: [tensor.fill_(1e30) for tensor in tensors.values()])
    (tmp_path / "data.tsv").write_text("text\tlabel\nThe cat reads.\tglad\nThe cat plays.\tsad\n")
    for form in ((), ("--json",), ("--scores",)):
        done = shell("predict", tmp_path, *form, stdin=b"The cat reads.\n")
        assert (done.code, done.out) == (1, "")
        assert "NaN or inf" in done.err
    done = shell("evaluate", tmp_path, "--data", tmp_path / "data.tsv")
    assert done.code == 1
    assert "NaN or inf" in done.err


@pytest.mark.parametrize("name", ["pictures", "feelings", "entities"])
def test_labels_that_do_not_fit_the_model_are_refused_and_the_folder_named(name: str, tmp_path: Path) -> None:
    TINY[name]().save(tmp_path)
    change_config(tmp_path, lambda values: values["settings"].update(labels=["cat", "dog"]))
    with pytest.raises(BundleError, match=rf"^{tmp_path}: the model tells 3 classes apart, but has 2 labels"):
        heedful.load(tmp_path)


WRONG_SIZES: dict[str, tuple[str, dict[str, Any], str]] = {
    "width": ("writer", {"d_model": 40_000, "n_heads": 4}, r"should be \(\d+, 40000\)"),
    "layers": ("en-ko", {"n_encoder_layers": 10**6}, "n_encoder_layers=1000000, but there are only"),
    "layers of a decoder": ("writer", {"n_layers": 10**6}, "n_layers=1000000, but there are only"),
    "heads": ("en-ko", {"d_model": 10**9, "n_heads": 10**9}, "but all tensors together hold only"),
    "tokens": ("writer", {"vocab_size": 10**10}, r"should be \(10000000000, 32\)"),
    "positions": ("writer", {"max_length": 10**10}, r"should be \(10000000000, 32\)"),
    "sizes that no tensor has": ("writer", {"d_model": 10**12, "n_heads": 1}, "cannot be built"),
    "an image": ("pictures", {"image_size": 4 * 10**6}, r"should be \(1000000000001, 32\)"),
    "a series": ("sales", {"context_length": 10**9}, "should be"),
}


@pytest.mark.parametrize(("name", "changes", "message"), WRONG_SIZES.values(), ids=WRONG_SIZES)
def test_sizes_agree_with_the_weights_before_anything_is_built(
    name: str, changes: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    TINY[name]().save(tmp_path)
    change_config(tmp_path, lambda values: values["model"].update(changes))
    monkeypatch.setattr("heedful.tasks.bundle.build", lambda _: pytest.fail("it was built"))
    with pytest.raises((BundleError, WeightsError), match=message):
        heedful.load(tmp_path)


@pytest.mark.parametrize("changes", [{"beam": 10**7}, {"sample": True, "n_best": 10**7}])
def test_a_stored_beam_has_a_limit(changes: dict[str, Any], tmp_path: Path) -> None:
    language_model().save(tmp_path)
    change_config(tmp_path, lambda values: values["settings"]["generation"].update(changes))
    with pytest.raises(HeedfulError, match="must be at most 1,000, not 10,000,000"):
        heedful.load(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_file_that_is_a_device_or_a_pipe_is_refused_at_once(name: str, kind: str, tmp_path: Path) -> None:
    TINY["feelings"]().save(tmp_path)
    path = tmp_path / name
    path.unlink()
    if kind == "device":
        path.symlink_to("/dev/zero")
    else:
        os.mkfifo(path)
    with pytest.raises(HeedfulError, match=rf"{name}.*it is not a regular file"):
        heedful.load(tmp_path)


def test_a_text_on_which_a_tokenizer_panics_costs_no_other(tmp_path: Path) -> None:
    TINY["feelings"]().save(tmp_path)
    path = tmp_path / "tokenizer.json"
    values = json.loads(path.read_text())
    split = {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False}
    path.write_text(json.dumps({**values, "pre_tokenizer": split}))
    change_config(tmp_path, lambda config: config["sha256"].update({path.name: sha256_of(path)}))
    answers = heedful.load(tmp_path).predict(["a" * 40, "The cat reads."], errors="return")
    assert "the tokenizer cannot process this text" in str(answers[0])
    assert isinstance(answers[1], dict)
