"""What a run whose model reads keeps in its folder: tokeniser, token stores, and the weights it begins with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torch import Tensor

from ..data.published_tokenizer import NAME, ROLES, PublishedTokenizer
from ..data.store import TokenStore
from ..data.text_tokenizers import learn_tokenizer
from ..files import sha256_of
from .reading_config import ReadingConfig
from .starting import Base, read_start, write_start

TRAIN, VALID, START = "train", "valid", "start.safetensors"
WRITTEN = (TRAIN, VALID, START, NAME, ROLES)


@dataclass(frozen=True, eq=False)
class ReadingData:
    """Everything training needs from the data."""

    folder: Path
    tokenizer: PublishedTokenizer
    train: TokenStore
    valid: TokenStore

    @classmethod
    def open(cls, folder: Path) -> Self:
        """What was written there; DataError where it is not whole."""
        stores = TokenStore(folder / TRAIN), TokenStore(folder / VALID)
        return cls(folder, PublishedTokenizer.load(folder / NAME), *stores)

    def start(self) -> dict[str, Tensor] | None:
        """The weights to begin with, of a run that has a base."""
        path = self.folder / START
        return read_start(path) if path.exists() else None

    def identity(self) -> dict[str, str]:
        """What must stay the same for a run to go on, as fingerprints short enough to be shown."""
        start = self.folder / START
        found = {
            "training data": self.train.fingerprint,
            "validation data": self.valid.fingerprint,
            "tokeniser": self.tokenizer.fingerprint,
            **({"weights to begin with": sha256_of(start)} if start.exists() else {}),
        }
        return {name: fingerprint[:16] for name, fingerprint in found.items()}


def settle_tokenizer(config: ReadingConfig, folder: Path, texts: Iterable[str], *, keep: bool) -> PublishedTokenizer:
    """The base's, beside whose tokeniser its weights are kept, or one learned from the texts; in the folder.

    With `keep`, the one that is there: a run that has trained has no other.
    """
    if keep:
        return PublishedTokenizer.load(folder / NAME)
    if config.base is None:
        tokenizer = learn_tokenizer(texts, config.tokenizer)
        (folder / START).unlink(missing_ok=True)
    else:
        base = Base.read(config.base)
        tokenizer = base.tokenizer
        write_start(folder / START, base.weights(config.head))
    tokenizer.save(folder / NAME)
    return tokenizer
