"""The figures of the families: masks and shapes as each wiring defines them, and numbers of patches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from heedful.learn.figures import figure_data


@pytest.fixture
def models() -> dict[str, Any]:
    return {model["name"]: model for model in figure_data("wirings", "en")["models"]}


@pytest.mark.parametrize(
    ("name", "masks"),
    [
        ("BERT", [torch.ones(5, 5)]),
        ("GPT", [torch.ones(5, 5).tril()]),
        ("T5", [torch.ones(5, 5), torch.ones(4, 4).tril(), torch.ones(4, 5)]),
        ("ViT", [torch.ones(17, 17)]),
        ("Series", [torch.ones(9, 9)]),
        ("Captioner", [torch.ones(16, 16), torch.ones(4, 4).tril(), torch.ones(4, 16)]),
        ("Detector", [torch.ones(16, 16), torch.ones(6, 6), torch.ones(6, 16)]),
    ],
)
def test_each_model_sees_what_its_wiring_allows(models: dict[str, Any], name: str, masks: list[torch.Tensor]) -> None:
    assert [item["rows"] for item in models[name]["sees"]] == [mask.int().tolist() for mask in masks]


def test_only_decoders_with_a_memory_have_cross_attention(models: dict[str, Any]) -> None:
    for model in models.values():
        crossing = "cross_attention" in [block for blocks in model["stacks"].values() for block in blocks]
        assert crossing == (model["class"] == "EncoderDecoder")
    assert models["Detector"]["output"] == [6, 15]
    assert models["Series"]["output"] == [5, 1]


def test_the_numbers_of_patches_are_those_of_unfold() -> None:
    data = figure_data("price-patches", "en")
    days = torch.zeros(len(data["prices"]))
    assert data["counts"]["6,3"] == {"patches": 9, "days": 30}
    for key, count in data["counts"].items():
        length, stride = map(int, key.split(","))
        assert count["patches"] == days.unfold(0, length, stride).shape[0]
        assert count["days"] == length + (count["patches"] - 1) * stride
