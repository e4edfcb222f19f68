"""BPE dropout: a text in other pieces each time, so that a model learns how words are spelt.

Pieces are joined as the tokeniser joins them, the merge learnt first, first; but each merge that is considered is
passed over with the probability p, until another one is made. How many are made before one is passed over follows a
geometric distribution: drawn in advance, it tells of most words that nothing happens to them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from itertools import pairwise, repeat

import numpy as np
from tokenizers import Tokenizer as FastTokenizer

from ..errors import ConfigError
from .tokenizer import BYTE, Tokenizer, _normalised

REMEMBERED = 2**17  # words


class BpeDropout:
    """A tokeniser whose merges are passed over with the probability p, as (seed, key) alone decides."""

    def __init__(self, tokenizer: Tokenizer, p: float, seed: int = 0) -> None:
        if not 0 <= p <= 1:
            raise ConfigError(f"BPE dropout: p is the share of merges passed over, from 0 to 1, not {p}")
        if seed < 0:
            raise ConfigError(f"BPE dropout: seed must be 0 or more, not {seed}")
        self.p, self.seed = p, seed
        written = tokenizer.to_json()
        model = json.loads(written)["model"]
        self._fast = FastTokenizer.from_str(written)
        self._ids: dict[str, int] = model["vocab"]
        self._merges = {  # of two ids: when it was learnt, and what it makes
            (self._ids[left], self._ids[right]): (rank, self._ids[left + right])
            for rank, (left, right) in enumerate(model["merges"])
        }
        self._words: dict[str, tuple[list[int], list[int]]] = {}

    def encode(self, text: str, key: int | Sequence[int]) -> list[int]:
        """The ids of a text. The key tells this time from others: a number, or several, such as epoch and row."""
        skips = _skips(self.p, (self.seed, *(key if isinstance(key, Sequence) else (key,))))
        left = next(skips)  # so many merges are made before one is passed over
        ids: list[int] = []
        for word in self._split(text):
            smallest, usual = self._known(word)
            merges = len(smallest) - len(usual)
            if merges <= left:
                ids += usual
                left -= merges
            else:
                pieces, left = self._joined(smallest, left, skips)
                ids += pieces
        return ids

    def _split(self, text: str) -> list[str]:
        normal = self._fast.normalizer.normalize_str(_normalised(text))
        return [word for word, _ in self._fast.pre_tokenizer.pre_tokenize_str(normal)]

    def _known(self, word: str) -> tuple[list[int], list[int]]:
        """A word's smallest pieces, which are its characters or their bytes, and its usual ones."""
        known = self._words.get(word)
        if known is None:
            smallest = [index for character in word for index in self._spelt(character)]
            known = smallest, self._joined(smallest, len(smallest), repeat(0))[0]
            if len(self._words) >= REMEMBERED:
                self._words.clear()
            self._words[word] = known
        return known

    def _spelt(self, character: str) -> list[int]:
        index = self._ids.get(character)
        return [BYTE + byte for byte in character.encode("utf-8")] if index is None else [index]

    def _joined(self, smallest: list[int], left: int, skips: Iterator[int]) -> tuple[list[int], int]:
        """The pieces of a word, and how many more merges are made before the next is passed over."""
        pieces, merges = list(smallest), self._merges
        while True:
            pairs = enumerate(pairwise(pieces))
            for _, made, place in sorted((*merges[pair], place) for place, pair in pairs if pair in merges):
                if left:
                    left -= 1
                    pieces[place : place + 2] = [made]
                    break
                left = next(skips)
            else:
                return pieces, left


def _skips(p: float, seed: tuple[int, ...]) -> Iterator[int]:
    """How many merges are made before one is passed over; and again, without end."""
    if p == 0:
        yield from repeat(sys.maxsize)
    draw = np.random.default_rng(seed)
    while True:
        yield from (draw.geometric(p, 64) - 1).tolist()
