"""How well a model predicts a text: every token once, none left out.

With T the context, a text is laid out in windows of T tokens, one beginning every `stride` tokens:

- stride = T: windows side by side. A token has from 0 to T − 1 tokens of its window before it. This is what windows at
  random places give on average, and so what nanoGPT's validation loss estimates.
- stride < T: windows overlap, and a token counts in the first that holds it. All but the first T tokens are predicted
  from at least T − stride before them: nearer to what the model can do, and lower.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from typing import Any

import torch
from torch import nn

from ...data.text_batch import Row, every_window
from ...training.loss import cross_entropy
from ..scoring import Score

AT_ONCE = 1 << 26  # logits
MOST = 64  # windows


@dataclass(frozen=True)
class TextScore:
    """What a text costs under a model: `nats` is minus its log-probability, ends of documents included."""

    nats: float = 0.0
    tokens: int = 0
    characters: int = 0
    bytes: int = 0

    def __add__(self, other: TextScore) -> TextScore:
        """Of both texts."""
        return TextScore(*(ours + theirs for ours, theirs in zip(astuple(self), astuple(other), strict=True)))

    @property
    def loss(self) -> float:
        """Nats a token, as in training."""
        return self.nats / max(1, self.tokens)

    @property
    def perplexity(self) -> float:
        return math.exp(min(self.loss, 700.0))

    @property
    def bits_per_character(self) -> float:
        """What can be compared between models whatever their tokens are."""
        return self.nats / math.log(2) / max(1, self.characters)

    @property
    def bits_per_byte(self) -> float:
        """Of the text in UTF-8."""
        return self.nats / math.log(2) / max(1, self.bytes)

    def scores(self, signature: str = "") -> dict[str, Score]:
        """By name, for people and files."""
        named = {
            "loss": ("loss (nats/token)", self.loss),
            "perplexity": ("perplexity", self.perplexity),
            "bits_per_character": ("bits per character", self.bits_per_character),
            "bits_per_byte": ("bits per byte", self.bits_per_byte),
        }
        return {key: Score(metric, value, signature=signature) for key, (metric, value) in named.items()}


def usual_stride(context: int) -> int:
    """Half the context."""
    return -(-context // 2)


@torch.inference_mode()
def nats_of(module: nn.Module, row: Row, *, context: int, stride: int, vocab_size: int) -> float:
    """Minus the log-probability of all ids of a row but the first, which is only read."""
    device = next(module.parameters()).device
    batch = max(1, min(MOST, AT_ONCE // (context * vocab_size), -(-len(row) // stride)))
    total: Any = torch.zeros((), dtype=torch.float64, device=device)
    for windows in every_window(row, context=context, stride=stride, batch=batch):
        moved = windows.to(device)
        total = total + cross_entropy(module(moved.inputs), moved.targets, moved.keep).plain
    return float(total)
