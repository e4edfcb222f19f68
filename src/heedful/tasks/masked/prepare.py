"""From plain text to token stores in a run's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ...data.published_tokenizer import PublishedTokenizer, chunks
from ...data.report import DataReport, TextReport
from ...data.store import Encoded, TokenStore
from ..reading_data import TRAIN, VALID, ReadingData, settle_tokenizer
from ..run import Files
from .config import MaskedConfig
from .masking import gap_of
from .splitting import Text, split


def prepare(
    config: MaskedConfig, files: Files, folder: Path, *, keep: bool = False
) -> tuple[ReadingData, DataReport[TextReport]]:
    """Read, settle the tokeniser, and write the stores."""
    texts, readings = split(files, config.data)
    tokenizer = settle_tokenizer(config, folder, (one.text for one in texts.train()), keep=keep)
    gap_of(tokenizer)  # before anything is written for nothing
    stores = [
        TokenStore.write(folder / name, encoded(found, tokenizer, config.limit), vocab_size=tokenizer.largest + 1)
        for name, found in ((TRAIN, texts.train()), (VALID, texts.valid()))
    ]
    return ReadingData(folder, tokenizer, *stores), readings


def encoded(texts: Iterable[Text], tokenizer: PublishedTokenizer, limit: int) -> Iterator[Encoded]:
    """Nothing is lost: a text that is too long becomes several rows."""
    for one in texts:
        for ids in chunks(tokenizer, tokenizer.encode(one.text), limit):
            yield ids, (), (one.file, one.line)
