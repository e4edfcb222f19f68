"""The predictor of image classification, and the preprocessing it was trained with (preprocessor_config.json).

Shapes: B batch, H height, W width, C channels.
"""

import base64
import os
import re
import struct
import warnings
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...config import Config, FamilyConfig, read_mapping
from ...core import ClassHead, PatchEmbedding
from ...data.images import RESAMPLING, Pixels, pixels_of, resized
from ...errors import ConfigError, DataError, unknown
from ...families import Imported, PublishedWarning
from ...families.vit import ImageConfig
from ...lens.recorder import record
from ...lens.report import SeenImage
from ...lens.trace import trace
from ..inspection.document import Inspection, check_options, patch_token, ranked_classes
from ..predictor import InputKind, OutputKind, Predictor, finite, in_chunks
from ..text_encoder import BATCH_TOKENS

PREPROCESSOR = "preprocessor_config.json"
PREFIX = ("class", "distillation")  # the tokens before the patches, in order

PROCESSOR_DEFAULTS: dict[str, Any] = {
    "do_resize": True,
    "do_center_crop": False,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": 0.5,
    "image_std": 0.5,
    "do_convert_rgb": False,
}
PROCESSORS: dict[str, dict[str, Any]] = {
    "vit": PROCESSOR_DEFAULTS | {"size": 224, "resample": 2},
    "deit": PROCESSOR_DEFAULTS | {"size": 256, "resample": 3, "do_center_crop": True, "crop_size": 224},
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


@dataclass(frozen=True, kw_only=True)
class ImageSettings(Config):
    """The names of the classes, in the order of the model's output, and how pixels are prepared, in this order.

    `resize`: to (height, width); or to one number, which the shorter side becomes; empty: not at all. `crop`: the
    middle (height, width); empty: all of it. Then pixel · `rescale`, less `mean`, over `std`, for each channel.
    """

    title: ClassVar[str] = "images"

    labels: tuple[str, ...]
    resize: tuple[int, ...]
    crop: tuple[int, ...] = ()
    resample: Literal["nearest", "lanczos", "bilinear", "bicubic", "box", "hamming"] = "bilinear"
    rescale: float = 1 / 255
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def check(self) -> None:
        twice = sorted(label for label, times in Counter(self.labels).items() if times > 1)
        self.require(not twice, f"the labels {', '.join(twice)} occur twice")
        self.require(len(self.resize) <= 2, f"resize is (height, width), one number or nothing, not {self.resize}")
        self.require(len(self.crop) in (0, 2), f"crop is (height, width) or nothing, not {self.crop}")
        self.require(
            all(size >= 1 for size in self.resize + self.crop),
            f"resize and crop are at least 1, not {self.resize} and {self.crop}",
        )
        self.require(
            len(self.resize) != 1 or bool(self.crop),
            "if resize is one number (the shorter side), crop is needed too",
        )
        sides = self.resize if len(self.resize) == 2 else self.resize * 2
        self.require(
            all(cut <= side for cut, side in zip(self.crop, sides, strict=False)),
            f"a crop of {self.crop} is larger than what resize={self.resize} gives",
        )
        self.require(len(self.mean) == len(self.std), "mean and std need one number for each channel")
        self.require(all(std > 0 for std in self.std), f"std must be above 0, not {self.std}")


class ImageClassifier(Predictor[Any, dict[str, float]]):
    """Classifies images: what `heedful.load` returns for image classification.

    `predict` returns the probability of every class by name for each image, the most likely first. An image is a path,
    the bytes of a file, a Pillow image, or an array or nested lists: see `data.images`.
    """

    task: ClassVar[str] = "images"
    settings_class: ClassVar[type[Config]] = ImageSettings
    item_name: ClassVar[str] = "image"
    input_kind: ClassVar[InputKind] = "image"
    output_kind: ClassVar[OutputKind] = "labels"
    batch_method: ClassVar[str | None] = "look"

    def __init__(self, config: FamilyConfig, module: nn.Module, settings: ImageSettings) -> None:
        super().__init__(config, module, settings)
        n_classes = _n_classes(config, module)
        if len(settings.labels) != n_classes:
            raise ConfigError(f"the model tells {n_classes} classes apart, but has {len(settings.labels)} labels")
        self.shape: tuple[int, int, int] = self.module.embedding.shape  # (C, height, width)
        n_channels, *size = self.shape
        if len(settings.mean) != n_channels:
            raise ConfigError(f"the model reads {n_channels} channels, but mean has {len(settings.mean)} numbers")
        output_size = settings.crop or settings.resize
        if output_size and tuple(output_size) != tuple(size):
            raise ConfigError(f"the model reads images of {tuple(size)}, but they are prepared as {output_size}")

    def predict_valid(self, images: Sequence[Any]) -> list[dict[str, float]]:
        return [
            answer
            for chunk in in_chunks(enumerate(images), self.batch_size)
            for answer in self.look([self._numbered(image, index) for index, image in chunk])
        ]

    def is_single(self, shape: tuple[int, ...]) -> bool:
        return len(shape) == 2 or (len(shape) == 3 and shape[-1] in (1, 3, 4))

    @property
    def batch_size(self) -> int:
        """The number of images that are run together."""
        return max(1, BATCH_TOKENS // self.module.embedding.n_patches)

    def prepared(self, image: Any) -> Tensor:
        n_channels, height, width = self.shape
        return torch.from_numpy(prepare_pixels(pixels_of(image, n_channels), self.settings, height, width))

    @torch.inference_mode()
    def look(self, prepared: Sequence[Tensor]) -> list[dict[str, float]]:
        """Return what `predict` does, for one batch of images as `prepared` returns them."""
        if not prepared:
            return []
        scores: Tensor = self.module(torch.stack(list(prepared)).to(self.module.embedding.project.weight))
        return [
            dict(sorted(zip(self.settings.labels, shares, strict=True), key=lambda pair: -pair[1]))
            for shares in finite(scores.float()).softmax(dim=-1).tolist()
        ]

    @classmethod
    def from_checkpoint(cls, checkpoint: Imported, folder: Path) -> Self:
        """Return a published model with the preprocessing of its authors."""
        config: Any = checkpoint.config
        n_classes = _n_classes(config, checkpoint.module)
        times = Counter(checkpoint.labels)  # a crane is a bird and a machine: names that several have get their number
        names = (f"{name} ({n})" if times[name] > 1 else name for n, name in enumerate(checkpoint.labels))
        labels = tuple(names) or tuple(map(str, range(n_classes)))
        return cls(config, checkpoint.module, published_settings(folder, config, labels))

    def hf_files(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the preprocessing as the config of a transformers image processor."""
        settings, sizes = self.settings, {1: ("shortest_edge",), 2: ("height", "width")}
        processor: dict[str, Any] = {
            "image_processor_type": f"{'DeiT' if settings.crop else 'ViT'}ImageProcessor",
            "do_resize": bool(settings.resize),
            "do_center_crop": bool(settings.crop),
            "do_rescale": True,
            "rescale_factor": settings.rescale,
            "resample": RESAMPLING.index(settings.resample),
            "do_normalize": True,
            "image_mean": list(settings.mean),
            "image_std": list(settings.std),
        }
        for key, size in (("size", settings.resize), ("crop_size", settings.crop)):
            if size:
                processor[key] = dict(zip(sizes[len(size)], size, strict=True))
        return {PREPROCESSOR: processor}

    def inspect(self, item: Any, inspection: Inspection, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return the look document of an image: its pixels, patches and class probabilities."""
        check_options(options, self)
        classifier, prepared = self.hookable_copy(), self.prepared(item)
        with trace(classifier.module) as seen:
            (shares,) = classifier.look([prepared])
        embedding, (_, height, width) = self.module.embedding, self.shape
        rows, columns = height // embedding.patch_size, width // embedding.patch_size
        prefix = [patch_token(name, special=True) for name in PREFIX[: len(embedding.prefix)]]
        patches = [patch_token(f"{row + 1},{column + 1}") for row in range(rows) for column in range(columns)]
        return {
            "kind": "image",
            "question": os.fspath(item) if isinstance(item, str | os.PathLike) else None,
            "answer": next(iter(shares)),
            "sequences": {"source": [*prefix, *patches]},
            "classes": ranked_classes(shares),
            "image": {
                "png": "data:image/png;base64," + base64.b64encode(png(self._pixels(prepared))).decode("ascii"),
                "size": height,
                "patch": embedding.patch_size,
                "rows": rows,
                "columns": columns,
                "prefix": len(prefix),
            },
            **inspection.internals(self.module, seen),
        }

    def _pixels(self, prepared: Tensor) -> Pixels:
        """Convert (C, H, W) as the model read it to (H, W, C) bytes; gray if it has neither 1 nor 3 channels."""
        settings = self.settings
        values = np.moveaxis(prepared.numpy(), 0, -1) * np.float64(settings.std) + np.float64(settings.mean)
        pixels: Pixels = np.rint(values / settings.rescale).clip(0, 255).astype(np.uint8)
        return pixels if pixels.shape[2] in (1, 3) else pixels.mean(axis=2, keepdims=True).astype(np.uint8)


def _n_classes(config: FamilyConfig, module: nn.Module) -> int:
    head = next((part for part in module.modules() if isinstance(part, ClassHead)), None)
    if head is None or not isinstance(module.embedding, PatchEmbedding):
        raise ConfigError(
            f"a model of the family {config.family!r} with the head {getattr(config, 'head', None)!r} cannot "
            "classify images; one with a classification head can"
        )
    return head.out_proj.out_features


def prepare_pixels(pixels: Pixels, settings: ImageSettings, height: int, width: int) -> NDArray[np.float32]:
    """Resize, crop and normalize (H, W, C) → (C, height, width), the size that the model reads."""
    pixels = resized(pixels, *_resized_shape(settings.resize, *pixels.shape[:2]), settings.resample)
    size = f"{pixels.shape[0]} x {pixels.shape[1]}"
    if settings.crop:
        crop_height, crop_width = settings.crop
        top, left = (pixels.shape[0] - crop_height) // 2, (pixels.shape[1] - crop_width) // 2
        if top < 0 or left < 0:
            raise DataError(f"it has {size} pixels, too few to crop {crop_height} x {crop_width} out of its middle")
        pixels = pixels[top : top + crop_height, left : left + crop_width]
    if pixels.shape[:2] != (height, width):
        raise DataError(f"it has {size} pixels, and this model, which resizes none, reads {height} x {width}")
    values = (pixels * np.float64(settings.rescale)).astype(np.float32)
    mean, std = (np.asarray(numbers, dtype=np.float32) for numbers in (settings.mean, settings.std))
    return np.moveaxis((values - mean) / std, -1, 0)


def _resized_shape(resize: tuple[int, ...], height: int, width: int) -> tuple[int, int]:
    if not resize:
        return height, width
    if len(resize) == 2:
        return resize[0], resize[1]
    short = resize[0]
    long = int(short * max(height, width) / min(height, width))
    return (short, long) if height < width else (long, short)


def published_settings(folder: Path, config: ImageConfig, labels: tuple[str, ...]) -> ImageSettings:
    """Return how the authors of a published model prepared its images, or ViT's defaults with a warning.

    A setting that changes pixels is applied, or refused by name if it is not supported; one that is missing or null has
    the default of the authors' own class.
    """
    path = folder / PREPROCESSOR
    if path.is_file():
        try:
            return _settings_from(read_mapping(path), config, labels)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
    size = config.image_size
    warnings.warn(
        f"{folder} has no {PREPROCESSOR}, so how its images were prepared is not known; they are resized to "
        f"{size} x {size}, and pixels go from -1 to 1, as is usual. If its authors did otherwise, its answers will be "
        "worse",
        PublishedWarning,
        stacklevel=2,
    )
    return _settings_from({"size": size, "image_processor_type": "ViTImageProcessor"}, config, labels)


def _settings_from(values: Mapping[str, Any], config: ImageConfig, labels: tuple[str, ...]) -> ImageSettings:
    name = values.get("image_processor_type") or values.get("feature_extractor_type")
    kind = config.family  # whose defaults apply, unless the folder names a class
    if name is not None:
        kind = re.sub(r"(ImageProcessor|FeatureExtractor)(Fast|Pil)?$", "", str(name)).lower()
    if kind not in PROCESSORS:
        raise ConfigError(unknown("or unsupported processor", name, ("ViTImageProcessor", "DeiTImageProcessor")))
    defaults = PROCESSORS[kind]
    for key, value in values.items():
        if key not in defaults.keys() | HARMLESS and value not in (None, SUPPORTED.get(key, False)):
            raise ConfigError(f"{key}={value!r} is not supported; leave it out if it changes no pixel")
    settings = defaults | {key: value for key, value in values.items() if value is not None}
    for key in defaults:
        if key.startswith("do_") and not isinstance(settings[key], bool):
            raise ConfigError(f"{key} must be true or false, not {settings[key]!r}")
    if settings["do_convert_rgb"] and config.n_channels != 3:
        raise ConfigError(f"do_convert_rgb makes 3 channels, but the model reads {config.n_channels}")
    resample = settings["resample"]
    if not isinstance(resample, int) or not 0 <= resample < len(RESAMPLING):
        raise ConfigError(f"resample is a number from 0 to {len(RESAMPLING) - 1}, not {resample!r:.100}")
    mean, std = (settings["image_mean"], settings["image_std"]) if settings["do_normalize"] else (0.0, 1.0)
    channels = [value if isinstance(value, list | tuple) else (value,) * config.n_channels for value in (mean, std)]
    return ImageSettings(
        labels=labels,
        resize=_side_lengths("size", settings["size"]) if settings["do_resize"] else (),
        crop=_side_lengths("crop_size", settings.get("crop_size")) if settings["do_center_crop"] else (),
        resample=cast("Any", RESAMPLING[resample]),
        rescale=settings["rescale_factor"] if settings["do_rescale"] else 1.0,
        mean=tuple(channels[0]),
        std=tuple(channels[1]),
    )


def _side_lengths(key: str, value: Any) -> tuple[int, ...]:
    """Return (height, width) or the shorter side; one number is the side of a square."""
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


@torch.inference_mode()
def see_image(classifier: ImageClassifier, image: Any, *, label: str = "", place: str = "") -> SeenImage:
    """Return what the class token attends to in the last layer, patch by patch; `label` is the true class.

    Its weights for itself and for DeiT's other token are left out, so a head's patches sum to less than 1.
    """
    module = classifier.module
    n_channels, height, width = classifier.shape
    last = len(module.encoder.layers) - 1
    with record(module, layers=last) as recording:
        (answer,) = classifier.predict([image])
    weights = recording.encoder[last][0, :, 0].float().cpu()  # (heads, prefix + patches): the row of the class token
    size = module.embedding.patch_size
    over = weights[:, -module.embedding.n_patches :].unflatten(1, (height // size, width // size))
    pixels = resized(pixels_of(image, n_channels), height, width, classifier.settings.resample)
    return SeenImage(Path(place).name, png(pixels), list(answer.items()), label, over.tolist())


def png(pixels: Pixels) -> bytes:
    """Encode gray or color pixels (H, W, C) as a PNG file, without Pillow."""
    height, width, n_channels = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # 0: no filter
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[n_channels], 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body)) for kind, body in chunks
    )
