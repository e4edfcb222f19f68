"""A model to begin with: all of its weights, its tokeniser, the tokens it was trained with, and how it searches."""

from __future__ import annotations

from pathlib import Path

from ...config import read_mapping
from ...core import EncoderDecoder
from ...errors import ConfigError, DataError
from ...families.checkpoint import read_checkpoint
from ..bundle import CONFIG, KEYS, Bundle
from ..importing import MAKERS
from .rewriter import TextToTextGenerator


def read_base(folder: str | Path) -> TextToTextGenerator:
    """A bundle of this task, or a published model in Hugging Face's layout, that training can go on from."""
    folder = Path(folder)
    base = _bundled(folder) if _is_bundle(folder) else _published(folder)
    tokens = base.settings.tokens
    if not base.settings.joint:
        raise ConfigError(f"{folder} reads with one tokeniser and writes with another; training goes on with one only")
    if not tokens.end or tokens.pad is None:
        missing = "end" if not tokens.end else "pad"
        raise ConfigError(f"{folder} does not say which token is the {missing}; its config.json should")
    if base.tokenizer.encode("")[-1:] != [tokens.end[0]]:
        name = base.tokenizer.token_of(tokens.end[0])
        raise DataError(f"{folder}: the tokeniser does not put the model's end, {name!r}, behind a text")
    return base


def _bundled(folder: Path) -> TextToTextGenerator:
    bundle = Bundle.read(folder)
    if bundle.task != TextToTextGenerator.task:
        raise ConfigError(f"{folder} is a model for {bundle.task}, and not for {TextToTextGenerator.task}")
    return TextToTextGenerator.from_bundle(folder, bundle)


def _published(folder: Path) -> TextToTextGenerator:
    found = read_checkpoint(folder)
    if not isinstance(found.module, EncoderDecoder):
        raise ConfigError(f"{folder} is of the family {found.config.family}, which has no encoder and decoder")
    rewriter: TextToTextGenerator = MAKERS[TextToTextGenerator.task](found, folder)
    return rewriter


def _is_bundle(folder: Path) -> bool:
    return (folder / CONFIG).is_file() and set(KEYS) <= read_mapping(folder / CONFIG).keys()
