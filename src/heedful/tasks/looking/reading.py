"""A model that reads, at work: what it makes of a text as a whole, or of the gaps in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ...errors import DataError
from ...lens.tokens import tokens_of
from ...lens.trace import Trace, trace
from ..classification import Classifier
from ..classification.predictor import display_text
from ..embedding import Embedder
from ..masked import MaskedLanguageModel
from ..text_encoder import Row, TextEncoderPredictor
from .assembling import EMPTY, Notes, apart, classes_of, only

GUESSES, GUESSES_OF_SEVERAL = 10, 5  # for a gap alone, and for each of several
SIGNS = ("[MASK]", "<mask>", "<extra_id_0>")  # of gaps, in one model or another


def see_classes(classifier: Classifier, item: Any, notes: Notes, words: Mapping[str, Any]) -> dict[str, Any]:
    """The probability of every class; a model of scores has none, and its answer is its first number."""
    only(words, classifier)
    classifier = apart(classifier)
    row = classifier.prepared(item)
    with trace(classifier.module) as seen:
        (shares,) = classifier.predict([item])
    label, share = next(iter(shares.items()))
    scores = classifier.settings.means == "score"
    answer = f"{label}: {share:.6g}" if scores else label
    return _read(classifier, item, row, seen, notes, answer, None if scores else classes_of(shares))


def see_vector(embedder: Embedder, item: Any, notes: Notes, words: Mapping[str, Any]) -> dict[str, Any]:
    """What it read; a vector is not for reading."""
    only(words, embedder)
    embedder = apart(embedder)
    row = embedder.prepared(item)
    with trace(embedder.module) as seen:
        embedder.predict([item])
    return _read(embedder, item, row, seen, notes)


def see_gaps(filler: MaskedLanguageModel, item: Any, notes: Notes, words: Mapping[str, Any]) -> dict[str, Any]:
    """What may stand in the gaps. A text without one is read all the same: what looks at what can be seen."""
    only(words, filler)
    filler = apart(filler)
    if not isinstance(item, str) or filler.settings.mask not in item:
        _refuse_others_signs(item, filler.settings.mask)
        row = TextEncoderPredictor.prepared(filler, item)
        return _read(filler, item, row, _passed(filler, row), notes)
    row, several = filler.prepared(item), item.count(filler.settings.mask) > 1
    with trace(filler.module) as seen:
        (gaps,) = filler.guesses([item], GUESSES_OF_SEVERAL if several else GUESSES)
    shares = {
        f"{place}: {guess.text.strip()}" if several else guess.text.strip(): guess.probability
        for place, gap in enumerate(gaps, 1)
        for guess in reversed(gap)  # of two that look alike, the likelier stays
    }
    return _read(filler, item, row, seen, notes, filler.filled(item, gaps), classes_of(shares))


def _refuse_others_signs(item: Any, mask: str) -> None:
    for sign in SIGNS:
        if isinstance(item, str) and sign in item:
            raise DataError(f"{sign} is another model's sign for a gap; write {mask} where a word is missing")


@torch.inference_mode()
def _passed(reader: TextEncoderPredictor[Any], row: Row) -> Trace:
    device = next(reader.module.parameters()).device
    segments = None if row.segments is None else torch.tensor([row.segments], device=device)
    with trace(reader.module) as seen:
        reader.module(torch.tensor([row.ids], device=device), segments=segments)
    return seen


def _read(
    reader: TextEncoderPredictor[Any],
    item: Any,
    row: Row,
    seen: Trace,
    notes: Notes,
    answer: str | None = None,
    classes: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    if not any(text.strip() for text in (item if isinstance(item, tuple) else (item,))):
        raise DataError(EMPTY)
    return {
        "kind": "reading",
        "question": display_text(item),
        "answer": answer,
        "sequences": {"source": tokens_of(reader.tokenizer, row.ids)},
        "classes": classes,
        **notes.inside(reader.module, seen),
    }
