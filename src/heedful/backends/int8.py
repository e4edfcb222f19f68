"""Linear maps in 8 bits by torch's operators, for machines without the layers in C."""

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
    """x Wᵀ + b with 8-bit weights, scaled for each output, and 8-bit inputs, scaled for each row by its largest value.

    A separate scale for each row makes a row's output independent of the other rows: sums of integers are exact, and
    the rest is computed row by row. `dtype` is that of the output.
    """

    def __init__(self, weight: Tensor, bias: Tensor | None = None, *, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.out_features, self.in_features = weight.shape
        self.bias = torch.zeros(weight.shape[0]) if bias is None else bias.detach()
        self._levels = _levels()
        self._packed = _pack(weight)
        self.set_dtype(dtype)

    @classmethod
    def from_part(cls, part: Any) -> Int8Linear:
        return cls(part.weight, part.bias)

    def set_dtype(self, dtype: torch.dtype) -> None:
        """Set the dtype of the output."""
        self._dtype, self.bias = dtype, self.bias.to(dtype)

    def forward(self, x: Tensor) -> Tensor:
        largest = x.abs().amax(dim=-1, keepdim=True)
        # A row of zeros is divided by zero. The resulting integers do not matter: they are multiplied by zero.
        y = _product((x / largest).float(), 1 / self._levels, self._levels + 1, self._packed)
        return torch.addcmul(self.bias, y, largest.to(self._dtype))


# These operators are torch's interface to FBGEMM. Torch is about to remove its quantized tensors: only this module uses
# them, after `int8_works` has checked that they exist.
_product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32.default


def _pack(weight: Tensor) -> object:
    """Pack a matrix into FBGEMM's layout."""
    rows = weight.detach().float()
    scales = (rows.abs().amax(dim=1).double() / 127).clamp(min=1e-30)
    zeros = torch.zeros(len(rows), dtype=torch.long)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*quantize_per_channel.*")
        whole = torch.quantize_per_channel(rows, scales, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(whole, None)


@cache
def int8_works() -> bool:
    """Return True if this machine and this torch multiply 8-bit integers."""
    try:
        _pack(torch.ones(1, 4))
    except (RuntimeError, AttributeError):
        return False
    return True


@cache
def _levels() -> int:
    """Return the largest level of an input: 127, or 63 if the sum of two products overflows 16 bits here."""
    ones = torch.ones(1, 64)
    full = _product(ones, 1 / 127, 128, _pack(ones))
    return 127 if bool((full - 64).abs() < 0.5) else 63


@machine_check("int8")
def _machine(module: nn.Module) -> Iterator[str]:
    if (device := device_type(module) or "cpu") != "cpu":
        yield f'precision "int8" is for CPUs, and this model is on a {device} device; use "bf16" there'
    elif not int8_works():
        yield "this torch has no FBGEMM"


@register("int8", MultiHeadAttention)
class Int8MultiHeadAttention(ModuleImplementation, MultiHeadAttention):
    """Attention in float64 between 8-bit projections.

    Integer products are exact in any batch, but the last digit of attention's sums depends on the padding, which could
    change an integer. In float64 that digit is far below the precision of float32.
    """

    def finish(self, context: Any) -> None:
        linears: list[nn.Module] = [self.q_proj, self.kv_proj]
        for linear in linears:
            if isinstance(linear, Int8Linear):
                linear.set_dtype(torch.float64)


@register("int8", VocabularyHead)
class Int8VocabularyHead(ModuleImplementation, nn.Module):
    """A vocabulary head with an 8-bit matrix."""

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
