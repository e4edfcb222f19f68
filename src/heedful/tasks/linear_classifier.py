"""Multinomial logistic regression, for the linear models that classifiers are compared with.

Shapes: N examples, F features, C classes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

MAX_STEPS = 100  # of L-BFGS
HISTORY = 5  # gradients that L-BFGS keeps, each as large as the weights
Product = Callable[[Tensor], Tensor]


class SparseRows(NamedTuple):
    """A matrix (N, F): the columns and values of all entries row by row, and how many there are in each row."""

    columns: Tensor
    values: Tensor
    lengths: Tensor

    def times(self, weights: Tensor) -> Tensor:
        """Return the product with weights (F, C)."""
        starts = (self.lengths.cumsum(0) - self.lengths).to(self.columns.dtype)
        return F.embedding_bag(self.columns, weights, starts, mode="sum", per_sample_weights=self.values)

    def transposed(self, n_columns: int) -> "SparseRows":
        rows = torch.repeat_interleave(torch.arange(len(self.lengths), dtype=self.columns.dtype), self.lengths)
        order = self.columns.argsort(stable=True)
        return SparseRows(rows[order], self.values[order], torch.bincount(self.columns, minlength=n_columns))


@torch.no_grad()
def fit_linear(
    times: Product, transposed_times: Product, labels: Sequence[int], shape: tuple[int, int], penalty: float
) -> tuple[Tensor, Tensor]:
    """Return the weights (F, C) and the bias (C) with the least cross-entropy, summed, plus penalty / 2 · ‖weights‖².

    `times` multiplies the features with weights (F, C), `transposed_times` the transposed features with values (N, C):
    the gradient is written out, as that of an embedding bag takes 15 times as long. `shape` is (F, C).
    """
    classes = torch.as_tensor(labels)
    targets = F.one_hot(classes, shape[1]).float()
    weights, bias = torch.zeros(shape), torch.zeros(shape[1])
    optimizer = torch.optim.LBFGS(
        [weights, bias], max_iter=MAX_STEPS, history_size=HISTORY, tolerance_change=1e-6, line_search_fn="strong_wolfe"
    )

    def closure() -> Tensor:
        logits = times(weights) + bias
        error = (logits.softmax(dim=-1) - targets) / len(classes)
        weights.grad = transposed_times(error) + penalty / len(classes) * weights
        bias.grad = error.sum(dim=0)
        return F.cross_entropy(logits, classes) + penalty / (2 * len(classes)) * weights.square().sum()

    optimizer.step(closure)
    return weights, bias
