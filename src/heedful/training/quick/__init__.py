"""Parts of a module that compute the same in less time, for small models on a GPU.

Over many short rows, torch's attention, its small operations on every number, and its sums for the gradients of biases,
norms and token tables take longer than the matrix products. A compiler fuses some of it by itself; where steps are only
recorded, these stand in.
"""

from __future__ import annotations

import torch
from torch import nn

from ...core import (
    Decoder,
    DotProduct,
    Encoder,
    FeedForward,
    LayerNorm,
    MultiHeadAttention,
    PostNorm,
    PreNorm,
    TokenEmbedding,
    VocabularyHead,
)
from ..tables import Tables
from .layers import QuickFeedForward, QuickMultiHeadAttention, QuickPostNorm, QuickPreNorm
from .parts import Quick, QuickDotProduct, QuickLayerNorm, QuickLinear, QuickTokenEmbedding, QuickVocabularyHead
from .passes import Pass
from .stacks import QuickDecoder, QuickEncoder

__all__ = ["Pass", "quicken"]

QUICKER: dict[type, type[Quick]] = {
    nn.Linear: QuickLinear,
    LayerNorm: QuickLayerNorm,
    TokenEmbedding: QuickTokenEmbedding,
    VocabularyHead: QuickVocabularyHead,
    DotProduct: QuickDotProduct,
    FeedForward: QuickFeedForward,
    MultiHeadAttention: QuickMultiHeadAttention,
    PreNorm: QuickPreNorm,
    PostNorm: QuickPostNorm,
    Encoder: QuickEncoder,
    Decoder: QuickDecoder,
}


def quicken(module: nn.Module, device: torch.device, tables: Tables | None = None) -> Pass:
    """Let a copy that only computes have them. What they share is to be begun before every pass."""
    shared = Pass(device, tables or Tables(device))
    for part in list(module.modules()):  # from the outside in: who surrounds a part looks at what it was
        kind = QUICKER.get(type(part))
        if kind is not None and kind.fits(part):
            part.__class__ = kind  # type: ignore[assignment]  # which is also a module
            kind.settle(part)  # type: ignore[arg-type]
        if isinstance(part, Quick):
            part.shared = shared
    return shared
