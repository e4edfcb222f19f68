"""From files of labelled texts to token stores in a run's folder."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ...config import read_mapping, write_mapping
from ...data.labeled_texts import LabeledText
from ...data.published_tokenizer import PublishedTokenizer, truncate
from ...data.report import DataReport, TextReport
from ...data.store import Encoded, TokenStore
from ...errors import ConfigError, DataError
from ..reading_data import TRAIN, VALID, ReadingData, settle_tokenizer
from ..run import Files
from .config import ClassificationConfig
from .splitting import labels_of, number_of, split

LABELS = "labels.json"


@dataclass(frozen=True, eq=False)
class Prepared(ReadingData):
    """A row's targets are its label and where its second text begins."""

    @classmethod
    def open(cls, folder: Path) -> Self:
        """What `prepare` has written."""
        read_labels(folder)
        return super().open(folder)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The classes, in the order of their numbers."""
        return read_labels(self.folder)

    @cached_property
    def texts(self) -> Literal[1, 2] | None:
        """How many texts a row has; None where some have one and some two."""
        pairs = np.concatenate([targets(store)[:, 1] < store.lengths[:, 0] for store in (self.train, self.valid)])
        return 2 if pairs.all() else None if pairs.any() else 1

    def identity(self) -> dict[str, str]:
        """The classes too."""
        return super().identity() | {"labels": json.dumps(self.labels)}


def targets(store: TokenStore) -> NDArray[np.integer[Any]]:
    """(N, 2): of every row its label and where its second text begins."""
    ends = np.cumsum(store.lengths.sum(axis=1, dtype=np.int64))
    return store.flat[ends[:, None] - [2, 1]]


def read_labels(folder: Path) -> tuple[str, ...]:
    """The classes of a run."""
    try:
        return tuple(read_mapping(folder / LABELS)["labels"])
    except (ConfigError, KeyError, TypeError) as error:
        raise DataError(f"{folder / LABELS}: the classes cannot be read: {error}") from None


def prepare(
    config: ClassificationConfig, files: Files, folder: Path, *, keep: bool = False
) -> tuple[Prepared, DataReport[TextReport]]:
    """Read, settle the tokeniser and the classes, which `keep` leaves as they are, and write the stores."""
    texts, readings = split(files, config.data.holdout)
    labels = read_labels(folder) if keep else labels_of(readings)
    words = (text for one in texts.train() for text in one.texts)
    tokenizer = settle_tokenizer(config, folder, words, keep=keep)
    write_mapping(folder / LABELS, {"labels": labels})
    stores = [
        TokenStore.write(
            folder / name,
            encoded(found, tokenizer, labels, config.limit, reading),
            vocab_size=max(tokenizer.largest + 1, len(labels), config.limit + 1),
        )
        for name, found, reading in (
            (TRAIN, texts.train(), readings.train),
            (VALID, texts.valid(), readings.valid or readings.train),
        )
    ]
    if readings.valid is None:
        readings = replace(readings, held_out=len(stores[1]))
    return Prepared(folder, tokenizer, *stores), readings


def encoded(
    examples: Iterable[LabeledText],
    tokenizer: PublishedTokenizer,
    labels: Sequence[str],
    limit: int,
    reading: TextReport,
) -> Iterator[Encoded]:
    """What `TokenStore.write` takes. A text that is too long is cut and counted; two that are, are left out."""
    numbers = {label: number for number, label in enumerate(labels)}
    for one in examples:
        ids, segments = tokenizer.encode_pair(one.text, one.second)
        label = number_of(one, numbers)
        if not ids or (len(ids) > limit and one.second is not None):
            why = "too many tokens" if ids else "no tokens"
            reading.drop_kept(why, one.place, "\t".join(one.texts), label=one.label)
            continue
        if len(ids) > limit:
            ids = truncate(tokenizer, ids, limit)
            reading.note(f"texts cut at {limit} tokens", one.place)
        yield ids, (label, _second(tokenizer, one, ids, segments)), (one.file, one.line)


def _second(tokenizer: PublishedTokenizer, one: LabeledText, ids: Sequence[int], segments: Sequence[int]) -> int:
    """Where the second text begins, if there is one. Some tokenisers give both the same number (RoBERTa)."""
    if one.second is None:
        return len(ids)
    return segments.index(1) if 1 in segments else len(tokenizer.encode(one.text))
