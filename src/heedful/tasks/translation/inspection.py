"""Where a translator looks while it writes, between whole words, and how far that is from true alignments."""

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
from ...data.tokenizer import Tokenizer
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

LOOKS = 2  # sentences whose attention is drawn
_LINK = re.compile(r"(\d{1,6})([-?])(\d{1,6})")


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


def attention_maps(translator: Translator, samples: Sequence[Mapping[str, Any]]) -> list[AttentionMap]:
    """Maps of a few sentences by the last layer's heads."""
    if not has_attention(translator):
        return []
    best = sorted(samples, key=lambda sample: (-sample["score"], -len(sample["source"])))
    spoken = [sample for sample in best if sample["output"].split()]
    return [_map(translator, sample["source"], sample["output"]) for sample in spoken[:LOOKS]]


def _map(translator: Translator, source: str, output: str) -> AttentionMap:
    seen = look(translator, source, output)
    last = max(head.layer for head in seen.weights if head.layer is not None)
    heads = [head for head in seen.weights if head.layer == last and head.head is not None]
    return AttentionMap(source, seen.source, seen.target, [seen.weights[head].tolist() for head in heads])


def read_alignments(path: Path, pairs: Sequence[Pair]) -> list[Gold]:
    """True word alignments from a file: a line a pair, "0-0 1-2", and "0?1" for a link that is only possible.

    One set of links for each pair; every link names words that the pair has.
    """
    lines = list(lines_of(path))
    if len(lines) != len(pairs):
        raise DataError(f"{path} has {len(lines)} lines for {len(pairs)} pairs; each pair needs its own line")
    return [
        _gold(line, f"{path}:{number}", pair) for number, (line, pair) in enumerate(zip(lines, pairs, strict=True), 1)
    ]


def _gold(line: str, place: str, pair: Pair) -> Gold:
    sure: set[Link] = set()
    possible: set[Link] = set()
    n_source, n_target = len(pair.source.split()), len(pair.target.split())
    for word in line.split():
        found = _LINK.fullmatch(word)
        if not found:
            raise DataError(f"{place}: a link looks like 0-2, or 0?2 where it is only possible, not {word!r}")
        link = int(found[1]), int(found[3])
        if link[0] >= n_source or link[1] >= n_target:
            raise DataError(f"{place}: {word} points beyond the {n_source} source and {n_target} target words")
        (sure if found[2] == "-" else possible).add(link)
    return Gold(frozenset(sure), frozenset(possible))
