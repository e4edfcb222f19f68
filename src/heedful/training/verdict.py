"""Whether a step is to be taken, and how far: from its sums and the norm of its gradients, all of it on the device."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SMALL = 1e-6  # beside a norm of zero


class Verdict(NamedTuple):
    """Of gradients that belong to a sum over n tokens."""

    values: Tensor  # (5,) the total, the plain one, n; the norm of the mean's gradient; whether all was finite
    skip: Tensor  # 1 where it was not: then nothing shall change; 0 where it was
    factor: Tensor  # of the gradients: one over n, or less where they are to be clipped


def judged(norm: Tensor, sums: Tensor, clip: float) -> Verdict:
    """From the norm of the gradients and the sums (total, plain, n); a clip of 0 is none."""
    total, _, n = sums
    norm = norm / n
    finite = norm.isfinite() & total.isfinite()
    shorten = (clip / (norm + SMALL)).clamp(max=1.0) if clip else torch.ones_like(norm)
    values = torch.cat([sums, torch.stack([norm, finite]).to(sums.dtype)])
    return Verdict(values, (~finite).float(), shorten / n)
