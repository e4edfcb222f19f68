"""Where a classifier looks while it reads."""

from __future__ import annotations

import torch

from ...lens.recorder import record
from ...lens.report import AttentionMap
from ..reader import Text
from .classifier import Classifier

BETWEEN = " | "  # two texts that are shown as one


@torch.inference_mode()
def look(classifier: Classifier, text: Text) -> AttentionMap:
    """From every token to every token, by the heads of the last layer."""
    row = classifier.prepared(text)
    device = next(classifier.module.parameters()).device
    ids = torch.tensor([row.ids], device=device)
    segments = None if row.segments is None else torch.tensor([row.segments], device=device)
    with record(classifier.module) as recording:
        classifier.module(ids, segments=segments)
    layers = recording.encoder
    tokens = [classifier.tokenizer.token_of(index) for index in row.ids]
    return AttentionMap(as_shown(text), tokens, tokens, layers[max(layers)][0].tolist())


def as_shown(text: Text) -> str:
    """On a page."""
    return text if isinstance(text, str) else BETWEEN.join(text)
