"""Training of the small models that figures need: a second or less."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Batch = Callable[[int, torch.Generator], tuple[Tensor, Tensor]]  # of a size: inputs, and the classes to predict


def train_small(
    build: Callable[[], nn.Module], batch: Batch, *, steps: int = 200, rate: float = 1e-2, seed: int = 0
) -> nn.Module:
    """Return a model trained with Adam on batches of 16; the rate falls to zero over the second half."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = build()
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        for step in range(steps):
            optimizer.param_groups[0]["lr"] = rate * min(1, 2 * (1 - step / steps))
            inputs, classes = batch(16, generator)
            loss = F.cross_entropy(model(inputs).flatten(0, -2), classes.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return model.eval()
