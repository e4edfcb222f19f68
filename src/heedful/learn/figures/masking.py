"""Figures of masks: who may look at whom, what reaches whom after two layers, and how shapes combine."""

from functools import cache
from typing import Any

import torch
from torch import Tensor

from ...core import Encoder, Mask, causal, everything, padding, window
from ...lab.models import encoder, seeded
from ...lens import record
from . import figure, rounded

PAD = "<pad>"
WRITTEN = {"en": ["<s>", "I", "like", "money", PAD], "ko": ["<s>", "나는", "돈을", "좋아해", PAD]}
BATCH = {
    "en": [["I", "like", "money"], ["I", "love", "deep", "learning", "."], ["I", "sleep"]],
    "ko": [["나는", "돈을", "좋아해"], ["나는", "딥", "러닝을", "사랑한다", "."], ["나는", "잔다"]],
}
WIDTH, N_LAYERS = 32, 2
N_TOKENS = len(WRITTEN["en"])
MASKS: dict[str, Mask] = {
    "none": everything(),
    "causal": causal(),
    "padding": padding([N_TOKENS - 1]),
    "both": causal() & padding([N_TOKENS - 1]),
    "window": causal() & window(2) & padding([N_TOKENS - 1]),
}


@cache
@seeded()
def masked_layers() -> tuple[Encoder, Tensor]:
    """Return two layers with random weights, and vectors for the tokens (1, T, D)."""
    return encoder(WIDTH, N_LAYERS, n_heads=1, d_ff=WIDTH).eval(), torch.randn(1, N_TOKENS, WIDTH)


def reached(mask: Mask) -> list[list[bool]]:
    """Return which token (column) changes which output (row), by the gradients of an encoder with this mask."""
    stack, x = masked_layers()
    stack.mask = mask
    jacobian = torch.autograd.functional.jacobian(stack, x)  # (1, T, D, 1, T, D)
    return (jacobian.abs().amax(dim=(0, 2, 3, 5)) > 0).tolist()


def first_scores() -> Tensor:
    """Return the scaled scores of the first layer, up to a number for each row: (T, T)."""
    stack, x = masked_layers()
    stack.mask = everything()
    with torch.no_grad(), record(stack) as recording:
        stack(x)
    return recording.encoder[0][0, 0].log()


@figure("draw-a-mask")
def draw_a_mask(language: str) -> dict[str, Any]:
    """Return the tokens, the scores that a mask acts on, and masks to begin with and what reaches what under each."""
    tensors = {name: mask.tensor(N_TOKENS).reshape(N_TOKENS, N_TOKENS) for name, mask in MASKS.items()}
    return {
        "tokens": WRITTEN[language],
        "layers": N_LAYERS,
        "scores": rounded(first_scores()),
        "masks": {name: tensor.int().tolist() for name, tensor in tensors.items()},
        "reached": {name: reached(mask) for name, mask in MASKS.items()},
    }


@figure("mask-shapes")
def mask_shapes(language: str) -> dict[str, Any]:
    """Return the look-ahead mask (T, T), the padding of a batch (B, T), and both together (B, T, T)."""
    sentences = BATCH[language]
    lengths = [len(sentence) for sentence in sentences]
    longest = max(lengths)
    both = (causal() & padding(lengths)).tensor(longest)  # (B, 1, T, T)
    return {
        "tokens": [sentence + [PAD] * (longest - len(sentence)) for sentence in sentences],
        "causal": causal().tensor(longest).int().tolist(),
        "padding": padding(lengths).tensor(1, longest)[:, 0, 0].int().tolist(),
        "both": both[:, 0].int().tolist(),
    }
