"""Linear maps in 8 bits by torch's own operators, for where the layers in C cannot be used."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from ..core import MultiHeadAttention, VocabularyHead
from ..core.masks import Mask
from .registry import ModuleImplementation, device_type, machine_check, register


@register("int8", nn.Linear)
class Int8Linear(ModuleImplementation, nn.Module):
    """x Wᵀ + b with 8-bit weights, scaled for each output, and 8-bit inputs, scaled for each row by its largest.

    A row's own scale, and not one for all rows, makes its answer independent of its neighbours: sums of
    integers are exact, and the rest is done row by row. `dtype` is that of the answer.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.bias = torch.zeros(weight.shape[0]) if bias is None else bias.detach()
        self._levels = _levels()
        self._packed = _pack(weight)
        self.answer_in(dtype)

    @classmethod
    def from_part(cls, part: Any) -> Int8Linear:
        return cls(part.weight, part.bias)

    def answer_in(self, dtype: torch.dtype) -> None:
        """Give answers of this dtype from now on."""
        self._dtype, self.bias = dtype, self.bias.to(dtype)

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


@machine_check("int8")
def _machine(module: nn.Module) -> Iterator[str]:
    where = device_type(module) or "cpu"
    if where != "cpu":
        yield f'precision "int8" is for CPUs, and this model is on a {where} device; use "bf16" there'
    elif not int8_works():
        yield "this torch has no FBGEMM"


@register("int8", MultiHeadAttention)
class Int8MultiHeadAttention(ModuleImplementation, MultiHeadAttention):
    """Attention between 8-bit maps, which runs in float64.

    Integers make a product exact whatever stands beside a row, but attention's sums depend on the padding in
    their last digit, and one digit can move an integer. In float64 that digit is far below what float32 keeps.
    """

    def finish(self, context: Any) -> None:
        linears: list[nn.Module] = [self.query, self.key_value]
        for linear in linears:
            if isinstance(linear, Int8Linear):
                linear.answer_in(torch.float64)


@register("int8", VocabularyHead)
class Int8VocabularyHead(ModuleImplementation, nn.Module):
    """A vocabulary head whose matrix is in 8 bits."""

    def __init__(self, head: VocabularyHead) -> None:
        super().__init__()
        self.transform, self.scale, self.linear = head.transform, head.scale, Int8Linear(head.weight, head.bias)

    @classmethod
    def from_part(cls, part: Any) -> Int8VocabularyHead:
        return cls(part)

    def forward(self, x: Tensor, keep: Mask | None = None) -> Tensor:
        x = self.transform(x)
        logits: Tensor = self.linear(x if self.scale == 1.0 else x * self.scale)
        return logits
