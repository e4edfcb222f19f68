"""The three builds of chapter 10: the maps agree where they should, and each wrong call differs for its reason."""

from __future__ import annotations

import pytest
import torch

from heedful.learn.figures import figure_data
from heedful.learn.figures.models import REAL, SOURCE_LENGTH, calls


def test_the_three_builds_agree_to_rounding() -> None:
    data = figure_data("three-builds", "en")
    assert data["yours"] == data["heedful"] == data["torch"]["right"]
    assert data["difference"]["right"] < 1e-12


@pytest.mark.parametrize("call", ["polarity", "memory", "future", "norm_first", "batch_first"])
def test_a_wrong_call_is_wrong(call: str) -> None:
    data = figure_data("three-builds", "en")
    yours, wrong = torch.tensor(data["yours"]), torch.tensor(data["torch"][call])
    assert yours.shape == wrong.shape
    assert (yours - wrong).abs().max() > 0.1
    assert data["difference"][call] > 0.1


def test_torch_hides_where_its_masks_are_true() -> None:
    keep = torch.arange(SOURCE_LENGTH) < torch.tensor(REAL)[:, None]
    assert calls(keep)["right"]["src_key_padding_mask"].sum(dim=1).tolist() == [SOURCE_LENGTH - n for n in REAL]
    assert calls(keep)["right"]["tgt_mask"].tolist()[0] == [False, True, True, True]
    assert calls(keep)["memory"]["memory_key_padding_mask"] is None
