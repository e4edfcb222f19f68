"""Cross-attention of a translator between whole words, and its error against true word alignments."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ...core import NoAttention
from ...data.pairs import Pair
from ...data.readers.files import lines_of
from ...errors import DataError
from ...lens.alignment import (
    Example,
    Gold,
    Head,
    Link,
    best_links,
    choose_head,
    diagonal_links,
    error_rate,
    predicting_rows,
    with_means,
    word_weights,
)
from ...lens.recorder import record
from ...lens.report import AttentionMap
from .predictor import Translator

N_MAPS = 2  # sentences whose attention the report draws
LINK = re.compile(r"(\d{1,6})([-?])(\d{1,6})")


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
    """Whether the decoder attends to the source."""
    return not any(isinstance(part, NoAttention) for part in translator.module.modules())


@torch.inference_mode()
def look(translator: Translator, source: str, target: str) -> WordLook:
    """Return the cross-attention with which the decoder predicts each word of `target`."""
    source_ids, target_ids = translator.seen(source, target)
    with record(translator.module) as recording:
        translator.module(source_ids, target_ids)
    source_words, target_words = (
        [None if word < 0 else word for word in tokenizer.word_of(ids.tolist())]
        for tokenizer, ids in ((translator.tokenizer, source_ids[0]), (translator.target_tokenizer, target_ids[0, 1:]))
    )
    rows = predicting_rows(recording, 0, len(target_words), len(source_words))
    heads = {head: word_weights(weights.float().cpu(), source_words, target_words) for head, weights in rows.items()}
    return WordLook(source.split(), target.split(), with_means(heads))


def alignment_score(
    translator: Translator, chosen_on: Sequence[tuple[str, str, Gold]], reported_on: Sequence[tuple[str, str, Gold]]
) -> AlignmentScore:
    """Choose a head on some pairs, and return its error rate on others."""
    choice = choose_head([Example(look(translator, *pair).weights, gold) for *pair, gold in chosen_on])
    gold = [true for *_, true in reported_on]
    links = [best_links(look(translator, *pair).weights[choice.head]) for *pair, _ in reported_on]
    diagonal = [diagonal_links(len(source.split()), len(target.split())) for source, target, _ in reported_on]
    return AlignmentScore(choice.head, 100 * error_rate(links, gold), 100 * error_rate(diagonal, gold))


def attention_maps(translator: Translator, samples: Sequence[Mapping[str, Any]]) -> list[AttentionMap]:
    """Return the attention maps of the best sentences, with the heads of the last layer."""
    if not has_attention(translator):
        return []
    best_first = sorted(samples, key=lambda sample: (-sample["score"], -len(sample["source"])))
    maps = []
    for sample in [sample for sample in best_first if sample["output"].split()][:N_MAPS]:
        seen = look(translator, sample["source"], sample["output"])
        last = max(head.layer for head in seen.weights if head.layer is not None)
        heads = [weights for head, weights in seen.weights.items() if head.layer == last and head.head is not None]
        maps.append(AttentionMap(sample["source"], seen.source, seen.target, [each.tolist() for each in heads]))
    return maps


def read_alignments(path: Path, pairs: Sequence[Pair]) -> list[Gold]:
    """Read true word alignments, a line for each pair: "0-0 1-2", and "0?1" for a link that is only possible.

    Raises:
        DataError: The file has more or fewer lines than pairs, or a line names words that its pair does not have.
    """
    lines = list(lines_of(path))
    if len(lines) != len(pairs):
        raise DataError(f"{path} has {len(lines)} lines for {len(pairs)} pairs; each pair needs its own line")
    return [
        _gold(line, f"{path}:{number}", pair) for number, (line, pair) in enumerate(zip(lines, pairs, strict=True), 1)
    ]


def _gold(line: str, place: str, pair: Pair) -> Gold:
    links: dict[str, set[Link]] = {"-": set(), "?": set()}
    n_source, n_target = len(pair.source.split()), len(pair.target.split())
    for text in line.split():
        match = LINK.fullmatch(text)
        if not match:
            raise DataError(f"{place}: a link looks like 0-2, or 0?2 where it is only possible, not {text!r}")
        source, target = int(match[1]), int(match[3])
        if source >= n_source or target >= n_target:
            raise DataError(f"{place}: {text} points beyond the {n_source} source and {n_target} target words")
        links[match[2]].add((source, target))
    return Gold(frozenset(links["-"]), frozenset(links["?"]))
