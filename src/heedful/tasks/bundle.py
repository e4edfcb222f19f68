"""Bundles: folders with config.json, model.safetensors, the files of the task (tokenizers), a card and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError
from torch import nn

from ..config import Config, FamilyConfig, read_mapping, write_mapping
from ..data.published_tokenizer import NAME, PublishedTokenizer
from ..errors import ConfigError, DataError, HeedfulError, unknown
from ..families import GenerationDefaults, build, config_of
from ..families.sizes import check_config
from ..families.weights import WeightsError, read_weights, stored_shapes, write_weights
from ..files import sha256_of
from ..generation import GenerationConfig

C = TypeVar("C", bound=Config)
FORMAT = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
# The settings that a published generation config shares with GenerationConfig; the rest are its special tokens.
GENERATION = {field.name for field in fields(GenerationConfig)} & {field.name for field in fields(GenerationDefaults)}
KEYS = ("format", "task", "model", "settings", "sha256")


class BundleError(HeedfulError, ValueError):
    """A folder that holds no bundle, or an incomplete one."""


@dataclass(frozen=True)
class Bundle:
    """The content of config.json: the task, the model's config, and the settings of the task."""

    task: str
    model: FamilyConfig
    settings: Mapping[str, Any]

    def write(self, folder: str | Path, module: nn.Module, beside: Sequence[str] = ()) -> None:
        """Write the weights, then config.json with the checksums of all files, those of the task (`beside`) included.

        A folder whose config.json matches its files is complete.
        """
        folder = Path(folder)
        try:
            write_weights(module, folder / WEIGHTS)
        except SafetensorError as error:
            raise BundleError(f"{folder / WEIGHTS} cannot be written: {error}") from None
        sums = {name: sha256_of(folder / name) for name in (WEIGHTS, *beside)}
        values = (FORMAT, self.task, self.model.to_dict(), dict(self.settings), sums)
        write_mapping(folder / CONFIG, dict(zip(KEYS, values, strict=True)))

    @classmethod
    def read(cls, folder: str | Path) -> Bundle:
        """Read the bundle in a folder and verify its files; the weights are not loaded yet."""
        folder = Path(folder)
        if not folder.is_dir():
            raise BundleError(
                f"{folder} is not a folder; a model is the folder that training wrote (--out), or ko-en or en-ko"
            )
        if not (folder / CONFIG).exists():
            begun = (folder / "checkpoints").is_dir()
            why = (
                "its training has not finished; continue it with --resume"
                if begun
                else "it was not written by training"
            )
            raise BundleError(f"{folder} holds no trained model: {CONFIG} is missing; {why}")
        try:
            values = _checked(read_mapping(folder / CONFIG))
            bundle = cls(str(values["task"]), config_of(values["model"]), dict(values["settings"]))
        except (ConfigError, TypeError, ValueError) as error:
            raise BundleError(f"{folder / CONFIG} is not a bundle's config: {error}") from None
        for name, expected in values["sha256"].items():
            path = folder / Path(name).name
            try:
                actual = sha256_of(path)
            except OSError as error:
                raise BundleError(f"{path} cannot be read: {error.strerror}") from None
            if actual != expected:
                raise BundleError(f"{path} does not belong to this {CONFIG}; restore both files from one run")
        return bundle

    def settings_as(self, kind: type[C], folder: str | Path) -> C:
        """Return the settings as a config of the task; raise BundleError if they are invalid."""
        try:
            return kind.from_dict(self.settings)
        except (ConfigError, TypeError) as error:
            raise BundleError(f"{folder}: the settings of the bundle cannot be used: {error}") from None

    def module(self, folder: str | Path) -> nn.Module:
        """Build the model and load its weights, in evaluation mode, once their sizes are known to agree."""
        path = Path(folder) / WEIGHTS
        shapes = stored_shapes(path)
        try:
            check_config(self.model, shapes)
        except ConfigError as error:
            raise BundleError(f"{Path(folder) / CONFIG} does not fit {WEIGHTS}: {error}") from None
        except WeightsError as error:
            raise WeightsError(f"{path}: {error}") from None
        module: nn.Module = build(self.model)
        read_weights(module, path)
        return module.eval()


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values if they have exactly the keys of this format; ConfigError otherwise."""
    if "model_type" in values and "task" not in values:
        raise ConfigError("it belongs to a published model; import it first: heedful import FOLDER --out DIR")
    if missing := [key for key in KEYS if key not in values]:
        raise ConfigError(f"it lacks {', '.join(missing)}")
    if extra := [key for key in values if key not in KEYS]:
        raise ConfigError(unknown("key", extra[0], KEYS))
    if values["format"] != FORMAT:
        raise ConfigError(f"its format is {values['format']!r}, and this version of Heedful reads {FORMAT}")
    if not isinstance(values["sha256"], dict) or WEIGHTS not in values["sha256"]:
        raise ConfigError(f"sha256 does not name {WEIGHTS}")
    return values


def is_bundle(folder: Path) -> bool:
    """Whether a folder holds a bundle rather than a published model."""
    return (folder / CONFIG).is_file() and set(KEYS) <= read_mapping(folder / CONFIG).keys()


def sized_tokenizer(path: Path, vocab_size: int) -> PublishedTokenizer:
    """Load a tokenizer; DataError where it has more tokens than the model."""
    tokenizer = PublishedTokenizer.load(path)
    if tokenizer.largest >= vocab_size:
        raise DataError(
            f"{path} has ids up to {tokenizer.largest:,}, but the model has {vocab_size:,} tokens; "
            "they do not belong together"
        )
    return tokenizer


def hf_tokenizer(folder: Path, vocab_size: int) -> PublishedTokenizer:
    """Load the tokenizer of a published folder; the DataError for a missing one says how to create it."""
    if not (folder / NAME).is_file():
        others = sorted(path.name for path in folder.iterdir() if path.suffix in (".model", ".spm", ".txt", ".vocab"))
        there = f"; {', '.join(others)} is read by other programs" if others else ""
        raise DataError(
            f"{folder} has no {NAME}{there}. transformers writes one: "
            f"AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
    return sized_tokenizer(folder / NAME, vocab_size)


def split_defaults(defaults: GenerationDefaults) -> tuple[GenerationDefaults, GenerationConfig]:
    """Split a published generation config into its special tokens and the settings of generation."""
    blank = GenerationDefaults()
    tokens = defaults.changed(**{name: getattr(blank, name) for name in GENERATION})
    return tokens, GenerationConfig(**{name: getattr(defaults, name) for name in GENERATION})


def join_defaults(tokens: GenerationDefaults, generation: GenerationConfig) -> GenerationDefaults:
    """Join special tokens and settings, which `split_defaults` separates."""
    return tokens.changed(**{name: getattr(generation, name) for name in GENERATION})
