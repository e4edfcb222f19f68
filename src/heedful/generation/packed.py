"""Linear maps laid out for generation: one row at a time in float32, and int8.

Shapes: R rows, K in, N out.
"""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Columns(nn.Module):
    """x Wᵀ + b with W kept input by input, so that one row streams through memory once and in order.

    A product of one row is bound by reading the weights: each thread is given inputs of its own, and their
    sums are added. With more rows it is an ordinary product.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.columns = weight.detach().t().contiguous()  # (K, N)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        n_threads = torch.get_num_threads()
        if x.numel() != self.in_features or n_threads == 1 or self.in_features % n_threads:
            return F.linear(x, self.columns.t(), self.bias)
        parts = torch.bmm(x.reshape(n_threads, 1, -1), self.columns.view(n_threads, -1, self.out_features))
        y = parts.sum(dim=0)
        return (y if self.bias is None else y + self.bias).view(*x.shape[:-1], -1)


class Int8(nn.Module):
    """x Wᵀ + b with 8-bit weights, scaled for each output, and 8-bit inputs, scaled for each row by its largest.

    A row's own scale, and not one for all rows, makes its answer independent of its neighbours: sums of
    integers are exact, and the rest is done row by row. `dtype` is that of the answer.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.bias = (torch.zeros(weight.shape[0]) if bias is None else bias.detach()).to(dtype)
        self._dtype = dtype
        self._levels = _levels()
        self._packed = _pack(weight)

    def forward(self, x: Tensor) -> Tensor:
        largest = x.abs().amax(dim=-1, keepdim=True)
        # A row of zeros is divided by zero: whatever integers come of it, they are multiplied by zero again.
        y = _product((x / largest).float(), 1 / self._levels, self._levels + 1, self._packed)
        return torch.addcmul(self.bias, y, largest.to(self._dtype))


# The operators are torch's own way to FBGEMM. Its quantised tensors are on their way out: this is the only place
# that knows them, and `int8_works` asks before anything relies on it.
_product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32


def _pack(weight: Tensor) -> object:
    """The matrix as FBGEMM reads it."""
    rows = weight.detach().float()
    scales = (rows.abs().amax(dim=1).double() / 127).clamp(min=1e-30)
    zeros = torch.zeros(len(rows), dtype=torch.long)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantize_per_channel.*")
        whole = torch.quantize_per_channel(rows, scales, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(whole, None)


@cache
def int8_works() -> bool:
    """Whether this machine and this torch multiply 8-bit integers."""
    try:
        _pack(torch.ones(1, 4))
    except (RuntimeError, AttributeError):
        return False
    return True


@cache
def _levels() -> int:
    """How many steps an input has on each side of zero: 127, or 63 where two products overflow 16 bits."""
    ones = torch.ones(1, 64)
    full = _product(ones, 1 / 127, 128, _pack(ones))
    return 127 if bool((full - 64).abs() < 0.5) else 63
