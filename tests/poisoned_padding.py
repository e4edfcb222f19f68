"""Every way by which something wrong in the padding could get out, for the ninth of the silent failures.

Each surface is given what fills the padding (zero, NaN, infinity) and where the padding stands. It returns its
outputs at the real places and all gradients: none may depend on the filling.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn

import heedful
from every_model import MODELS, ORIGINAL, PAD, SMALL, D, H, batch, build, in_steps, randomised, read, sentences
from heedful import core
from heedful.core import Mask, attend, attention_weights, causal, padding, window

NO, YES = False, True
Surface = Callable[[float, str], list[Tensor]]

REAL = {  # the last row is nothing but padding
    "left": torch.tensor([[NO, NO, YES, YES, YES], [YES] * 5, [NO] * 5]),
    "right": torch.tensor([[YES, YES, NO, NO, NO], [YES, YES, YES, YES, NO], [NO] * 5]),
    "scattered": torch.tensor([[NO, YES, NO, YES, YES], [YES, NO, YES, YES, NO], [NO] * 5]),
}


def poison_keys(fill: float, side: str) -> list[Tensor]:
    """Keys and values handed to `attend` itself, under every mask that hides them from everyone."""
    real = REAL[side]
    masks: list[tuple[Mask | Tensor, Tensor]] = [
        (padding(real), real),
        (causal() & padding(real), real),
        (causal() & window(2) & padding(real), real),
        (real[:, None, None], real),
        (real[:, None, None].expand(3, H, 5, 5), real),
        (real[0].expand(5, 5), real[:1].expand(3, 5)),
    ]
    found: list[Tensor] = []
    for (keep, seen), biased in product(masks, (False, True)):
        query, bias = torch.randn(3, H, 5, 8), torch.randn(H, 5, 5) if biased else None
        key, value = (torch.randn(3, 2, 5, 8).masked_fill(~seen[:, None, :, None], fill) for _ in range(2))
        given = [part.requires_grad_() for part in (query, key, value, bias) if part is not None]
        out = attend(query, key, value, keep=keep, bias=bias).transpose(1, 2)[seen]
        weights = attention_weights(query, key, keep=keep, bias=bias).transpose(1, 2)[seen]
        found += [out, weights, *torch.autograd.grad(out.square().sum(), given)]
    return found


def poison_stacks(fill: float, side: str) -> list[Tensor]:
    """Inputs and memories handed to an attention, an encoder and a decoder."""
    model, real = build("rotary"), REAL[side]
    x, memory = (torch.randn(3, 5, D).masked_fill(~real[..., None], fill).requires_grad_() for _ in range(2))
    attention = model.encoder.layers[0].self_attention.sublayer
    outs = [
        attention(x, keep=padding(real)),
        attention(x, keep=causal() & padding(real)),
        attention(torch.randn(3, 5, D), memory, keep=padding(real)),
        attention(torch.randn(3, 5, D), memory, keep=real[:, None, None]),
        model.encoder(x, real),
        model.decoder(x, memory, keep=real, memory_keep=real),
    ]
    assert all(out.isfinite().all() for out in outs)
    total = torch.stack([out[real].square().sum() for out in outs]).sum()
    wrt = [x, memory, *model.encoder.parameters(), *model.decoder.parameters()]
    return [*(out[real] for out in outs), *torch.autograd.grad(total, wrt)]


def poison_padding_token(model: nn.Module, fill: float) -> None:
    for module in model.modules():
        if isinstance(module, core.TokenEmbedding):
            module.weight.data[PAD] = fill


def poison_model(fill: float, side: str, name: str) -> list[Tensor]:
    """The padding token's own vector."""
    model = build(name)
    poison_padding_token(model, fill)
    out = torch.cat(read(model, sentences(5, 2, 0), side, extra=1, fill=PAD))
    return [out, *torch.autograd.grad(out.square().sum(), list(model.parameters()))]


def poison_cache(fill: float, side: str, name: str, capacity: int | None) -> list[Tensor]:
    """The padding token's vector, in a prompt held by a cache."""
    model = build(name)
    poison_padding_token(model, fill)
    tokens, keep = batch(sentences(4, 8), side, fill=PAD)
    with torch.no_grad():
        return [in_steps(model, tokens, keep, capacity)[keep]]


def poison_series(fill: float, side: str) -> list[Tensor]:
    """Days of a series that nobody observed."""
    parts: Any = heedful.build(ORIGINAL | SMALL)
    embedding, head = core.SeriesEmbedding(D), core.ForecastHead(core.ConcatPool(9), 9 * D, horizon=3)
    model = randomised(core.EncoderOnly(embedding=embedding, encoder=parts.encoder, head=head))
    _, observed = batch(sentences(17, 30), side)
    series = torch.randn(2, 30, 1).masked_fill(~observed[..., None], fill).requires_grad_()
    out = model(series, observed)
    return [out, *torch.autograd.grad(out.square().sum(), [series, *model.parameters()])]


SURFACES: dict[str, Surface] = {
    "keys and values": poison_keys,
    "stacks": poison_stacks,
    "series": poison_series,
    **{name: partial(poison_model, name=name) for name in MODELS},
    **{
        f"{name} with a {kind} cache": partial(poison_cache, name=name, capacity=capacity)
        for name in ("sinusoidal", "alibi", "rotary language model")
        for kind, capacity in (("growing", None), ("fixed", 11))
    },
}
