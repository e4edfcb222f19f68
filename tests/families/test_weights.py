"""Weights in a file: shared tensors once, and nothing that does not fit goes in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import heedful
from heedful.families.weights import WeightsError, read_weights, write_weights

TINY: dict[str, Any] = {"vocab_size": 12, "d_model": 8, "n_heads": 2, "d_ff": 16, "n_encoder_layers": 1}


def tiny(**changes: Any) -> Any:
    return heedful.build("tiny", **{**TINY, **changes})


@pytest.mark.parametrize("tied", ["all", "output", "none"])
def test_written_weights_are_read_back_exactly(tied: str, tmp_path: Path) -> None:
    written, read = tiny(tied=tied), tiny(tied=tied)
    write_weights(written, tmp_path / "w.safetensors")
    read_weights(read, tmp_path / "w.safetensors")
    for (name, item), two in zip(written.state_dict().items(), read.state_dict().values(), strict=True):
        assert torch.equal(item, two), name


def test_a_shared_tensor_is_stored_once(tmp_path: Path) -> None:
    model = tiny(tied="all")
    write_weights(model, tmp_path / "w.safetensors")
    stored = load_file(tmp_path / "w.safetensors")
    assert sum(tensor.numel() for tensor in stored.values()) == sum(p.numel() for p in model.parameters())


def test_missing_unknown_and_misshapen_tensors_are_all_named(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write_weights(tiny(), path)
    tensors = load_file(path)
    first, second, *_ = tensors
    del tensors[first]
    tensors[second] = torch.zeros(3, 3, 3)
    tensors["extra"] = torch.zeros(1)
    save_file(tensors, path)
    model = tiny()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(WeightsError) as caught:
        read_weights(model, path)
    for message in (f"{first} is missing", "extra has no place", f"{second} is (3, 3, 3)"):
        assert message in str(caught.value)
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name]), "nothing is changed by a file that does not fit"


def test_an_untied_file_fits_a_tied_model_only_if_its_copies_are_equal(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    model = tiny(tied="all")
    names = [name for name, tensor in model.state_dict().items() if tensor.shape == (12, 8)]
    assert len(names) > 1
    save_file({name: tensor.clone() for name, tensor in model.state_dict().items()}, path)
    read_weights(tiny(tied="all"), path)
    tensors = load_file(path)
    tensors[names[-1]] = tensors[names[-1]] + 1
    save_file(tensors, path)
    with pytest.raises(WeightsError, match="differs"):
        read_weights(tiny(tied="all"), path)


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_a_truncated_weight_file_is_refused(keep: int, tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    write_weights(tiny(), path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(WeightsError, match="cannot be read"):
        read_weights(tiny(), path)
