"""Plain text with gaps: which texts there are, which of their tokens are to be guessed, and what stands instead.

Shapes: B rows, T tokens, P tokens to be guessed (and padding up to a round number), V vocabulary.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ...config import Config
from ...data.corpus import Corpus, text_files
from ...data.labeled_texts import text_digest
from ...data.loader import WHOLE, Shard
from ...data.published_tokenizer import PublishedTokenizer
from ...data.report import FileReport, TextReport
from ...data.text_batch import TextBatch, TextLoader
from ...errors import DataError
from ..run import DataReport, Files, TooLittleDataError
from ..run.task import Split, split_examples
from .predictor import MASKS, mask_of

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


def texts_of(files: Iterable[Path], unit: str) -> Iterator[PlainText]:
    """The lines of files, empty ones too, or their paragraphs."""
    begun: list[PlainText] = []  # of a paragraph

    def paragraph() -> Iterator[PlainText]:
        if begun:
            yield begun[0]._replace(text="\n".join(line.text for line in begun))
            begun.clear()

    for passage in Corpus(tuple(files)):
        if passage.begins:
            yield from paragraph()
        for number, words in enumerate(passage.text.removesuffix("\n").split("\n"), passage.line):
            line = PlainText(words, passage.file, number)
            if unit == "line":
                yield line
            elif words.strip():
                begun.append(line)
            else:
                yield from paragraph()
    yield from paragraph()


def split_texts(files: Files, unit: str, holdout: int) -> tuple[Split[PlainText], DataReport[TextReport]]:
    """Read everything once: what there is, and which texts are set apart."""

    def read(paths: Sequence[str], reading: TextReport | None) -> Iterator[PlainText]:
        found = text_files(paths)
        return _used(found, unit) if reading is None else _counted(found, unit, reading)

    def drop(reading: TextReport, reason: str, example: PlainText) -> None:
        reading.drop_kept(reason, example.place, example.text)

    split, report = split_examples(
        files, read, TextReport, digest=lambda example: text_digest(example.text), drop=drop, wanted=holdout
    )
    if report.valid is None:
        report.held_out = sum(1 for _ in split.valid())
    n_valid = report.held_out if report.valid is None else report.valid.kept
    if not n_valid or report.train.kept == report.held_out:
        raise TooLittleDataError(
            f"{report.train.kept} usable texts are too few to train on some and validate on others; "
            "give more text, or validation text of your own (--valid)",
            report,
        )
    return split, report


def _used(files: Iterable[Path], unit: str) -> Iterator[PlainText]:
    return (one for one in texts_of(files, unit) if one.text.strip())


def _counted(files: Iterable[Path], unit: str, reading: TextReport) -> Iterator[PlainText]:
    """The texts that are used; the reading is told of them and of the others."""
    for path in files:
        found = FileReport(str(path), "text")
        reading.files.append(found)
        for one in texts_of([path], unit):
            found.count += 1
            if one.text.strip():
                reading.keep(one.text)
                yield one
            else:
                reading.drop("empty", one.place)


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
        self.gap = gap_of(tokenizer)
        named = [name for key in tokenizer.roles if key.endswith("_token") and (name := tokenizer.role(key))]
        special = {tokenizer.id_of(name) for name in (*SPECIAL, *named)} | set(tokenizer.encode(""))
        self.is_word = np.array([index not in special for index in range(tokenizer.largest + 1)])
        self.words = np.flatnonzero(self.is_word)

    def batch(self, texts: TextBatch, draws: Draws, share: Shard = WHOLE) -> MaskedBatch:
        """A share of the rows, with gaps by these draws for all; of every text that has words one is guessed at least,
        however short it is."""
        ids = texts.ids.numpy()
        may = self.is_word[ids] & texts.keep.numpy()
        lot = np.where(may, draws[..., 0], np.inf)
        chosen = may & ((lot < self.config.share) | (lot == lot.min(axis=1, keepdims=True)))
        kind, gaps, others = draws[..., 1], self.config.gaps, self.config.gaps + self.config.others
        drawn = self.words[(draws[..., 2] * len(self.words)).astype(np.int64)]
        changed = np.where(chosen & (kind < gaps), self.gap, ids)
        changed = np.where(chosen & (kind >= gaps) & (kind < others), drawn, changed)
        counts = chosen.sum(axis=1)
        most = max(int(counts[index :: share.of].sum()) for index in range(share.of))  # one shape for all processes
        n_places = self.n_places(share.size(ids.shape[0]), ids.shape[1], most)
        return _with_gaps(_part(texts, share), _rows(changed, share), _rows(chosen, share), n_places)

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


def _part(texts: TextBatch, share: Shard) -> TextBatch:
    """A process's rows. It is taken of what is made already: what is drawn for a row hangs on the whole batch."""
    tensors = {name: getattr(texts, name) for name in ("ids", "segments", "keep", "labels", "real")}
    parts = {name: torch.from_numpy(_rows(tensor.numpy(), share)) for name, tensor in tensors.items()}
    lengths = tuple(parts["keep"].sum(dim=1).tolist())
    return TextBatch(**parts, lengths=lengths, rows=share.rows(texts.rows))


def _rows(array: NDArray[A], share: Shard) -> NDArray[A]:
    """A process's rows, and where it has fewer than another, one more of zeros."""
    part = share.rows(array)
    rows = np.zeros((share.size(len(array)), *array.shape[1:]), array.dtype)
    rows[: len(part)] = part
    return rows


def _with_gaps(texts: TextBatch, changed: Ids, chosen: NDArray[np.bool_], n_places: int) -> MaskedBatch:
    ids, found = texts.ids.numpy(), np.flatnonzero(chosen)
    places = np.zeros(n_places, dtype=np.int64)
    places[: len(found)] = found
    counted = np.arange(n_places) < len(found)
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
    if (name := mask_of(tokenizer)) is None:
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
