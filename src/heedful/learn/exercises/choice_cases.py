"""The cases of exercises 0, 2, 12 and 13, whose answers are names, shapes, and true or false."""

from collections.abc import Iterator
from functools import cache
from typing import Any

import torch

from ... import core
from ..figures.quiz import CLAIMS
from .cases import Case, call, entries, exercise, variant


@exercise(0)
def order_the_blocks() -> Iterator[Case]:
    """Yield the order of the blocks in the paper's figure 1."""
    for function in ("encoder_layer", "decoder"):
        yield call(function, getattr(variant(0), function)())


@exercise(2)
def predict_shapes() -> Iterator[Case]:
    """Yield the shapes of a sentence in the parts of the base model."""
    yield from entries("predict_shapes", _shapes())


@cache
@torch.no_grad()
def _shapes() -> dict[str, tuple[int, ...]]:
    """Run a sentence of 4 tokens through the parts of the base model."""
    embedding, ids = core.TokenEmbedding(10000, 512), torch.arange(4)[None]
    part, feed_forward = core.MultiHeadAttention(512, 8), core.FeedForward(512, 2048)
    x, _ = embedding(ids)
    keys, _ = part.keys_values(x)
    tensors = {
        "ids": ids,
        "embedded": x,
        "keys": keys,
        "scores": core.attention_weights(keys, keys),
        "merged": part.mixed(x),
        "hidden": feed_forward.up_proj(x),
        "logits": x @ embedding.weight.T,
    }
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


@exercise(12)
def choose_wiring() -> Iterator[Case]:
    """Yield the wiring of the families that are built for each task, and numbers of patches."""
    yield from entries("choose_wiring", variant(12).choose_wiring())
    for length, patch, stride in ((30, 6, 3), (64, 16, 8), (31, 6, 4)):
        yield call("n_patches", torch.zeros(length).unfold(0, patch, stride).shape[0], length, patch, stride)


QUIZ = {  # the claims that chapter 13 measures: name, and which of its numbers is shown
    "a": ("feed-forward-share", "model"),
    "b": ("shift-is-linear", "error"),
    "c": ("big-negative-number", "common"),
    "e": ("memory-mask-is-causal", "change"),
    "f": ("scaled-variance", "scaled"),
    "h": ("neighbors-in-a-batch", "change"),
}


@exercise(13)
@torch.no_grad()
def true_or_false() -> Iterator[Case]:
    """Yield whether each claim holds, as measured."""
    claims: dict[str, bool] = {}
    measured: dict[str, Any] = {}
    for claim, (name, number) in QUIZ.items():
        claims[claim], values = CLAIMS[name][1]()
        measured[claim] = values[number]
    claims["h"] = not claims["h"]  # chapter 13 claims that padding changes nothing
    x, order, norm = torch.randn(1, 6, 16), torch.tensor([3, 1, 4, 0, 2, 5]), core.LayerNorm(16)
    layer = core.EncoderLayer(core.MultiHeadAttention(16, 2), core.FeedForward(16, 32))
    other = torch.cat([x[:, :1], 7 * x[:, 1:]], dim=1)  # differs in all tokens but the first
    changes = {"d": layer(x[:, order]) - layer(x)[:, order], "g": (norm(other) - norm(x))[:, 0]}
    measured |= {claim: f"{change.abs().max():.2g}" for claim, change in changes.items()}
    claims |= {"d": float(measured["d"]) < 1e-4, "g": float(measured["g"]) > 1e-4}
    for case in entries("answers", dict(sorted(claims.items()))):
        yield Case(case.function, case.run, case.expected, {"measured": measured[case.values["name"]]})
