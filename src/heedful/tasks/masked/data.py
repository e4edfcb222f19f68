"""The data of masked language modeling: reading plain text, and masking tokens at random.

Shapes: B rows, T tokens, P tokens to be guessed (and padding up to a round number), V vocabulary.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...config import Config
from ...data.corpus import Corpus, text_files
from ...data.loader import WHOLE, Shard
from ...data.pairs import TextExample
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import FileReport, TextReport
from ...data.store import TokenStore
from ...data.text_batch import TextBatch, TextLoader
from .predictor import MASKS, mask_token

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "<pad>", "<unk>", "<s>", "</s>", *MASKS)
STEP = 64  # P is a multiple of this, so that there are few shapes

A = TypeVar("A", bound=np.generic)
Ids = NDArray[np.int64]
Draws = NDArray[np.float64]  # (B, T, 3) from 0 to below 1: whether a token is guessed, what becomes of it, and which


@dataclass(frozen=True, slots=True)
class PlainText(TextExample):
    """A text, and where it begins."""

    text: str
    file: str
    line: int

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,)


def read_texts(paths: Sequence[str], unit: str, report: TextReport) -> Iterator[PlainText]:
    """Read the texts of files and folders, empty ones left out.

    Args:
        paths: Files and folders of running text.
        unit: "line" or "paragraph": all lines up to an empty one.
        report: Is told which files are read, and what is kept and dropped.
    """
    for path in text_files(paths):
        file = FileReport(str(path), "text")
        report.files.append(file)
        for text in split_paragraphs(path) if unit == "paragraph" else (line for _, line in document_lines(path)):
            file.count += 1
            if text.text.strip():
                report.keep(text.text)
                yield text
            else:
                report.drop("empty", text.place)


def document_lines(path: Path) -> Iterator[tuple[int, PlainText]]:
    """Yield the lines of a file, empty ones too, each with the number of its document."""
    document = 0
    for passage in Corpus((path,)):
        document += passage.begins
        for number, text in enumerate(passage.text.removesuffix("\n").split("\n"), passage.line):
            yield document, PlainText(text, passage.file, number)


def split_paragraphs(path: Path) -> Iterator[PlainText]:
    """Yield the lines of a file joined to paragraphs, which end at empty lines and with their documents."""
    for (_, is_text), group in groupby(document_lines(path), lambda item: (item[0], bool(item[1].text.strip()))):
        if is_text:
            lines = [line for _, line in group]
            yield replace(lines[0], text="\n".join(line.text for line in lines))


@dataclass(frozen=True, kw_only=True)
class MaskingConfig(Config):
    """How many tokens the model must predict, and what it sees in their places."""

    title: ClassVar[str] = "masking"

    share: float = 0.15  # Share of the tokens that the model must predict; at least one of every text
    gaps: float = 0.8  # Share of these that the mask token replaces
    others: float = 0.1  # Share of these that a random token replaces; the rest stay as they are

    def check(self) -> None:
        self.require(0 < self.share < 1, f"share must be between 0 and 1, not {self.share}")
        self.require(
            self.gaps >= 0 and self.others >= 0 and self.gaps + self.others <= 1,
            f"gaps={self.gaps} and others={self.others} are shares, of 1 together at most",
        )


@dataclass(frozen=True, eq=False)
class MaskedBatch(TextBatch):
    """Masked texts; `places` are the indices of the masked tokens among all B · T."""

    places: Tensor  # (P,)
    targets: Tensor  # (P,) what stood there
    is_real: Tensor  # (P,) False for padding


class Masking:
    """Masks words at random; special tokens are neither masked nor used as replacements."""

    def __init__(self, config: MaskingConfig, tokenizer: PublishedTokenizer) -> None:
        self.config = config
        self.mask_id = tokenizer.id_of(mask_token(tokenizer)) or 0
        named = [name for key in tokenizer.roles if key.endswith("_token") and (name := tokenizer.role(key))]
        special = {tokenizer.id_of(name) for name in (*SPECIAL, *named)} | set(tokenizer.encode(""))
        self.is_word = np.array([index not in special for index in range(tokenizer.largest + 1)])
        self.word_ids = np.flatnonzero(self.is_word)

    def batch(self, texts: TextBatch, draws: Draws, shard: Shard = WHOLE) -> MaskedBatch:
        """Return a shard of the rows, masked by draws for all rows; at least one word of every text is masked."""
        ids = texts.ids.numpy()
        maskable = self.is_word[ids] & texts.keep.numpy()
        order = np.where(maskable, draws[..., 0], np.inf)
        masked = maskable & ((order < self.config.share) | (order == order.min(axis=1, keepdims=True)))
        kind, gaps, others = draws[..., 1], self.config.gaps, self.config.gaps + self.config.others
        random_words = self.word_ids[(draws[..., 2] * len(self.word_ids)).astype(np.int64)]
        changed = np.where(masked & (kind < gaps), self.mask_id, ids)
        changed = np.where(masked & (kind >= gaps) & (kind < others), random_words, changed)
        counts = masked.sum(axis=1)
        most = max(int(counts[index :: shard.of].sum()) for index in range(shard.of))  # one shape for all processes
        n_places = self.n_places(shard.size(ids.shape[0]), ids.shape[1], most)
        masked_places = np.flatnonzero(_rows(masked, shard))
        places = np.pad(masked_places, (0, n_places - len(masked_places)))
        is_real = np.arange(n_places) < len(masked_places)
        arrays = {name: _rows(getattr(texts, name).numpy(), shard) for name in ("segments", "keep", "labels", "real")}
        arrays |= {"ids": _rows(changed, shard), "places": places, "is_real": is_real}
        arrays["targets"] = np.where(is_real, _rows(ids, shard).flat[places], 0)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        lengths = tuple(arrays["keep"].sum(axis=1).tolist())
        return MaskedBatch(**tensors, lengths=lengths, rows=shard.rows(texts.rows))

    def n_places(self, n_rows: int, width: int, needed: int) -> int:
        """Return P for a batch shape, almost always the same, so that few shapes occur.

        It has room for four standard deviations above the expected number without padding; twice that, or four times,
        if a batch needs more.
        """
        share, n = self.config.share, n_rows * width
        expected = n_rows * (share * width + (1 - share) ** width)  # a text in which none was drawn has one
        n_places = _rounded(expected + 4 * math.sqrt(n * share * (1 - share)))
        while n_places < needed:
            n_places *= 2
        return min(n_places, _rounded(n))


def _rounded(n: float) -> int:
    return math.ceil(n / STEP) * STEP


def _rows(array: NDArray[A], shard: Shard) -> NDArray[A]:
    """Return a process's rows, with a row of zeros if it has fewer than another process."""
    part = shard.rows(array)
    rows = np.zeros((shard.size(len(array)), *array.shape[1:]), array.dtype)
    rows[: len(part)] = part
    return rows


class MaskedLoader(TextLoader):
    """Batches with new masks in every epoch, determined by (seed, epoch, step) alone."""

    def __init__(self, store: TokenStore, batch_tokens: int, masking: Masking, seed: int = 0) -> None:
        super().__init__(store, batch_tokens, seed)
        self.masking = masking

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[MaskedBatch]:
        """Yield the batches of an epoch, or a shard of each, from step `start` on."""
        for step, batch in enumerate(super().epoch(epoch, start), start):
            random = np.random.default_rng([self.seed, epoch, step])
            yield self.masking.batch(batch, random.random((*batch.ids.shape, 3)), shard)

    def fixed(self) -> Iterator[MaskedBatch]:
        """Yield every text once, for validation, with masks that depend only on its row number."""
        for batch in self.in_order():
            draws = np.zeros((*batch.ids.shape, 3))
            for place, row in enumerate(batch.rows):
                draws[place] = np.random.default_rng(row).random(draws.shape[1:])
            yield self.masking.batch(batch, draws)
