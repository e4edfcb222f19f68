"""Where a translator looks while it writes, between whole words, and how far that is from true alignments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ...core import NoAttention
from ...data.tokenizer import Tokenizer
from ...lens.alignment import (
    Example,
    Gold,
    Head,
    best_links,
    choose_head,
    diagonal_links,
    error_rate,
    predicting_rows,
    with_means,
    word_weights,
)
from ...lens.recorder import record
from .translator import Translator


@dataclass(frozen=True, eq=False)
class WordLook:
    """The words of a pair, and for each head (and their means) the weights (target words, source words)."""

    source: list[str]
    target: list[str]
    weights: dict[Head, Tensor]


@dataclass(frozen=True)
class AlignmentScore:
    """Alignment error rates in percent: of the head that was best on other pairs, and of a plain diagonal."""

    head: Head
    error_rate: float
    diagonal: float


def has_attention(translator: Translator) -> bool:
    """Whether the decoder looks at the source while it writes."""
    return not any(isinstance(part, NoAttention) for part in translator.module.modules())


@torch.inference_mode()
def look(translator: Translator, source: str, target: str) -> WordLook:
    """What the decoder looked at while it predicted each word of `target`."""
    source_ids, target_ids = translator.seen(source, target)
    with record(translator.module) as recording:
        translator.module(source_ids, target_ids)
    source_words = _words(translator.tokenizer, source_ids[0].tolist())
    target_words = _words(translator.target_tokenizer, target_ids[0, 1:].tolist())
    rows = predicting_rows(recording, 0, len(target_words), len(source_words))
    heads = {head: word_weights(weights.float().cpu(), source_words, target_words) for head, weights in rows.items()}
    return WordLook(source.split(), target.split(), with_means(heads))


def alignment_score(
    translator: Translator, chosen_on: Sequence[tuple[str, str, Gold]], reported_on: Sequence[tuple[str, str, Gold]]
) -> AlignmentScore:
    """Choose a head on some pairs and report its error rate on others."""
    choice = choose_head([Example(look(translator, *pair).weights, gold) for *pair, gold in chosen_on])
    gold = [true for *_, true in reported_on]
    found = [best_links(look(translator, *pair).weights[choice.head]) for *pair, _ in reported_on]
    straight = [diagonal_links(len(source.split()), len(target.split())) for source, target, _ in reported_on]
    return AlignmentScore(choice.head, 100 * error_rate(found, gold), 100 * error_rate(straight, gold))


def _words(tokenizer: Tokenizer, ids: list[int]) -> list[int | None]:
    return [None if word < 0 else word for word in tokenizer.word_of(ids)]
