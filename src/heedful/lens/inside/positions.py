"""How a model knows where its tokens stand, as pictures: the vectors, how alike they are, or what scores are moved by.

Shapes: L positions shown, D d_model, H heads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...core import ALiBi, Learned, Relative, Rotary, Sinusoidal
from .arrays import Arrays

LONGEST, WIDEST = 100, 128  # of a table
BIASED = 64  # positions of a bias


def positions_of(module: nn.Module, arrays: Arrays) -> dict[str, Any] | None:
    """The scheme of the model's first stack that has one; None where there is none, or none of these."""
    for part in module.modules():
        match part:
            case Sinusoidal():
                return _vectors("sinusoidal", part.table(LONGEST), arrays)
            case Learned():
                return _vectors("learned", part.table(min(LONGEST, part.max_length)), arrays)
            case Rotary():
                return _turns(part, arrays)
            case Relative():
                return _bias("relative", part, part.weight.device, arrays)
            case ALiBi():
                return _bias("alibi", part, torch.device("cpu"), arrays)
    return None


def _vectors(name: str, table: Tensor, arrays: Arrays) -> dict[str, Any]:
    """What is added to the input, and the cosine between any two, over their whole width."""
    directions = F.normalize(table.float(), dim=-1)
    return {
        "scheme": name,
        "table": arrays.put(table[:, :WIDEST]),
        "similarity": arrays.put(directions @ directions.T),
        "bias": None,
        "length": len(table),
    }


def _turns(rotary: Rotary, arrays: Arrays) -> dict[str, Any]:
    """The cosine of each pair's turn at each position, and the mean cosine of the turn between any two."""
    places = torch.arange(LONGEST).float()
    frequencies = rotary.frequencies()
    between = (places[:, None] - places)[..., None] * frequencies  # (L, L, pairs)
    return {
        "scheme": "rotary",
        "table": arrays.put((places[:, None] * frequencies).cos()[:, :WIDEST]),
        "similarity": arrays.put(between.cos().mean(dim=-1)),
        "bias": None,
        "length": LONGEST,
    }


def _bias(name: str, scheme: Relative | ALiBi, device: torch.device, arrays: Arrays) -> dict[str, Any]:
    """What is added to the score of each query (rows) with each key, by head: (H, 64, 64)."""
    places = torch.arange(BIASED, device=device)
    bias = arrays.put(scheme.bias(places, places))
    return {"scheme": name, "table": None, "similarity": None, "bias": bias, "length": BIASED}
