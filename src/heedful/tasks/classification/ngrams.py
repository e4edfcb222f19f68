"""A linear model over word and character n-grams: the rival of every text classifier, and a part of its answer.

Logistic regression over TF-IDF of hashed n-grams, scaled by the log-count ratios of naive Bayes (Wang and Manning,
2012). The n-grams are words and pairs of words, and 2 to 5 characters within a word.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Self
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor
from torch.nn import functional as F

from ...families.weights import finite_tensors
from ...files import replacing
from ..bundle import BundleError
from ..linear_classifier import SparseRows, fit_linear
from ..predictor import in_chunks

LONGEST = 5  # characters of an n-gram
MAX_HASHES, MAX_WEIGHTS = 1 << 18, 1 << 24  # of each kind of n-gram; of the model
PENALTY = 0.1
CHUNK = 1024  # texts hashed at once

Integers = NDArray[Any]


class NgramClassifier:
    """A linear classifier of texts, or of pairs of texts.

    Attributes:
        n_kinds: kinds of n-grams: words, and characters, of each text.
        n_hashes: hashes of each kind.
        ids: (F,), the n-grams that training texts have, as kind · n_hashes + hash.
        frequencies: (F,), how many training texts have each.
        n_examples: how many training texts there were.
        weights: (F + 1, C); row 0 stands for all n-grams that no training text has.
        bias: (C,).
    """

    weights: Tensor
    bias: Tensor

    def __init__(self, n_kinds: int, n_hashes: int, ids: Integers, frequencies: Integers, n_examples: int) -> None:
        self.n_kinds, self.n_hashes, self.width = n_kinds, n_hashes, n_kinds * n_hashes
        self.ids, self.frequencies, self.n_examples = ids, frequencies, n_examples
        self.feature = np.zeros(self.width, np.int32)
        self.feature[ids] = np.arange(1, len(ids) + 1)
        n_documents = np.zeros(self.width)
        n_documents[ids] = frequencies
        self.idf = (np.log((1 + n_examples) / (1 + n_documents)) + 1).astype(np.float32)

    @classmethod
    def fit(cls, examples: Sequence[Sequence[str]], labels: Sequence[int], n_classes: int) -> Self:
        """Return a classifier trained on texts (of each example one or two) and their classes."""
        n_kinds = 2 * max(map(len, examples))
        n_hashes = max(1, min(MAX_HASHES, MAX_WEIGHTS // (n_kinds * n_classes)))
        nothing = np.zeros(0, np.int32)
        counts = [cls(n_kinds, n_hashes, nothing, nothing, 0)._count(chunk) for chunk in in_chunks(examples, CHUNK)]
        width = n_kinds * n_hashes
        each = (np.bincount(keys % width, minlength=width) for _, keys, _ in counts)
        frequencies = sum(each, start=np.zeros(width, np.int64))
        (ids,) = np.nonzero(frequencies)
        model = cls(n_kinds, n_hashes, ids.astype(np.int32), frequencies[ids].astype(np.int32), len(examples))
        bags = SparseRows(*map(torch.cat, zip(*(model._bags(*part) for part in counts), strict=True)))
        columns, shape = bags.transposed(len(ids) + 1), (len(ids) + 1, n_classes)
        ratios = log_count_ratios(columns, labels, n_classes)
        weights, model.bias = fit_linear(
            lambda weights: bags.times(weights * ratios),
            lambda errors: columns.times(errors) * ratios,
            labels,
            shape,
            PENALTY,
        )
        model.weights = (weights * ratios).half().float()  # as `save` writes them
        return model

    def log_probabilities(self, examples: Sequence[Sequence[str]]) -> Tensor:
        """Return the log-probability of each class (N, C)."""
        bags = (self._bags(*self._count(chunk)) for chunk in in_chunks(examples, CHUNK))
        return torch.cat([rows.times(self.weights) + self.bias for rows in bags]).log_softmax(dim=-1)

    def save(self, path: Path) -> None:
        """Write the model atomically, as safetensors."""
        arrays = {"ids": self.ids, "frequencies": self.frequencies}
        sizes = np.array([self.n_kinds, self.n_hashes, self.n_examples])
        tensors = {name: torch.from_numpy(array) for name, array in {**arrays, "sizes": sizes}.items()}
        with replacing(path) as partial:
            save_file({**tensors, "weights": self.weights.half(), "bias": self.bias}, partial)
            partial.chmod(0o644)  # the library makes it the owner's alone

    @classmethod
    def load(cls, path: Path, n_classes: int) -> Self:
        """Read what `save` wrote; BundleError if it is damaged or of another model."""
        try:
            tensors = finite_tensors(path)
            ids, frequencies = tensors["ids"].numpy(), tensors["frequencies"].numpy()
            weights, bias, sizes = tensors["weights"].float(), tensors["bias"], tensors["sizes"].tolist()
            if weights.shape != (len(ids) + 1, n_classes) or bias.shape != (n_classes,):
                raise ValueError(f"its weights are of shape {tuple(weights.shape)}, for {n_classes} classes")
            if sizes[0] not in (2, 4) or not 0 < sizes[1] <= MAX_HASHES or len(sizes) != 3 or (ids < 0).any():
                raise ValueError(f"its sizes are {sizes}")
            model = cls(sizes[0], sizes[1], ids, frequencies, sizes[2])
        except (KeyError, ValueError, IndexError) as error:
            raise BundleError(f"{path} cannot be read: {error}") from None
        model.weights, model.bias = weights, bias
        return model

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


def log_count_ratios(columns: SparseRows, labels: Sequence[int], n_classes: int) -> Tensor:
    """Return (F, C): how much likelier a feature is in a class than outside it, as naive Bayes counts (plus one)."""
    one_hot = F.one_hot(torch.tensor(labels), n_classes).float()
    counts = columns._replace(values=(columns.values > 0).float()).times(one_hot)
    inside, outside = counts + 1, counts.sum(dim=1, keepdim=True) - counts + 1
    return (inside / inside.sum(dim=0)).log() - (outside / outside.sum(dim=0)).log()


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
