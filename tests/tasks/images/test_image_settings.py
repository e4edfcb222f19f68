"""How published images were prepared: every key that changes a pixel is read or refused by its name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from small_classifiers import as_imported, hf_classifier

from heedful.errors import ConfigError
from heedful.families import PublishedWarning
from heedful.families.vit import DeiTConfig, ImageConfig, ViTConfig
from heedful.tasks.images import ImageClassifier, ImageSettings
from heedful.tasks.images.predictor import published_settings

LABELS = ("cat", "dog")
DEIT = "DeiTImageProcessor"


def read(folder: Path, values: dict[str, Any], config: ImageConfig | None = None) -> ImageSettings:
    (folder / "preprocessor_config.json").write_text(json.dumps(values), encoding="utf-8")
    return published_settings(folder, config or ViTConfig(), LABELS)


def default_settings(**changes: Any) -> ImageSettings:
    half = (0.5, 0.5, 0.5)
    return ImageSettings(labels=LABELS, resize=(224, 224), mean=half, std=half).changed(**changes)


@pytest.mark.parametrize(
    ("values", "changes"),
    [
        ({}, {}),
        ({"image_processor_type": "ViTImageProcessorFast", "size": {"height": 9, "width": 8}}, {"resize": (9, 8)}),
        ({"feature_extractor_type": "ViTFeatureExtractor", "size": 384}, {"resize": (384, 384)}),
        ({"do_resize": False}, {"resize": ()}),
        ({"crop_size": 5}, {}),
        ({"do_center_crop": True, "crop_size": 5}, {"crop": (5, 5)}),
        ({"do_center_crop": True, "crop_size": [5, 6], "size": {"shortest_edge": 7}}, {"resize": (7,), "crop": (5, 6)}),
        ({"resample": 3}, {"resample": "bicubic"}),
        ({"resample": None, "do_rescale": None, "size": None, "do_pad": None}, {}),
        ({"do_rescale": False, "do_normalize": False}, {"rescale": 1.0, "mean": (0.0,) * 3, "std": (1.0,) * 3}),
        ({"image_mean": [0.1, 0.2, 0.3], "image_std": 2}, {"mean": (0.1, 0.2, 0.3), "std": (2.0,) * 3}),
        ({"do_pad": False, "data_format": "channels_first", "default_to_square": True, "processor_class": "A"}, {}),
        ({"do_convert_rgb": True}, {}),
        ({"image_processor_type": DEIT}, {"resize": (256,) * 2, "crop": (224,) * 2, "resample": "bicubic"}),
    ],
)  # fmt: skip
def test_processor_settings_are_read(values: dict[str, Any], changes: dict[str, Any], tmp_path: Path) -> None:
    assert read(tmp_path, values) == default_settings(**changes)


def test_a_file_without_a_class_means_that_of_its_model(tmp_path: Path) -> None:
    assert read(tmp_path, {"size": 232}, DeiTConfig()) == default_settings(
        resize=(232, 232), crop=(224, 224), resample="bicubic"
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"image_processor_type": "ConvNextImageProcessor"}, "'ConvNext.*allowed: DeiTImageProcessor, ViT"),
        ({"do_pad": True}, "do_pad=True is not supported"),
        ({"crop_pct": 0.9}, "crop_pct=0.9 is not supported"),
        ({"do_flip_channel_order": True}, "do_flip_channel_order=True is not"),
        ({"rescale_offset": True}, "rescale_offset=True is not"),
        ({"default_to_square": False}, "default_to_square=False is not"),
        ({"size": {"longest_edge": 9}}, "size must be a number"),
        ({"size": {"shortest_edge": 9}}, "crop is needed"),
        ({"size": {"height": 9, "width": 9, "shortest_edge": 9}}, "size must be a number"),
        ({"size": "large"}, "size must be a number"),
        ({"size": True}, "must be a whole number"),
        ({"size": -4}, "at least 1"),
        ({"do_center_crop": True}, "crop_size must be a number"),
        ({"do_center_crop": True, "crop_size": {"shortest_edge": 3}}, "crop_size must be"),
        ({"do_center_crop": True, "crop_size": 225}, "larger than what resize"),
        ({"resample": 9}, "resample is a number from 0 to 5"),
        ({"resample": "bicubic"}, "resample is a number"),
        ({"do_resize": "yes"}, "do_resize must be true or false"),
        ({"rescale_factor": "1/255"}, "rescale must be a number"),
        ({"image_mean": ["a", 1, 2]}, "mean"),
        ({"image_std": [0.5, 0.0, 0.5]}, "std must be above 0"),
        ({"image_std": [0.5]}, "one number for each"),
    ],
)  # fmt: skip
def test_unsupported_processor_settings_are_refused(values: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=rf"preprocessor_config\.json: .*{message}"):
        read(tmp_path, values)


def test_color_for_a_gray_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="makes 3 channels, but the model reads 1"):
        read(tmp_path, {"do_convert_rgb": True}, ViTConfig(n_channels=1))


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text("[1", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"preprocessor_config\.json"):
        published_settings(tmp_path, ViTConfig(), LABELS)


@pytest.mark.parametrize("config", [ViTConfig(image_size=32, n_channels=1), DeiTConfig(image_size=32, n_channels=1)])
def test_missing_processor_file_uses_defaults_with_a_warning(config: ImageConfig, tmp_path: Path) -> None:
    with pytest.warns(PublishedWarning, match=r"no preprocessor_config\.json.*resized to 32 x 32"):
        assert published_settings(tmp_path, config, LABELS) == default_settings(
            resize=(32, 32), mean=(0.5,), std=(0.5,)
        )


def test_duplicate_label_names_get_numbers(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text('{"size": 12}', encoding="utf-8")
    names = {0: "crane", 1: "dog", 2: "crane"}
    checkpoint = as_imported(hf_classifier("vit", num_labels=3, id2label=names, label2id={"crane": 2, "dog": 1}))
    assert ImageClassifier.from_checkpoint(checkpoint, tmp_path).settings.labels == ("crane (0)", "dog", "crane (2)")
    assert ImageClassifier.from_checkpoint(checkpoint._replace(labels=()), tmp_path).settings.labels == ("0", "1", "2")
