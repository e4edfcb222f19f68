"""A bundle is a folder: config.json, model.safetensors, what its task adds (tokenisers), a card, metrics."""

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
from ..families.weights import read_weights, write_weights
from ..files import sha256_of
from ..generation import GenerationConfig

C = TypeVar("C", bound=Config)
FORMAT = 1
CONFIG, WEIGHTS = "config.json", "model.safetensors"
# What a published model says about generating is kept in two parts: its tokens, and how to generate.
GENERATION = {field.name for field in fields(GenerationConfig)} & {field.name for field in fields(GenerationDefaults)}
KEYS = ("format", "task", "model", "settings", "sha256")


class BundleError(HeedfulError, ValueError):
    """A folder that is no bundle, or not a whole one."""


@dataclass(frozen=True)
class Bundle:
    """What config.json says: which task, which model, and the task's own settings."""

    task: str
    model: FamilyConfig
    settings: Mapping[str, Any]

    def write(self, folder: str | Path, module: nn.Module, beside: Sequence[str] = ()) -> None:
        """Weights first, then config.json with the sums of all files: `beside` names those that the task has written.

        A folder whose config.json agrees with its files is whole.
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
        """The bundle in a folder, every file of it checked, its weights not yet used."""
        folder = Path(folder)
        if not folder.is_dir():
            raise BundleError(f"{folder} is not a folder; a model is the folder that training wrote (--out)")
        if not (folder / CONFIG).is_file():
            begun = (folder / "checkpoints").is_dir()
            why = "its training has not finished; go on with --resume" if begun else "it was not written by training"
            raise BundleError(f"{folder} holds no trained model: {CONFIG} is missing; {why}")
        try:
            values = _checked(read_mapping(folder / CONFIG))
            bundle = cls(str(values["task"]), config_of(values["model"]), dict(values["settings"]))
        except (ConfigError, TypeError, ValueError) as error:
            raise BundleError(f"{folder / CONFIG} is not a bundle's config: {error}") from None
        for name, expected in values["sha256"].items():
            path = folder / Path(name).name
            try:
                found = sha256_of(path)
            except OSError as error:
                raise BundleError(f"{path} cannot be read: {error.strerror}") from None
            if found != expected:
                raise BundleError(f"{path} is not the file that was written with {CONFIG}; restore both")
        return bundle

    def settings_as(self, kind: type[C], folder: str | Path) -> C:
        """The task's settings, checked."""
        try:
            return kind.from_dict(self.settings)
        except (ConfigError, TypeError) as error:
            raise BundleError(f"{folder}: the settings of the bundle cannot be used: {error}") from None

    def module(self, folder: str | Path) -> nn.Module:
        """The model with its weights, ready to use."""
        module: nn.Module = build(self.model)
        read_weights(module, Path(folder) / WEIGHTS)
        return module.eval()


def _checked(values: dict[str, Any]) -> dict[str, Any]:
    """All the keys and no others, of the format that is read here."""
    if "model_type" in values and "task" not in values:
        raise ConfigError("it is a published model's; first take it over: heedful import FOLDER --out DIR")
    if missing := [key for key in KEYS if key not in values]:
        raise ConfigError(f"it lacks {', '.join(missing)}")
    if strange := [key for key in values if key not in KEYS]:
        raise ConfigError(unknown("key", strange[0], KEYS))
    if values["format"] != FORMAT:
        raise ConfigError(f"its format is {values['format']!r}, and this version of Heedful reads {FORMAT}")
    if not isinstance(values["sha256"], dict) or WEIGHTS not in values["sha256"]:
        raise ConfigError(f"sha256 does not name {WEIGHTS}")
    return values


def is_bundle(folder: Path) -> bool:
    """Whether a folder holds a bundle, and not a published model."""
    return (folder / CONFIG).is_file() and set(KEYS) <= read_mapping(folder / CONFIG).keys()


def sized_tokenizer(path: Path, vocab_size: int) -> PublishedTokenizer:
    """The tokenizer in a file, which must have no more tokens than its model."""
    tokenizer = PublishedTokenizer.load(path)
    if tokenizer.largest >= vocab_size:
        sizes = f"has ids up to {tokenizer.largest:,}, but the model has {vocab_size:,} tokens"
        raise DataError(f"{path} {sizes}; they are not of one model")
    return tokenizer


def hf_tokenizer(folder: Path, vocab_size: int) -> PublishedTokenizer:
    """The tokenizer of a published folder, or how to get one."""
    if not (folder / NAME).is_file():
        others = sorted(path.name for path in folder.iterdir() if path.suffix in (".model", ".spm", ".txt", ".vocab"))
        there = f"; {', '.join(others)} is read by other programs" if others else ""
        raise DataError(
            f"{folder} has no {NAME}{there}. transformers writes one: "
            f"AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
    return sized_tokenizer(folder / NAME, vocab_size)


def split_defaults(defaults: GenerationDefaults) -> tuple[GenerationDefaults, GenerationConfig]:
    """What a published model says about generating: its tokens alone, and how to generate."""
    blank = GenerationDefaults()
    tokens = defaults.changed(**{name: getattr(blank, name) for name in GENERATION})
    return tokens, GenerationConfig(**{name: getattr(defaults, name) for name in GENERATION})


def join_defaults(tokens: GenerationDefaults, generation: GenerationConfig) -> GenerationDefaults:
    """What `split_defaults` took apart."""
    return tokens.changed(**{name: getattr(generation, name) for name in GENERATION})
