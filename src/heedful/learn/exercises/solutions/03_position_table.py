"""The table of positions."""

import torch
from torch import Tensor


def position_table(length: int, d_model: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/D)), PE(pos, 2i + 1) = cos(pos / 10000^(2i/D)) → (T, D)"""
    even = torch.arange(0, d_model, 2)
    angle = torch.arange(length)[:, None] / 10000 ** (even / d_model)
    table = torch.empty(length, d_model)
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : d_model // 2]
    return table


def find_wrong_table(tables: list[Tensor]) -> int:
    """[(T₀, 8), (T₁, 8), …] → 0, 1, …"""
    errors = [float((table - position_table(*table.shape)).abs().max()) for table in tables]
    return errors.index(max(errors))
