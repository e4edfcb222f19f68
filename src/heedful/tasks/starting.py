"""Weights to begin with: those of a model that reads, below its head; the head is new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from ..config import read_mapping
from ..data.published_tokenizer import NAME, PublishedTokenizer
from ..errors import ConfigError, DataError
from ..families.hf_io import read_checkpoint
from ..families.reader import ReaderConfig
from ..families.weights import put_weights, weights_of
from ..files import replacing
from .bundle import CONFIG, KEYS, Bundle

HEAD = "head."


@dataclass(frozen=True, eq=False)
class Base:
    """A model that was trained before: a bundle of masked words, of classes or of embeddings, or a published one."""

    config: ReaderConfig
    module: nn.Module
    tokenizer: PublishedTokenizer

    @classmethod
    def read(cls, folder: str | Path) -> Base:
        """A bundle's folder, or one in Hugging Face's layout."""
        folder = Path(folder)
        if _is_bundle(folder):
            bundle = Bundle.read(folder)
            config: Any = bundle.model
            module = bundle.module(folder) if isinstance(config, ReaderConfig) else nn.Identity()
        else:
            found = read_checkpoint(folder)
            config, module = found.config, found.module
        if not isinstance(config, ReaderConfig):
            raise ConfigError(f"{folder} is of the family {config.family}, which does not read as BERT and its kin do")
        if not (folder / NAME).is_file():
            raise DataError(f"{folder} has no {NAME}; the weights mean nothing without their tokeniser")
        tokenizer = PublishedTokenizer.load(folder / NAME)
        if tokenizer.largest >= config.vocab_size:
            told = f"has ids up to {tokenizer.largest:,}, but the model has {config.vocab_size:,} tokens"
            raise DataError(f"{folder / NAME} {told}; they are not of one model")
        return cls(config, module, tokenizer)

    def weights(self, head: str) -> dict[str, Tensor]:
        """All of them where the head is the same and has no classes, otherwise those below it."""
        whole = head == self.config.head != "classes"
        return {name: tensor for name, tensor in weights_of(self.module).items() if whole or not name.startswith(HEAD)}


def write_start(path: Path, weights: Mapping[str, Tensor]) -> None:
    """Keep weights in a run's folder: it goes on without the model they came from."""
    with replacing(path) as partial:
        save_file({name: tensor.cpu().contiguous() for name, tensor in weights.items()}, partial)
        partial.chmod(0o644)  # the library makes it the owner's alone


def read_start(path: Path) -> dict[str, Tensor]:
    """What `write_start` wrote."""
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: the weights to begin with cannot be read: {error}") from None


def begin_with(module: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Put weights into a module: all below its head and no others, every shape right, or nothing is changed.

    Of the head, what is not given stays as it is.
    """
    own = {name: tensor for name, tensor in weights_of(module).items() if name.startswith(HEAD)}
    put_weights(module, {**own, **weights})


def _is_bundle(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and set(KEYS) <= read_mapping(folder / CONFIG).keys()
