"""What the probes of benchmarks/silent_failures.py share: contenders of the same weights, and verdicts from numbers.

Where torch.nn has no such part, the few lines that many tutorials put in its place stand here, named `common`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

import heedful
from _measure import kept_for_backward
from heedful.families.torch_nn import from_torch

D, H, V, EXACT = 16, 4, 23, 1e-12
COMMON = "no such part; common code"
MODES = {"training": (True, True), "evaluation": (False, True), "evaluation without gradients": (False, False)}
StepStatus = tuple[bool, str]  # right or not, and the numbers


@dataclass(frozen=True)
class Outcome:
    """What one contender did."""

    who: str
    right: bool
    words: str

    def __str__(self) -> str:
        return f"{self.who}: {'right' if self.right else 'WRONG'}, {self.words}"


@dataclass(frozen=True)
class Finding:
    """One row of the table."""

    error: str
    probed: str
    theirs: list[Outcome]
    ours: list[Outcome]


def transformers(**options: Any) -> tuple[Any, Any]:
    """torch's own model, and Heedful's with the same weights."""
    theirs = nn.Transformer(D, H, 2, 2, 32, dropout=0.0, batch_first=True, **options)
    return theirs, from_torch(theirs)


def translator(family: str = "original", **options: Any) -> Any:
    """A small Heedful model over tokens."""
    sizes = {"vocab_size": V, "d_model": D, "dropout": 0.0}
    if family == "original":
        sizes |= {"n_heads": H, "d_ff": 32, "n_encoder_layers": 2, "n_decoder_layers": 2}
    return heedful.build({"family": family} | sizes | options)


def look_ahead(n: int) -> Tensor:
    """The causal mask as torch.nn wants it: True where one may NOT attend."""
    return torch.ones(n, n, dtype=torch.bool).triu(1)


def padded(rows: list[Tensor], side: str, length: int) -> tuple[Tensor, Tensor]:
    """Rows of vectors as one batch, its padding filled with anything, and its keep."""
    batch, keep = torch.randn(len(rows), length, D), torch.zeros(len(rows), length, dtype=torch.bool)
    for i, row in enumerate(rows):
        places = slice(len(row)) if side == "right" else slice(length - len(row), length)
        batch[i, places], keep[i, places] = row, True
    return batch, keep


def common_loop(pos: int, d_model: int) -> Tensor:
    """The sinusoids of one position; i counts dimensions already, and is doubled again."""
    row = torch.zeros(d_model)
    for i in range(0, d_model, 2):
        row[i] = math.sin(pos / 10000 ** (2 * i / d_model))
        row[i + 1] = math.cos(pos / 10000 ** (2 * i / d_model))
    return row


def common_table(length: int, d_model: int) -> Tensor:
    """The sinusoids in the other common form, right wherever d_model is even."""
    rate = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
    angle = torch.arange(length)[:, None] * rate
    table = torch.zeros(length, d_model)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)
    return table


def in_every_mode(who: str, model: nn.Module, probe: Callable[[], StepStatus]) -> list[Outcome]:
    """Training, evaluation, evaluation without gradients: one outcome for all that agree, with the first's numbers."""
    found: dict[bool, tuple[str, list[str]]] = {}
    for name, (training, gradients) in MODES.items():
        model.train(training).zero_grad()
        with torch.set_grad_enabled(gradients):
            right, words = probe()
        found.setdefault(right, (words, []))[1].append(name)
    return [
        Outcome(who if len(found) == 1 else f"{who} in {' and '.join(names)}", right, words)
        for right, (words, names) in found.items()
    ]


def health(model: nn.Module, out: Tensor) -> StepStatus:
    """Whether outputs are finite, and the gradients they give."""
    broken = (~out.isfinite()).any(dim=-1)
    right, words = not bool(broken.any()), f"NaN in {int(broken.sum())} of {broken.numel()} outputs"
    if not out.requires_grad:
        return right, words
    out.square().sum().backward()
    grads = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    bad = sum(not grad.isfinite().all() for grad in grads)
    return right and not bad, f"{words} and {bad} of {len(grads)} gradients"


def same(*pairs: tuple[Tensor, Tensor]) -> StepStatus:
    """The largest difference between what should be equal."""
    largest = torch.stack([(a - b).abs().max() for a, b in pairs]).max().item()
    if math.isnan(largest):
        return False, "gives NaN"
    return largest <= EXACT, f"differs by {largest:.1g}" if largest else "no difference"


def refusal(run: Callable[[], object]) -> str:
    """The error a call ends in; empty when it ends well."""
    try:
        run()
    except (IndexError, RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return ""


def growth(model: nn.Module, forward: Callable[[int], Tensor]) -> StepStatus:
    """By how much what is kept for the backward pass grows from 256 tokens to 512."""
    short, long = (kept_for_backward(partial(forward, n), model.parameters())[1] for n in (256, 512))
    return long <= 2 * short, f"grows {long / short:.1f} times"


def square_part(attention: Callable[[Tensor], Tensor]) -> StepStatus:
    """Whether what grows with the square of the length, where weights are kept, is free of the width."""

    def kept(n: int, width: int) -> int:
        heads = torch.randn(2, H, n, width).requires_grad_()
        return kept_for_backward(partial(attention, heads), [])[1]

    narrow, wide = (kept(512, width) - 2 * kept(256, width) for width in (16, 64))
    numbers = 8 * 2 * H * 2 * 256**2  # of float64, for each row and head: 512² − 2·256²
    words = f"{narrow / numbers:.1f} n² numbers a head for width 16, {wide / numbers:.1f} n² for width 64"
    return narrow == wide, words
