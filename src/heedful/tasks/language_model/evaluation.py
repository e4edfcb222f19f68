"""How well a language model predicts text it has not seen."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ...data.corpus import Corpus, text_files
from ...errors import DataError
from ..predictor import ItemError
from .continuer import CausalLanguageModel
from .scoring import TextScore


def evaluate(continuer: CausalLanguageModel, paths: Iterable[str | Path], *, stride: int | None = None) -> TextScore:
    """Of all documents of files and folders together, each predicted from its own beginning, whole."""
    corpus = Corpus(tuple(text_files(paths)))
    total = TextScore()
    for place, text in corpus.documents():
        try:
            total += continuer.score([text], stride=stride)[0]
        except ItemError as error:
            raise DataError(f"{place}: {error.reason}") from None
    if not total.characters:
        raise DataError(f"{', '.join(map(str, corpus.files[:3]))}: there is no text to evaluate on")
    return total
