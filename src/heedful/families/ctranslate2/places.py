"""Where the tokens of a CTranslate2 model stand: in its layers, in a table, or by its own formula."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ...core import ALiBi, Learned, LinearScaling, Llama3Scaling, Positions, Relative, Rotary, Sinusoidal
from ..weights import WeightsError
from .parts import put, without_memory
from .variables import Variables

ENDLESS = 1024  # rows of a table that CTranslate2 computes as far as it must; it cuts its inputs there unless told


def positions_of(variables: Variables, stack: str, *, n_heads: int, d_model: int) -> Positions:
    """Those of a stack. One scheme serves all of its layers."""
    first, *others = [f"{stack}/layer_{index}/self_attention" for index in range(variables.count(f"{stack}/layer_"))]
    if variables.number(f"{stack}/alibi", 0):
        return ALiBi(n_heads)
    in_layers = _relative(variables, first, others, causal=stack == "decoder") or _rotary(
        variables, first, others, n_heads=n_heads
    )
    if in_layers is not None:
        return in_layers
    name = f"{stack}/position_encodings/encodings"
    table = variables.matrix(name) if name in variables else _usual(ENDLESS, d_model)
    for layout in ("interleaved", "halves"):
        formula = Sinusoidal(d_model, len(table), layout=layout)
        if table.shape[1] == d_model and torch.allclose(table, formula.table(), rtol=0, atol=1e-6):
            return formula
    positions = without_memory(Learned, len(table), d_model)
    put(positions, "weight", table, name)
    return positions


def _usual(length: int, d_model: int) -> Tensor:
    """CTranslate2's own: sines before cosines, from 1 on, the slowest turning once in 10,000 · 2π."""
    half = d_model // 2
    if half < 2 or d_model % 2:
        raise WeightsError(f"sinusoidal positions of width {d_model} are not known here")
    slower = torch.exp(torch.arange(half, dtype=torch.float64) * (-math.log(10000.0) / (half - 1)))
    angle = torch.arange(1, length + 1, dtype=torch.float64)[:, None] * slower
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


def _relative(variables: Variables, first: str, others: list[str], *, causal: bool) -> Relative | None:
    name = f"{first}/relative_attention_bias"
    if name not in variables:
        return None
    table = variables.matrix(name)
    distance = int(variables.number(f"{first}/relative_attention_max_distance", 0))
    for other in others:
        variables.weight(f"{other}/relative_attention_bias")
        if not variables.same(name, f"{other}/relative_attention_bias") or distance != int(
            variables.number(f"{other}/relative_attention_max_distance", 0)
        ):
            raise WeightsError(f"{first} and {other} have other relative positions; a stack has one scheme here")
    try:
        positions = without_memory(Relative, table.shape[1], n_buckets=len(table), max_distance=distance, causal=causal)
    except ValueError as error:
        raise WeightsError(f"{name}: {error}") from None
    put(positions, "weight", table, name)
    return positions


def _rotary(variables: Variables, first: str, others: list[str], *, n_heads: int) -> Rotary | None:
    said = [_rotary_said(variables, scope) for scope in (first, *others)]
    if any(other != said[0] for other in said):
        raise WeightsError(f"{first} and other layers turn by other angles; a stack has one scheme here")
    width, base, interleaved, kind, factor, low, high, original = said[0]
    if width < 0:
        return None
    scaling: LinearScaling | Llama3Scaling | None = None
    if kind == 0:
        scaling = LinearScaling(factor=factor)
    elif kind == 2:
        scaling = Llama3Scaling(factor=factor, low=low, high=high, original_length=int(original))
    elif kind != -1:
        raise WeightsError(f"{first}/rotary_scaling_type is {kind:g}; -1, 0 and 2 are known here")
    d_head = variables.matrix(f"{first}/linear_1/weight").shape[1] // n_heads
    try:
        return Rotary(d_head, base=base, width=int(width) or None, interleaved=bool(interleaved), scaling=scaling)
    except ValueError as error:
        raise WeightsError(f"{first}: {error}") from None


def _rotary_said(variables: Variables, scope: str) -> tuple[float, ...]:
    defaults = {
        "rotary_dim": -1,
        "rotary_base": 10000,
        "rotary_interleave": 1,
        "rotary_scaling_type": -1,
        "rotary_scaling_factor": 1,
        "rotary_low_freq_factor": 1,
        "rotary_high_freq_factor": 4,
        "original_max_position_embeddings": 0,
    }
    return tuple(variables.number(f"{scope}/{name}", default) for name, default in defaults.items())
