"""Checkpoints are whole or not there: every file damaged in every way, full disks, what is kept and what goes."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from copying import tiny

from heedful.families.weights import WeightsError, put_weights, weights_of
from heedful.training import CheckpointError, CheckpointWarning
from heedful.training.checkpoint import Checkpoint, load, load_tensors, newest, path_of, prune, save, steps_in

FILES = ["model.safetensors", "random.safetensors", "state.json", "manifest.json"]


def example(step: int) -> Checkpoint:
    tensors = {"model": {"weight": torch.full((3, 4), float(step)), "step": torch.tensor(1.5)}}
    return Checkpoint({"step": step, "pi": 0.1 + 0.2}, tensors | {"random": {"cpu": torch.get_rng_state()}, "none": {}})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two checkpoints, of the steps 1 and 2."""
    for step in (1, 2):
        save(tmp_path / "checkpoints", step, example(step))
    return tmp_path / "checkpoints"


def test_what_is_saved_is_loaded(folder: Path) -> None:
    found, given = load(path_of(folder, 2)), example(2)
    assert found.state == given.state
    assert found.tensors.keys() == given.tensors.keys()
    for name, tensors in given.tensors.items():
        assert found.tensors[name].keys() == tensors.keys()
        assert all(torch.equal(found.tensors[name][key], tensor) for key, tensor in tensors.items())
    assert load_tensors(path_of(folder, 2), "model")["weight"][0, 0] == 2.0
    assert [entry.name for entry in sorted(folder.iterdir())] == ["step-00000001", "step-00000002"]


def test_nothing_there_is_no_checkpoint(tmp_path: Path) -> None:
    assert newest(tmp_path / "nowhere") is None


def cut(share: float) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, int(file.stat().st_size * share))


def flip(share: float) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        content = bytearray(file.read_bytes())
        content[min(int(len(content) * share), len(content) - 2)] ^= 0x08
        file.write_bytes(content)

    return change


DAMAGES: dict[str, Callable[[Path], object]] = {
    "gone": Path.unlink,
    "empty": cut(0.0),
    "half": cut(0.5),
    "one byte short": lambda file: os.truncate(file, file.stat().st_size - (2 if file.suffix == ".json" else 1)),
    "longer": lambda file: file.write_bytes(file.read_bytes() + b"x"),
    **{f"flipped at {share}": flip(share) for share in (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)},
}


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(folder: Path, file: str, damage: str) -> None:
    DAMAGES[damage](path_of(folder, 2) / file)
    with pytest.warns(CheckpointWarning, match="step-00000002.*going back"):
        found = newest(folder)
    assert found is not None
    assert found.state["step"] == 1


def test_without_a_whole_one_it_is_an_error(folder: Path) -> None:
    for step in (1, 2):
        cut(0.5)(path_of(folder, step) / "model.safetensors")
    with pytest.warns(CheckpointWarning), pytest.raises(CheckpointError, match="all 2 checkpoints"):
        newest(folder)


@pytest.mark.parametrize(
    "manifest", ["[]", "{}", '{"format": 2, "sha256": {}}', '{"format": 1, "sha256": 3}', "[" * 9999]
)
def test_a_strange_manifest_is_refused(folder: Path, manifest: str) -> None:
    (path_of(folder, 2) / "manifest.json").write_text(manifest)
    with pytest.raises(CheckpointError, match="manifest"):
        load(path_of(folder, 2))


def test_a_manifest_cannot_reach_out_of_its_folder(folder: Path) -> None:
    manifest = path_of(folder, 2) / "manifest.json"
    values = json.loads(manifest.read_text())
    values["sha256"]["../step-00000001/model.safetensors"] = values["sha256"].pop("model.safetensors")
    manifest.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match="not a file of a checkpoint"):
        load(path_of(folder, 2))


def test_what_was_damaged_is_replaced_when_its_step_comes_again(folder: Path) -> None:
    cut(0.5)(path_of(folder, 2) / "model.safetensors")
    save(folder, 2, example(2))
    found = newest(folder)
    assert found is not None
    assert found.state["step"] == 2


@pytest.mark.parametrize("call", ["mkdir", "fsync", "rename"])
def test_a_disk_that_fails_leaves_what_was_there(folder: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, fails)
    with pytest.raises(CheckpointError, match=r"step 3 cannot be written.*No space left.*last checkpoint is .*00002"):
        save(folder, 3, example(3))
    monkeypatch.undo()
    assert sorted(entry.name for entry in folder.iterdir()) == ["step-00000001", "step-00000002"]
    assert load(path_of(folder, 2)).state["step"] == 2


def test_only_what_is_needed_is_kept(folder: Path) -> None:
    save(folder, 100_000_000, example(3))
    shutil.copytree(path_of(folder, 1), folder / ".step-00000009.partial")
    (folder / "notes").mkdir()
    prune(folder, {2, 100_000_000})
    assert steps_in(folder) == [2, 100_000_000]
    assert sorted(entry.name for entry in folder.iterdir()) == ["notes", "step-00000002", "step-100000000"]


def test_shared_tensors_are_stored_once_and_come_back_shared() -> None:
    module, other = tiny(), tiny()
    weights = weights_of(module)
    assert "source_embedding.weight" in weights
    assert not {"target_embedding.weight", "head.embedding.weight"} & weights.keys()
    put_weights(other, {name: weight + 1 for name, weight in weights.items()})
    state = other.state_dict()
    assert torch.equal(state["head.embedding.weight"], weights["source_embedding.weight"] + 1)
    assert state["head.embedding.weight"].data_ptr() == state["source_embedding.weight"].data_ptr()


def test_weights_of_another_model_are_refused() -> None:
    weights = weights_of(tiny())
    with pytest.raises(WeightsError, match="another model"):
        put_weights(tiny(tied="none"), weights)
    with pytest.raises(WeightsError, match=r"source_embedding.weight is \(13, 8\) and should be \(14, 8\)"):
        put_weights(tiny(vocab_size=14), weights)
