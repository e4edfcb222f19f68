"""Plain text with gaps: which texts there are, which of their tokens are to be guessed, and what stands instead.

Shapes: B rows, T tokens, P tokens to be guessed (and padding up to a round number), V vocabulary.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...config import Config
from ...data.corpus import Corpus, text_files
from ...data.loader import WHOLE, Shard
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import FileReport, TextReport
from ...data.text_batch import TextBatch, TextLoader
from .predictor import MASKS, mask_token

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "<pad>", "<unk>", "<s>", "</s>", *MASKS)
STEP = 64  # P is a multiple of this, so that there are few shapes

A = TypeVar("A", bound=np.generic)
Ids = NDArray[np.int64]
Draws = NDArray[np.float64]  # (B, T, 3) from 0 to below 1: whether a token is guessed, what becomes of it, and which


class PlainText(NamedTuple):
    """A text, and where it begins."""

    text: str
    file: str
    line: int

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def read_texts(paths: Sequence[str], unit: str, report: TextReport | None = None) -> Iterator[PlainText]:
    """Read the texts of files and folders, empty ones left out; count them in a report, if there is one.

    Args:
        paths: Files and folders of running text.
        unit: "line" or "paragraph": all lines up to an empty one.
        report: Is told which files are read, and what is kept and dropped.
    """
    for path in text_files(paths):
        file = FileReport(str(path), "text")
        if report is not None:
            report.files.append(file)
        for text in split_file(path, unit):
            file.count += 1
            if not text.text.strip():
                if report is not None:
                    report.drop("empty", text.place)
                continue
            if report is not None:
                report.keep(text.text)
            yield text


def split_file(path: Path, unit: str) -> Iterator[PlainText]:
    """Yield the lines of a file, empty ones too, or its paragraphs."""
    lines: list[PlainText] = []  # of the current paragraph

    def paragraph() -> Iterator[PlainText]:
        if lines:
            yield lines[0]._replace(text="\n".join(line.text for line in lines))
            lines.clear()

    for passage in Corpus((path,)):
        if passage.begins:
            yield from paragraph()
        for number, text in enumerate(passage.text.removesuffix("\n").split("\n"), passage.line):
            line = PlainText(text, passage.file, number)
            if unit == "line":
                yield line
            elif text.strip():
                lines.append(line)
            else:
                yield from paragraph()
    yield from paragraph()


@dataclass(frozen=True, kw_only=True)
class MaskingConfig(Config):
    """The share of tokens to be guessed, of every text one at least; how many of them become a gap, and how many
    another token. The others stay as they are."""

    title: ClassVar[str] = "masking"

    share: float = 0.15
    gaps: float = 0.8
    others: float = 0.1

    def check(self) -> None:
        self.require(0 < self.share < 1, f"share must be between 0 and 1, not {self.share}")
        self.require(
            self.gaps >= 0 and self.others >= 0 and self.gaps + self.others <= 1,
            f"gaps={self.gaps} and others={self.others} are shares, of 1 together at most",
        )


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
        self.mask_id = tokenizer.id_of(mask_token(tokenizer)) or 0
        named = [name for key in tokenizer.roles if key.endswith("_token") and (name := tokenizer.role(key))]
        special = {tokenizer.id_of(name) for name in (*SPECIAL, *named)} | set(tokenizer.encode(""))
        self.is_word = np.array([index not in special for index in range(tokenizer.largest + 1)])
        self.words = np.flatnonzero(self.is_word)

    def batch(self, texts: TextBatch, draws: Draws, shard: Shard = WHOLE) -> MaskedBatch:
        """Return a shard of the rows, masked by draws for all rows; at least one word of every text is masked."""
        ids = texts.ids.numpy()
        maskable = self.is_word[ids] & texts.keep.numpy()
        order = np.where(maskable, draws[..., 0], np.inf)
        masked = maskable & ((order < self.config.share) | (order == order.min(axis=1, keepdims=True)))
        kind, gaps, others = draws[..., 1], self.config.gaps, self.config.gaps + self.config.others
        random_words = self.words[(draws[..., 2] * len(self.words)).astype(np.int64)]
        changed = np.where(masked & (kind < gaps), self.mask_id, ids)
        changed = np.where(masked & (kind >= gaps) & (kind < others), random_words, changed)
        counts = masked.sum(axis=1)
        most = max(int(counts[index :: shard.of].sum()) for index in range(shard.of))  # one shape for all processes
        n_places = self.n_places(shard.size(ids.shape[0]), ids.shape[1], most)
        found = np.flatnonzero(_rows(masked, shard))
        places = np.pad(found, (0, n_places - len(found)))
        counted = np.arange(n_places) < len(found)
        arrays = {name: _rows(getattr(texts, name).numpy(), shard) for name in ("segments", "keep", "labels", "real")}
        arrays |= {"ids": _rows(changed, shard), "places": places, "counted": counted}
        arrays["targets"] = np.where(counted, _rows(ids, shard).flat[places], 0)
        tensors = {name: torch.from_numpy(array) for name, array in arrays.items()}
        lengths = tuple(arrays["keep"].sum(axis=1).tolist())
        return MaskedBatch(**tensors, lengths=lengths, rows=shard.rows(texts.rows))

    def n_places(self, n_rows: int, width: int, needed: int) -> int:
        """P for batches of a shape: the same for nearly all, with room for four standard deviations more than are to be
        expected where no text is padded; twice as many, or four times, where more are needed."""
        share, n = self.config.share, n_rows * width
        expected = n_rows * (share * width + (1 - share) ** width)  # a text in which none was drawn has one
        usual = _rounded(expected + 4 * math.sqrt(n * share * (1 - share)))
        while usual < needed:
            usual *= 2
        return min(usual, _rounded(n))


def _rounded(n: float) -> int:
    return math.ceil(n / STEP) * STEP


def _rows(array: NDArray[A], share: Shard) -> NDArray[A]:
    """A process's rows, and where it has fewer than another, one more of zeros."""
    part = share.rows(array)
    rows = np.zeros((share.size(len(array)), *array.shape[1:]), array.dtype)
    rows[: len(part)] = part
    return rows


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

    def epoch(self, epoch: int, start: int = 0, share: Shard = WHOLE) -> Iterator[MaskedBatch]:
        """The batches of an epoch in its own order, or a share of each, from the one numbered `start`."""
        for step, batch in enumerate(self.texts.epoch(epoch, start), start):
            random = np.random.default_rng([self.texts.seed, epoch, step])
            yield self.masking.batch(batch, random.random((*batch.ids.shape, 3)), share)

    def fixed(self) -> Iterator[MaskedBatch]:
        """Every text once with gaps that hang on nothing but its number: for validation."""
        for batch in self.texts.in_order():
            draws = np.zeros((*batch.ids.shape, 3))
            for place, row in enumerate(batch.rows):
                draws[place] = np.random.default_rng(row).random(draws.shape[1:])
            yield self.masking.batch(batch, draws)
