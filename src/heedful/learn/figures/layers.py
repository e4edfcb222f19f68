"""Figures of a layer's other half: what reaches each depth of a stack, and what the neurons of a feed-forward do.

Shapes: B batch, T tokens, D d_model, F neurons, V vocabulary.
"""

from functools import cache
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ...core import DecoderOnly, Encoder, FeedForward, LayerNorm, PostNorm, VocabularyHead
from ...families.registry import build
from ...lab.models import BareSublayer, encoder, fall, seeded, train
from ..toy import CORPORA
from . import figure, rounded

DEPTHS = (6, 24, 48)
WIDTH, N_TOKENS = 64, 8


WIRINGS: dict[str, dict[str, Any]] = {  # of Wiring
    "bare": {"residual": BareSublayer, "norm": nn.Identity},
    "norm": {"residual": BareSublayer},
    "post": {"residual": PostNorm},
    "pre": {},
}


def random_stack(wiring: str, depth: int) -> Encoder:
    """Return an encoder with random weights, the same for every wiring."""
    with seeded():
        return encoder(WIDTH, depth, d_ff=4 * WIDTH, **WIRINGS[wiring])


def trace(wiring: str, depth: int) -> dict[str, list[float]]:
    """Return, before each layer and after the last: size of a token's vector, likeness of tokens, log10 of gradient."""
    stack, states = random_stack(wiring, depth), []

    def keep_gradient(_: nn.Module, args: tuple[Tensor, ...]) -> None:
        args[0].retain_grad()
        states.append(args[0])

    for part in (*stack.layers, stack.norm):
        part.register_forward_pre_hook(keep_gradient)
    generator = torch.Generator().manual_seed(1)
    x, gradient = torch.randn(2, 1, N_TOKENS, WIDTH, generator=generator)
    stack(x.requires_grad_()).backward(gradient)
    values = torch.stack([state.detach()[0] for state in states])  # (N + 1, T, D)
    gradients = torch.stack([state.grad[0] for state in states if state.grad is not None])
    units = F.normalize(values, dim=-1)
    likeness = (units @ units.mT).sum(dim=(1, 2)).sub(N_TOKENS) / (N_TOKENS * (N_TOKENS - 1))
    lengths = gradients.flatten(1).norm(dim=-1)
    return {
        "size": rounded(values.norm(dim=-1).mean(dim=-1), 2),
        "likeness": rounded(likeness),
        "gradient": rounded((lengths / lengths[-1]).clamp(min=1e-12).log10()),
    }


@figure("through-the-layers")
def through_the_layers(language: str) -> dict[str, Any]:
    """Return the traces of each wiring at each depth."""
    traces = {str(depth): {wiring: trace(wiring, depth) for wiring in WIRINGS} for depth in DEPTHS}
    return {"depths": list(DEPTHS), "traces": traces}


N_NEURONS = 48
WRITER = CORPORA["writer"]


def sentences_of(language: str) -> list[list[str]]:
    """Return all sentences of the small language, in its order of words."""
    return [
        [subject, time, *((verb, thing) if language == "en" else (thing, verb)), "."]
        for verb, things in WRITER[language]["objects"].items()
        for thing in things
        for subject in WRITER[language]["subjects"]
        for time in WRITER[language]["times"]
    ]


@cache
def small_writer(language: str) -> tuple[DecoderOnly, list[str], Tensor]:
    """Return a decoder with ReLU that was trained on the sentences, its words, and the sentences as ids."""
    sentences = sentences_of(language)
    vocabulary = sorted({word for sentence in sentences for word in sentence})
    ids = torch.tensor([[vocabulary.index(word) for word in sentence] for sentence in sentences])
    draws = torch.Generator().manual_seed(0)
    sizes = {"vocab_size": len(vocabulary), "d_model": 32, "n_heads": 2, "d_ff": N_NEURONS, "n_layers": 1}
    with seeded():
        model = build("opt-tiny", max_length=8, dropout=0.0, **sizes)
    assert isinstance(model, DecoderOnly)

    def loss(_: int) -> Tensor:
        rows = ids[torch.randint(len(ids), (16,), generator=draws)]
        return F.cross_entropy(model(rows[:, :-1]).mT, rows[:, 1:])

    train(model, loss, 250, fall(1e-2, 250))
    return model, vocabulary, ids


def feed_forward_of(model: DecoderOnly) -> FeedForward:
    """Return the feed-forward network of a small writer's only layer."""
    return next(part for part in model.modules() if isinstance(part, FeedForward))


@torch.no_grad()
def activations(model: DecoderOnly, ids: Tensor) -> Tensor:
    """Return what each neuron gives for each token, after ReLU: (B, T, F)."""
    inputs: list[Tensor] = []
    hook = feed_forward_of(model).down_proj.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
    model(ids)
    hook.remove()
    return inputs[0]


@figure("neurons")
def neurons(language: str) -> dict[str, Any]:
    """Return activations for one sentence of each verb, and for each neuron what wakes it and what it writes."""
    model, vocabulary, ids = small_writer(language)
    examples = torch.arange(0, len(ids), len(ids) // len(WRITER[language]["objects"]))
    every = activations(model, ids[:, :-1])  # (sentences, T, F)
    rows = (every[ids[:, :-1] == word] for word in range(len(vocabulary)))
    by_word = torch.stack([row.sum(dim=0) / max(1, len(row)) for row in rows])  # (V, F)
    norm, columns = cast("LayerNorm", model.decoder.norm), feed_forward_of(model).down_proj.weight
    head = cast("VocabularyHead", model.head)
    written = (head.weight @ (norm.weight[:, None] * columns)).detach()  # (V, F)

    def strongest(scores: Tensor) -> list[list[Any]]:
        top = scores.topk(4)
        return [[vocabulary[n], round(float(value), 2)] for value, n in zip(top.values, top.indices, strict=True)]

    return {
        "sentences": [[vocabulary[n] for n in row] for row in ids[examples]],
        "activations": rounded(every[examples], 2),
        "wakes": [strongest(by_word[:, n]) for n in range(N_NEURONS)],
        "writes": [strongest(written[:, n]) for n in range(N_NEURONS)],
        "silent": round(float((every == 0).float().mean()), 3),
    }
