"""Pixels and probabilities are those of transformers, which resizes with the same Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from small_classifiers import as_imported, drawn, hf_classifier
from transformers import DeiTImageProcessorPil, ViTImageProcessorPil

from heedful.tasks.images import ImageClassifier

SIDES = {"height": 12, "width": 12}
SHAPES = [(12, 12), (31, 17), (5, 40), (3, 3), (201, 200), (14, 14)]
MEANS: dict[str, Any] = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
PROCESSORS: dict[str, tuple[str, Any]] = {
    "vit": ("vit", lambda: ViTImageProcessorPil(size=SIDES)),
    "vit bicubic, other means": ("vit", lambda: ViTImageProcessorPil(size=SIDES, resample=3, **MEANS)),
    "vit nearest, not normalized": ("vit", lambda: ViTImageProcessorPil(size=12, resample=0, do_normalize=False)),
    "vit lanczos, not rescaled": ("vit", lambda: ViTImageProcessorPil(size=[12, 12], resample=1, do_rescale=False)),
    "vit other factor": ("vit", lambda: ViTImageProcessorPil(size=SIDES, rescale_factor=1 / 127.5, image_mean=1.0)),
    "deit": ("deit", lambda: DeiTImageProcessorPil(size={"height": 15, "width": 14}, crop_size=SIDES)),
    "deit short side": ("deit", lambda: DeiTImageProcessorPil(size={"shortest_edge": 13}, crop_size=12, **MEANS)),
    "deit to colour": ("deit", lambda: DeiTImageProcessorPil(size=16, crop_size=12, do_convert_rgb=True)),
}


@pytest.mark.parametrize("name", PROCESSORS)
def test_pixels_and_probabilities_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    family, make = PROCESSORS[name]
    processor, model = make(), hf_classifier(family, id2label=dict(enumerate("abcde")))
    processor.save_pretrained(tmp_path)
    imported = ImageClassifier.from_checkpoint(as_imported(model), tmp_path)
    pictures = [drawn(*shape, 3, seed=sum(shape)) for shape in SHAPES]
    pixels = [processor(Image.fromarray(picture), return_tensors="pt")["pixel_values"][0] for picture in pictures]
    for picture, wanted in zip(pictures, pixels, strict=True):
        torch.testing.assert_close(imported.prepared(picture), wanted, rtol=0, atol=1e-6)
    with torch.no_grad():
        shares = model(torch.stack(pixels)).logits.softmax(dim=-1)
    for answer, row in zip(imported.predict(pictures), shares, strict=True):
        torch.testing.assert_close(torch.tensor([answer[label] for label in "abcde"]), row, rtol=1e-5, atol=1e-6)
        assert list(answer.values()) == sorted(answer.values(), reverse=True)


def test_a_grey_model_sees_grey_as_transformers_does(tmp_path: Path) -> None:
    processor, model = (
        ViTImageProcessorPil(size=SIDES, image_mean=[0.3], image_std=[0.7]),
        hf_classifier("vit", num_channels=1),
    )
    processor.save_pretrained(tmp_path)
    imported = ImageClassifier.from_checkpoint(as_imported(model), tmp_path)
    colour = Image.fromarray(drawn(30, 19, 3))
    wanted = processor(colour.convert("L"), return_tensors="pt")["pixel_values"][0]
    torch.testing.assert_close(imported.prepared(colour), wanted, rtol=0, atol=1e-6)
