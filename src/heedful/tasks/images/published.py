"""How the authors of a published model prepared its images: preprocessor_config.json.

A setting that changes pixels is read, or refused by its name where it is not supported; one that is left out, or null,
means what the authors' own class takes it for.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ...config import read_mapping
from ...data.images import RESAMPLING
from ...errors import ConfigError, unknown
from ...families import PublishedWarning
from ...families.vit import ImageConfig
from .preparing import ImageSettings

FILE = "preprocessor_config.json"

USUAL: dict[str, Any] = {
    "do_resize": True,
    "do_center_crop": False,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": 0.5,
    "image_std": 0.5,
    "do_convert_rgb": False,
}
KINDS: dict[str, dict[str, Any]] = {
    "vit": USUAL | {"size": 224, "resample": 2},
    "deit": USUAL | {"size": 256, "resample": 3, "do_center_crop": True, "crop_size": 224},
}
HARMLESS = {
    "_valid_processor_keys",
    "auto_map",
    "crop_size",  # where nothing is cropped
    "data_format",
    "device",
    "disable_grouping",
    "feature_extractor_type",
    "image_processor_type",
    "image_seq_length",
    "input_data_format",
    "pad_size",  # do_pad is what pads
    "processor_class",
    "return_tensors",
}
SUPPORTED = {"default_to_square": True}  # of other keys: the one value; of those not named, false


def published_settings(folder: Path, config: ImageConfig, labels: tuple[str, ...]) -> ImageSettings:
    """What the folder says; where it says nothing, the usual of ViT, with a warning."""
    path = folder / FILE
    if path.is_file():
        try:
            return _read(read_mapping(path), config, labels)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
    size = config.image_size
    warnings.warn(
        f"{folder} has no {FILE}, so how its images were prepared is not known; they are resized to {size} x {size}, "
        "and pixels go from -1 to 1, as is usual. If its authors did otherwise, its answers will be worse",
        PublishedWarning,
        stacklevel=2,
    )
    return _read({"size": size, "image_processor_type": "ViTImageProcessor"}, config, labels)


def _read(given: Mapping[str, Any], config: ImageConfig, labels: tuple[str, ...]) -> ImageSettings:
    usual = KINDS[_kind(given, config)]
    for key, value in given.items():
        if key not in usual.keys() | HARMLESS and value not in (None, SUPPORTED.get(key, False)):
            raise ConfigError(f"{key}={value!r} is not supported; leave it out if it changes no pixel")
    said = usual | {key: value for key, value in given.items() if value is not None}
    flags = {key: value for key, value in said.items() if key.startswith("do_") and key in usual}
    for key, value in flags.items():
        if not isinstance(value, bool):
            raise ConfigError(f"{key} must be true or false, not {value!r}")
    if flags["do_convert_rgb"] and config.n_channels != 3:
        raise ConfigError(f"do_convert_rgb makes 3 channels, but the model reads {config.n_channels}")
    return ImageSettings(
        labels=labels,
        resize=_size("size", said["size"]) if flags["do_resize"] else (),
        crop=_size("crop_size", said.get("crop_size")) if flags["do_center_crop"] else (),
        resample=_resample(said["resample"]),
        rescale=said["rescale_factor"] if flags["do_rescale"] else 1.0,
        mean=_each(said["image_mean"] if flags["do_normalize"] else 0.0, config.n_channels),
        std=_each(said["image_std"] if flags["do_normalize"] else 1.0, config.n_channels),
    )


def _kind(given: Mapping[str, Any], config: ImageConfig) -> str:
    """Whose defaults hold: those of the class that is named, or of the model."""
    name = given.get("image_processor_type") or given.get("feature_extractor_type")
    if name is None:
        return config.family
    kind = re.sub(r"(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", str(name)).lower()
    if kind not in KINDS:
        raise ConfigError(unknown("or unsupported processor", name, ("ViTImageProcessor", "DeiTImageProcessor")))
    return kind


def _size(key: str, value: Any) -> tuple[int, ...]:
    """One number is the side of a square."""
    if isinstance(value, int):
        return value, value
    if isinstance(value, list | tuple) and len(value) == 2:
        return tuple(value)
    if isinstance(value, Mapping):
        named = {name: side for name, side in value.items() if side is not None}
        if named.keys() == {"height", "width"}:
            return named["height"], named["width"]
        if named.keys() == {"shortest_edge"} and key == "size":
            return (named["shortest_edge"],)
    edge = ' or {"shortest_edge": …}' if key == "size" else ""
    raise ConfigError(f'{key} must be a number, {{"height": …, "width": …}}{edge}, not {value!r:.100}')


def _resample(number: Any) -> Any:
    if not isinstance(number, int) or not 0 <= number < len(RESAMPLING):
        raise ConfigError(f"resample is a number from 0 to {len(RESAMPLING) - 1}, not {number!r:.100}")
    return RESAMPLING[number]


def _each(value: Any, n_channels: int) -> tuple[float, ...]:
    """One number holds for every channel."""
    return cast("tuple[float, ...]", value if isinstance(value, list | tuple) else (value,) * n_channels)
