"""Initial weights.

Matrices: Xavier uniform, with the bound √(6 / (fan_in + fan_out)), which keeps the variance about the same forward and
backward. Biases: zero. Embedding tables: normal with standard deviation 1/√D, so an embedding scaled by √D has unit
deviation and a tied output layer starts with logits of order one. Norms: weight one, bias zero. GRUs: torch's default,
uniform within 1/√D. Families whose papers differ set their own initial weights afterwards.
"""

import torch
from torch import nn


def linear(d_in: int, d_out: int, *, bias: bool = True, pieces: int = 1) -> nn.Linear:
    """Return a linear layer. `pieces` matrices packed into one (keys and values) are initialized separately."""
    layer = nn.Linear(d_in, d_out, bias=bias)
    with torch.no_grad():
        for matrix in layer.weight.chunk(pieces):
            nn.init.xavier_uniform_(matrix)
        if bias:
            nn.init.zeros_(layer.bias)
    return layer


def table(n: int, d_model: int) -> nn.Parameter:
    """Return a table of n embedding vectors of width d_model."""
    return nn.Parameter(torch.randn(n, d_model) * d_model**-0.5)
