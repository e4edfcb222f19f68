"""Linear maps in 8 bits by torch's own operators, for where the layers in C cannot be used."""

from __future__ import annotations

import warnings
from functools import cache

import torch
from torch import Tensor, nn

from ..core import MultiHeadAttention, VocabularyHead
from ..core.masks import Mask


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
_product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default


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


def in_int8(root: nn.Module) -> None:
    """Every linear map below, each by its 8-bit form.

    Integers make a product exact whatever stands beside a row, but attention's sums depend on the padding in
    their last digit, and one digit can move an integer. So with integers around it attention runs in float64,
    where that digit is far below what float32 keeps.
    """
    for part in list(root.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, nn.Linear):
                exact = isinstance(part, MultiHeadAttention) and child is not part.out
                setattr(part, name, packed(child, exact=exact))
            elif isinstance(child, VocabularyHead):
                setattr(part, name, Int8Head(child))


def packed(linear: nn.Linear, *, exact: bool) -> Int8:
    """A linear map in 8 bits; where it must be exact, its answer is in float64."""
    return Int8(linear.weight, linear.bias, dtype=torch.float64 if exact else torch.float32)


class Int8Head(nn.Module):
    """A vocabulary head whose matrix is in 8 bits."""

    def __init__(self, head: VocabularyHead) -> None:
        super().__init__()
        self.transform, self.scale, self.linear = head.transform, head.scale, Int8(head.weight, head.bias)

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        x = self.transform(x)
        logits: Tensor = self.linear(x if self.scale == 1.0 else x * self.scale)
        return logits
