"""Word alignment from cross-attention, and its error rate.

The decoder's row i reads target token i − 1 and predicts token i, so row i is what token i was made from:
with `target_in` (start + target) going in, row i belongs to token i of `target_out` (target + end).

Shapes: T target tokens, S source tokens; J target words, I source words. A link is (source word, target word).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ..errors import HeedfulError
from .recorder import Recording

Link = tuple[int, int]
Links = frozenset[Link]
WordMap = Sequence[int | None]  # for each token the number of its word, None for the end and other special tokens


class AlignmentError(HeedfulError, ValueError):
    """Raised for weights, word maps and links that do not match."""


@dataclass(frozen=True, order=True)
class Head:
    """One head; None stands for the mean over a layer's heads, or over all layers."""

    layer: int | None = None
    head: int | None = None

    def __str__(self) -> str:
        if self.layer is None:
            return "mean of all heads"
        return f"layer {self.layer}, " + ("mean of heads" if self.head is None else f"head {self.head}")


@dataclass(frozen=True)
class Gold:
    """The reference links. `sure` links must be predicted, `possible` links may be."""

    sure: Links
    possible: Links = frozenset()

    @property
    def allowed(self) -> Links:
        return self.sure | self.possible


@dataclass(frozen=True, eq=False)
class Example:
    """One sentence pair: the weights (J, I) between words of every head, and the true links."""

    weights: Mapping[Head, Tensor]
    gold: Gold


@dataclass(frozen=True)
class Choice:
    """The head with the lowest error rate, and the rates of all that were tried."""

    head: Head
    error_rate: float
    rates: Mapping[Head, float]


def predicting_rows(recording: Recording, row: int, n_target: int, n_source: int) -> dict[Head, Tensor]:
    """Return the weights (T, S) of each head for the first `n_target` tokens of one sentence in a recorded batch.

    Record a call over the whole `target_in`; a cached generation leaves single rows, so replay its answer.
    """
    latest = {look.layer: look for look in recording.looks if (look.stack, look.kind) == ("decoder", "cross")}
    if not latest:
        raise AlignmentError("there is no cross-attention in this recording; record an encoder-decoder")
    rows: dict[Head, Tensor] = {}
    for layer, look in sorted(latest.items()):
        batch, _, length, width = look.weights.shape
        if not 0 <= row < batch or n_target > length or n_source > width:
            raise AlignmentError(
                f"sentence {row} with {n_target} target and {n_source} source tokens was asked for, but layer {layer} "
                f"recorded {batch} sentences of {length} and {width}; record one call over the whole target"
            )
        for place, head in enumerate(look.heads):
            rows[Head(layer, head)] = look.weights[row, place, :n_target, :n_source]
    return rows


def word_weights(weights: Tensor, source_words: WordMap, target_words: WordMap) -> Tensor:
    """Turn weights between tokens (T, S) into weights between words (J, I): summed over the tokens of a source word,
    averaged over those of a target word. Tokens of no word are left out, and nothing is scaled up for them.
    """
    if weights.shape != (len(target_words), len(source_words)):
        raise AlignmentError(
            f"the weights are {tuple(weights.shape)}, but the maps name {len(target_words)} target "
            f"and {len(source_words)} source tokens; give None for tokens that belong to no word"
        )
    sources = _membership(source_words, "source").to(weights)  # (S, I)
    targets = _membership(target_words, "target").to(weights)  # (T, J)
    return (targets / targets.sum(dim=0).clamp(min=1)).T @ weights @ sources


def with_means(weights: Mapping[Head, Tensor]) -> dict[Head, Tensor]:
    """Add the mean of each layer that has several heads and, where there are several layers, the mean of all heads."""
    layers: dict[int, list[Tensor]] = {}
    for head, values in weights.items():
        if head.layer is None or head.head is None:
            raise AlignmentError(f"means are made from single heads, and this is the {head}")
        layers.setdefault(head.layer, []).append(values)
    means = {Head(layer): torch.stack(maps).mean(dim=0) for layer, maps in layers.items() if len(maps) > 1}
    if len(layers) > 1:
        means[Head()] = torch.stack(list(weights.values())).mean(dim=0)
    return {**weights, **means}


def best_links(weights: Tensor) -> Links:
    """Link each target word to the source word with the largest weight."""
    places = weights.argmax(dim=1).tolist() if weights.numel() else []
    return frozenset((source, target) for target, source in enumerate(places))


def diagonal_links(n_source: int, n_target: int) -> Links:
    """Return the diagonal baseline: each target word is linked to the source word at the same relative position."""
    targets = range(n_target if n_source else 0)
    return frozenset(((2 * target + 1) * n_source // (2 * n_target), target) for target in targets)


def error_rate(predicted: Iterable[Iterable[Link]], gold: Iterable[Gold]) -> float:
    """Return the alignment error rate over all sentences: 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|). 0 is perfect."""
    hits = total = 0
    for links, true in zip(map(frozenset, predicted), gold, strict=True):
        hits += len(links & true.sure) + len(links & true.allowed)
        total += len(links) + len(true.sure)
    return 1 - hits / total if total else 0.0


def choose_head(examples: Sequence[Example]) -> Choice:
    """Select the head, or mean of heads, with the lowest error rate; the first one if several are equal.

    Choose on validation sentences and report on others.
    """
    if not examples:
        raise AlignmentError("a head is chosen on examples, and there are none")
    heads = list(examples[0].weights)
    if any(set(example.weights) != set(heads) for example in examples):
        raise AlignmentError("the examples hold different heads; record the same layers and heads for all of them")
    gold = [example.gold for example in examples]
    rates = {head: error_rate([best_links(example.weights[head]) for example in examples], gold) for head in heads}
    best = min(rates, key=rates.__getitem__)
    return Choice(best, rates[best], rates)


def _membership(word_map: WordMap, side: str) -> Tensor:
    """Return a matrix (tokens, words) that is 1 where the token belongs to the word."""
    numbers = [word for word in word_map if word is not None]
    count = max(numbers, default=-1) + 1
    if sorted(set(numbers)) != list(range(count)):
        raise AlignmentError(f"{side} words are numbered from 0 without gaps, got {sorted(set(numbers))}")
    return torch.tensor([word == number for word in word_map for number in range(count)]).reshape(len(word_map), count)
