"""Which word was made from which: cross-attention between tokens, gathered into words, of every head and their means.

Shapes: T tokens written, S source tokens; J target words, I source words.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ...data.published_tokenizer import PublishedTokenizer
from ...data.tokenizer import Tokenizer
from ...lens.alignment import Head, best_links, with_means, word_weights
from ...lens.document import Arrays, Kind
from ...lens.tokens import TokenDict


@dataclass(frozen=True)
class WordSequence:
    """The words of a sentence, and for each of its tokens the number of its word, None for one of no word."""

    words: list[str]
    places: list[int | None]

    @classmethod
    def of(
        cls, tokenizer: Tokenizer | PublishedTokenizer, ids: Sequence[int], tokens: Sequence[TokenDict]
    ) -> WordSequence:
        """Of ids and the tokens that were made of them; a letter that several of them spell is there once."""
        places = [token["word"] for token in tokens]
        words: dict[int, str] = {}
        for text, start, _ in tokenizer.readable(ids):
            if (place := places[start]) is not None:
                words[place] = words.get(place, "") + text
        return cls([unicodedata.normalize("NFC", words[place]).strip() for place in sorted(words)], places)


def alignment(
    rows: Mapping[Head, Tensor], source: WordSequence, target: WordSequence, arrays: Arrays, kind: Kind
) -> dict[str, Any] | None:
    """Of weights (T, S) by head, row i being the one that predicted token i of the target. None without words.

    Nobody has said which head is right: the map that is chosen has the most `agreement`. The means come first, and of
    those with as much, the first is taken.
    """
    if not source.words or not target.words:
        return None
    words = {head: word_weights(each.float().cpu(), source.places, target.places) for head, each in rows.items()}
    maps = with_means(words)
    ordered = sorted(maps, key=lambda head: (head.head is not None, head.layer is not None, head.layer, head.head))
    chosen = max(ordered, key=lambda head: agreement(maps[head]))
    return {
        "source": source.words,
        "target": target.words,
        "maps": [{"layer": head.layer, "head": head.head, "weights": arrays.put(maps[head], kind)} for head in ordered],
        "chosen": ordered.index(chosen),
        "links": sorted(map(list, best_links(maps[chosen]))),
    }


def agreement(weights: Tensor) -> float:
    """Of weights (J, I), the share of target words whose best source word has them as its own best.

    A head that always looks at the same word has little of it.
    """
    forth, back = weights.argmax(dim=1), weights.argmax(dim=0)
    return float((back[forth] == torch.arange(len(weights))).float().mean())
