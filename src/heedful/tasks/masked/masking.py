"""Which tokens are to be guessed, and what stands in their place.

Shapes: B rows, T tokens, P tokens to be guessed (and padding up to a round number), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...data.published_tokenizer import PublishedTokenizer
from ...data.text_batch import TextBatch, TextLoader
from ...errors import DataError
from .config import MaskingConfig

MASKS = ("[MASK]", "<mask>")
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "<pad>", "<unk>", "<s>", "</s>", *MASKS)
STEP = 64  # P is a multiple of this, so that there are few shapes

Ids = NDArray[np.int64]
Draws = NDArray[np.float64]  # (B, T, 3) from 0 to below 1: whether a token is guessed, what becomes of it, and which


@dataclass(frozen=True, eq=False)
class MaskedBatch(TextBatch):
    """Texts with gaps; `places` says where in all B · T tokens those to be guessed stand."""

    places: Tensor  # (P,)
    targets: Tensor  # (P,) what stood there
    counted: Tensor  # (P,) False for padding


class Masking:
    """Real words only: what a tokeniser puts around a text is neither guessed nor put in."""

    def __init__(self, config: MaskingConfig, tokenizer: PublishedTokenizer) -> None:
        self.config = config
        self.gap = gap_of(tokenizer)
        named = [name for key in tokenizer.roles if key.endswith("_token") and (name := tokenizer.role(key))]
        special = {tokenizer.id_of(name) for name in (*SPECIAL, *named)} | set(tokenizer.encode(""))
        self.is_word = np.array([index not in special for index in range(tokenizer.largest + 1)])
        self.words = np.flatnonzero(self.is_word)

    def batch(self, texts: TextBatch, draws: Draws) -> MaskedBatch:
        """With gaps by these draws; of every text that has words one is guessed at least, however short it is."""
        ids = texts.ids.numpy()
        may = self.is_word[ids] & texts.keep.numpy()
        lot = np.where(may, draws[..., 0], np.inf)
        chosen = may & ((lot < self.config.share) | (lot == lot.min(axis=1, keepdims=True)))
        kind, gaps, others = draws[..., 1], self.config.gaps, self.config.gaps + self.config.others
        drawn = self.words[(draws[..., 2] * len(self.words)).astype(np.int64)]
        changed = np.where(chosen & (kind < gaps), self.gap, ids)
        changed = np.where(chosen & (kind >= gaps) & (kind < others), drawn, changed)
        return _with_gaps(texts, changed, chosen)


def _with_gaps(texts: TextBatch, changed: Ids, chosen: NDArray[np.bool_]) -> MaskedBatch:
    ids, found = texts.ids.numpy(), np.flatnonzero(chosen)
    places = np.zeros(max(STEP, -(-len(found) // STEP) * STEP), dtype=np.int64)
    places[: len(found)] = found
    counted = np.arange(len(places)) < len(found)
    targets = np.where(counted, ids.flat[places], 0)
    whole: dict[str, Any] = {field.name: getattr(texts, field.name) for field in fields(texts)}
    whole["ids"] = torch.from_numpy(changed)
    return MaskedBatch(
        **whole,
        places=torch.from_numpy(places),
        targets=torch.from_numpy(targets),
        counted=torch.from_numpy(counted),
    )


def gap_of(tokenizer: PublishedTokenizer) -> int:
    """The id of the token that stands for a gap."""
    index = tokenizer.id_of(gap_name(tokenizer))
    assert index is not None
    return index


def gap_name(tokenizer: PublishedTokenizer) -> str:
    """The name of the token that stands for a gap; DataError where there is none."""
    usual = (name for name in MASKS if tokenizer.id_of(name) is not None)
    name = tokenizer.role("mask_token") or next(usual, None)
    if name is None:
        raise DataError(f"no token of the tokeniser stands for a gap ({', '.join(MASKS)}); words cannot be masked")
    return name


class MaskedLoader:
    """Texts with new gaps in every epoch, which (seed, epoch, step) alone decide."""

    def __init__(self, texts: TextLoader, masking: Masking) -> None:
        self.texts, self.masking = texts, masking

    @property
    def padding_share(self) -> float:
        """How much of what an epoch computes is padding: from 0 to 1."""
        return self.texts.padding_share

    def steps_per_epoch(self, epoch: int = 0) -> int:
        """How many batches an epoch has."""
        return self.texts.steps_per_epoch(epoch)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[MaskedBatch]:
        """The batches of an epoch in its own order, from the one numbered `start`."""
        for step, batch in enumerate(self.texts.epoch(epoch, start), start):
            random = np.random.default_rng([self.texts.seed, epoch, step])
            yield self.masking.batch(batch, random.random((*batch.ids.shape, 3)))

    def fixed(self) -> Iterator[MaskedBatch]:
        """Every text once with gaps that hang on nothing but its number: for validation."""
        for batch in self.texts.in_order():
            draws = np.zeros((*batch.ids.shape, 3))
            for place, row in enumerate(batch.rows):
                draws[place] = np.random.default_rng(row).random(draws.shape[1:])
            yield self.masking.batch(batch, draws)
