"""A linear model over word and character n-grams: the rival of every text classifier.

Logistic regression over TF-IDF of hashed n-grams: words and pairs of words, and 2 to 5 characters within a word.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray

from ..linear_classifier import SparseRows, fit_linear
from ..predictor import in_chunks

LONGEST = 5  # characters of an n-gram
MAX_HASHES, MAX_WEIGHTS = 1 << 18, 1 << 24  # of each kind of n-gram; of the model
PENALTY = 0.1
CHUNK = 1024  # texts hashed at once

Integers = NDArray[Any]


class NgramClassifier:
    """A linear classifier of texts, or of pairs of texts, trained on creation."""

    def __init__(self, examples: Sequence[Sequence[str]], labels: Sequence[int], n_classes: int) -> None:
        self.n_kinds = 2 * max(map(len, examples))  # of n-grams: words and characters of each text
        self.n_hashes = max(1, min(MAX_HASHES, MAX_WEIGHTS // (self.n_kinds * n_classes)))
        self.width = self.n_kinds * self.n_hashes
        counts = [self._count(chunk) for chunk in in_chunks(examples, CHUNK)]
        n_documents = sum(np.bincount(keys % self.width, minlength=self.width) for _, keys, _ in counts)
        self.idf = (np.log((1 + len(examples)) / (1 + n_documents)) + 1).astype(np.float32)
        self.feature = (np.cumsum(n_documents > 0) * (n_documents > 0)).astype(np.int32)  # 0: not in training
        bags = SparseRows(*map(torch.cat, zip(*(self._bags(*part) for part in counts), strict=True)))
        shape = int(self.feature.max()) + 1, n_classes
        self.weights, self.bias = fit_linear(bags.times, bags.transposed(shape[0]).times, labels, shape, PENALTY)

    def predict(self, examples: Sequence[Sequence[str]]) -> list[int]:
        """Return the likeliest class of each example."""
        bags = (self._bags(*self._count(chunk)) for chunk in in_chunks(examples, CHUNK))
        return [index for rows in bags for index in (rows.times(self.weights) + self.bias).argmax(dim=-1).tolist()]

    def _count(self, examples: Sequence[Sequence[str]]) -> tuple[int, Integers, Integers]:
        """Return the number of examples; the different n-grams of all, as row · width + hash; how often each occurs."""
        keys = []
        for field in range(self.n_kinds // 2):
            texts = [example[field] if field < len(example) else "" for example in examples]
            for kind, (rows, hashes) in enumerate(ngrams(texts), 2 * field):
                keys.append(rows * self.width + kind * self.n_hashes + (hashes % self.n_hashes).astype(np.int64))
        unique, counts = np.unique(np.concatenate(keys), return_counts=True)
        return len(examples), unique, counts.astype(np.int32)

    def _bags(self, n: int, keys: Integers, counts: Integers) -> SparseRows:
        """Return the features of each example; the values of each kind of n-gram have the norm 1."""
        kinds, ids = keys // self.n_hashes, keys % self.width
        values = (1 + np.log(counts, dtype=np.float32)) * self.idf[ids]
        values /= np.sqrt(np.bincount(kinds, values**2)[kinds]).astype(np.float32)
        lengths = np.bincount(keys // self.width, minlength=n)
        return SparseRows(*map(torch.from_numpy, (self.feature[ids], values, lengths)))


def ngrams(texts: Sequence[str]) -> Iterator[tuple[Integers, Integers]]:
    """Yield the rows and the hashes of all words and pairs of words, then those of all n-grams of characters.

    An n-gram of characters may begin with the space before a word and end with the one after it.
    """
    split = [text.lower().split() for text in texts]
    rows = np.repeat(np.arange(len(texts)), [len(tokens) for tokens in split])
    hashes = np.array([crc32(word.encode()) for tokens in split for word in tokens], np.uint64)
    follows = rows[1:] == rows[:-1]
    yield np.concatenate([rows, rows[1:][follows]]), np.concatenate([hashes, _mix(hashes[:-1], hashes[1:])[follows]])

    padded = [f" {' '.join(tokens)} " for tokens in split]
    characters = np.frombuffer("".join(padded).encode("utf-32-le"), np.uint32).astype(np.uint64)
    row_of = np.repeat(np.arange(len(texts)), [len(text) for text in padded])
    places, is_space = np.arange(len(characters)), characters == ord(" ")
    last_space = np.maximum.accumulate(np.where(is_space, places, 0))
    hashes, grams = characters, []
    for size in range(2, LONGEST + 1):
        hashes = _mix(hashes[:-1], characters[size - 1 :])
        within = (last_space[size - 2 : -1] <= places[: len(hashes)]) & ~(is_space[:-1] & is_space[1:])[: len(hashes)]
        grams.append((row_of[: len(hashes)][within], hashes[within]))
    yield np.concatenate([rows for rows, _ in grams]), np.concatenate([hashes for _, hashes in grams])


def _mix(hashes: Integers, values: Integers) -> Integers:
    """Return hashes of pairs of numbers; products wrap around."""
    mixed = (hashes ^ (hashes >> np.uint64(29))) * np.uint64(0x9E3779B97F4A7C15) + values
    return np.asarray(mixed ^ (mixed >> np.uint64(32)))
