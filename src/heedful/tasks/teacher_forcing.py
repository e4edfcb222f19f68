"""An encoder and a decoder that is shown the right answer: what it would have said next, and what that cost.

Shapes: B rows, T target places, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from ..core import padding
from ..data.batch import Batch
from ..training.loss import cross_entropy


def logits_of(module: nn.Module, batch: Batch) -> Tensor:
    """(B, T, V): at every place of the target, of what comes next."""
    logits: Tensor = module(
        batch.source,
        batch.target_in,
        padding(batch.source_mask, lengths=batch.source_lengths, at_the_end=True),
        padding(batch.target_mask, lengths=batch.target_lengths, at_the_end=True),
    )
    return logits


@torch.inference_mode()
def mean_loss(module: nn.Module, batches: Iterable[Batch]) -> float:
    """Nats a token, the ends counted, without smoothing."""
    device = next(module.parameters()).device
    plain = count = torch.zeros((), device=device)
    for batch in batches:
        batch = batch.to(device)
        sums = cross_entropy(logits_of(module, batch), batch.target_out, batch.target_mask)
        plain, count = plain + sums.plain, count + sums.n
    return float(plain / count)
