"""How weights start.

Matrices: Xavier uniform, the bound √(6 / (fan_in + fan_out)) keeping the variance of what passes
through about the same in both directions. Biases: zero. Tables of embeddings: normal with deviation
1/√D, so that an embedding scaled by √D has unit deviation and a tied output layer starts with logits
of order one. Norms: weight one, bias zero. GRUs: as torch starts them, uniform within 1/√D. Families
whose papers start otherwise set their own afterwards.
"""

import torch
from torch import nn


def linear(d_in: int, d_out: int, *, bias: bool = True, pieces: int = 1) -> nn.Linear:
    """A linear map. `pieces` matrices packed into one (keys and values) start as if each stood alone."""
    layer = nn.Linear(d_in, d_out, bias=bias)
    with torch.no_grad():
        for matrix in layer.weight.chunk(pieces):
            nn.init.xavier_uniform_(matrix)
        if bias:
            nn.init.zeros_(layer.bias)
    return layer


def table(n: int, d_model: int) -> nn.Parameter:
    """A table of n vectors."""
    return nn.Parameter(torch.randn(n, d_model) * d_model**-0.5)
