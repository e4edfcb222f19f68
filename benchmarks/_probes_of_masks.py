"""Those probes of benchmarks/silent_failures.py that ask who attends to whom: padding, causality, modes, memory.

torch.nn's boolean masks are True where one may NOT attend, Heedful's where one may.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from _probing import (
    D,
    Finding,
    H,
    Outcome,
    StepStatus,
    V,
    common_table,
    growth,
    health,
    in_every_mode,
    look_ahead,
    padded,
    same,
    square_part,
    transformers,
    translator,
)
from heedful import core
from heedful.core import attend, attention_weights, causal, padding
from heedful.families.torch_nn import from_torch

PADDINGS = "src_key_padding_mask", "tgt_key_padding_mask", "memory_key_padding_mask"


def fully_masked_row() -> Finding:
    """Error 3."""
    theirs, ours = transformers()
    attention = nn.MultiheadAttention(D, H, batch_first=True)
    x, keep = torch.randn(2, 5, D), torch.tensor([[False] * 5, [True] * 5])
    masks = dict.fromkeys(PADDINGS, ~keep) | {"tgt_mask": look_ahead(5)}

    def attended(need_weights: bool) -> StepStatus:
        return health(attention, attention(x, x, x, key_padding_mask=~keep, need_weights=need_weights)[0])

    common = torch.zeros(5).masked_fill(~keep[0], -1e9).softmax(dim=-1)
    heads, hidden = x[:, None], padding(keep)
    largest = max(
        attend(heads, heads, heads, keep=hidden)[0].abs().max().item(),
        attention_weights(heads, heads, keep=hidden)[0].max().item(),
    )
    return Finding(
        "A fully masked row",
        "a source and a target row of nothing but padding",
        [
            *in_every_mode("nn.Transformer", theirs, lambda: health(theirs, theirs(x, x, **masks))),
            *in_every_mode("nn.MultiheadAttention", attention, lambda: attended(True)),
            *in_every_mode("nn.MultiheadAttention, need_weights=False,", attention, lambda: attended(False)),
            Outcome(
                "common code with −1e9", not common.any(), f"a weight of {common.max():.2f} on every padded position"
            ),
        ],
        [
            *in_every_mode("EncoderDecoder", ours, lambda: health(ours, ours(x, x, keep, keep))),
            Outcome("attend, attention_weights", largest == 0, f"that row is {largest:g}"),
        ],
    )


def source_padding() -> Finding:
    """Error 4."""
    theirs, ours = transformers()
    source, target, keep = torch.randn(1, 6, D), torch.randn(1, 4, D), torch.arange(6)[None] < 4
    other = torch.where(keep[..., None], source, torch.randn(1, 6, D))
    torch_run = partial(theirs, tgt_mask=look_ahead(4))
    once = {"src_key_padding_mask": ~keep}
    twice = once | {"memory_key_padding_mask": ~keep}

    def stays(run: Callable[..., Tensor], **masks: Tensor) -> StepStatus:
        out = run(source, target, **masks)
        return same((out, run(other, target, **masks)), (out, run(source[:, :4], target)))

    return Finding(
        "Source padding read by the decoder",
        "other vectors in the padding, and no padding: outputs must stay",
        [
            *in_every_mode("src_key_padding_mask alone", theirs, lambda: stays(torch_run, **once)),
            *in_every_mode("with memory_key_padding_mask", theirs, lambda: stays(torch_run, **twice)),
        ],
        in_every_mode("source_keep", ours, lambda: stays(ours, source_keep=keep)),
    )


def causal_with_a_cache() -> Finding:
    """Error 5."""
    attention = nn.MultiheadAttention(D, H, batch_first=True)
    ours: Any = from_torch(attention)
    x, mask = torch.randn(1, 4, D), look_ahead(4)
    whole = attention(x, x, x, attn_mask=mask, need_weights=False)[0][:, -1:]
    last = partial(attention, x[:, -1:], x, x, attn_mask=mask[-1:], need_weights=False)
    heads = x[:, None]
    fused = partial(F.scaled_dot_product_attention, key=heads, value=heads, is_causal=True)
    both = fused(heads[:, :, -1:]), fused(heads)[:, :, -1:]

    model, tokens = translator(), torch.randint(V, (2, 9))
    with torch.no_grad():
        memory = model.encode(tokens)
        logits = model.decode(tokens, memory)
        in_steps = [
            torch.cat([model.decode(new, memory, cache=cache) for new in tokens.split([4, 1, 3, 1], dim=1)], dim=1)
            for cache in (model.new_cache(), model.new_cache(12))
        ]
    return Finding(
        "A causal mask aligned to the top left",
        "the last query alone over all keys, beside the whole",
        [
            Outcome("no cache; nn.MultiheadAttention with the mask's last row", *same((last()[0], whole))),
            Outcome("the same, is_causal=True", *same((last(is_causal=True)[0], whole))),
            Outcome("scaled_dot_product_attention, is_causal=True", *same(both)),
        ],
        [
            Outcome("MultiHeadAttention", *same((ours(x[:, -1:], x, keep=causal()), whole))),
            Outcome("both caches", *same(*((steps, logits) for steps in in_steps))),
        ],
    )


def training_and_evaluation() -> Finding:
    """Error 7."""
    theirs, ours = transformers()
    x, keep = torch.randn(2, 6, D), torch.arange(6) < torch.tensor([[6], [3]])

    def compared(model: nn.Module, run: Callable[[], Tensor]) -> list[Outcome]:
        model.train()
        trained = run()
        model.eval()
        with torch.no_grad():
            evaluated = run()
        return [
            Outcome("real positions", *same((trained[keep], evaluated[keep]))),
            Outcome("padded positions", *same((trained[~keep], evaluated[~keep]))),
        ]

    return Finding(
        "Training and evaluation differ",
        "a padded encoder's output in training, and in evaluation without gradients",
        compared(theirs, lambda: theirs.encoder(x, src_key_padding_mask=~keep)),
        compared(ours, lambda: ours.encoder(x, keep)),
    )


def batches() -> Finding:
    """Error 8."""
    theirs, _ = transformers()
    ours: Any = from_torch(theirs)
    ours.encoder.positions = ours.decoder.positions = core.Sinusoidal(D)
    sources, targets = ([torch.randn(n, D) for n in (7, 2, 5)] for _ in range(2))
    table = common_table(10, D)

    def bare(x: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        return theirs(x, y, tgt_mask=look_ahead(y.shape[1]), **dict.fromkeys(PADDINGS, ~keep))

    def placed(x: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        return bare(x + table[: x.shape[1]], y + table[: y.shape[1]], keep)

    def heeded(x: Tensor, y: Tensor, keep: Tensor) -> Tensor:
        return ours(x, y, keep, keep)

    def together(run: Callable[[Tensor, Tensor, Tensor], Tensor], side: str) -> StepStatus:
        alone = []
        for x, y in zip(sources, targets, strict=True):
            alone.append(run(x[None], y[None], torch.ones(1, len(x), dtype=torch.bool))[0])
        pairs = []
        for length, order in product((7, 10), ([0, 1, 2], [2, 0, 1])):
            x, keep = padded([sources[i] for i in order], side, length)
            y, _ = padded([targets[i] for i in order], side, length)
            pairs += [(out[real], alone[i]) for i, out, real in zip(order, run(x, y, keep), keep, strict=True)]
        return same(*pairs)

    return Finding(
        "Padding, batch size or order changes an answer",
        "three pairs in batches of any order and padding, beside each alone",
        [
            *in_every_mode("padding on the right", theirs, lambda: together(bare, "right")),
            *in_every_mode("padding on the left", theirs, lambda: together(bare, "left")),
            *in_every_mode("on the left, with common positions", theirs, lambda: together(placed, "left")),
        ],
        [
            *in_every_mode("padding on the right, with positions", ours, lambda: together(heeded, "right")),
            *in_every_mode("on the left", ours, lambda: together(heeded, "left")),
        ],
    )


def nan_in_padding() -> Finding:
    """Error 9."""
    theirs, ours = transformers()
    x, keep = padded([torch.randn(6, D), torch.randn(4, D)], "right", 6)
    x = torch.where(keep[..., None], x, math.nan)
    masks = dict.fromkeys(PADDINGS, ~keep) | {"tgt_mask": look_ahead(6)}
    return Finding(
        "NaN in a padded place leaks",
        "NaN in the padding of source and target: the real positions' outputs, and the gradients of the weights",
        in_every_mode("nn.Transformer", theirs, lambda: health(theirs, theirs(x, x, **masks)[keep])),
        in_every_mode("EncoderDecoder", ours, lambda: health(ours, ours(x, x, keep, keep)[keep])),
    )


def memory() -> Finding:
    """Error 11."""
    theirs = nn.TransformerEncoder(nn.TransformerEncoderLayer(D, H, 32, dropout=0.0, batch_first=True), 2)
    ours: Any = from_torch(theirs)
    decoder = core.Decoder(ours.layers)

    def x(n: int) -> Tensor:
        return torch.randn(2, n, D)

    def keep(n: int) -> Tensor:
        return torch.arange(n) < torch.tensor([[n], [n // 2]])

    def torch_run(n: int, *, is_causal: bool = False, is_padded: bool = False) -> Tensor:
        return theirs(x(n), look_ahead(n) if is_causal else None, ~keep(n) if is_padded else None)

    def written_out(heads: Tensor) -> Tensor:
        return attention_weights(heads, heads) @ heads

    def written_by_hand(heads: Tensor) -> Tensor:
        return (heads @ heads.transpose(-2, -1) / math.sqrt(heads.shape[-1])).softmax(dim=-1) @ heads

    return Finding(
        "Memory called O(n²·d)",
        "bytes kept for the backward pass, from 256 tokens to 512",
        [
            Outcome("no mask", *growth(theirs, torch_run)),
            Outcome("causal", *growth(theirs, partial(torch_run, is_causal=True))),
            Outcome("padded", *growth(theirs, partial(torch_run, is_padded=True))),
            Outcome("both", *growth(theirs, partial(torch_run, is_causal=True, is_padded=True))),
            Outcome("softmax written out", *square_part(written_by_hand)),
        ],
        [
            Outcome("no mask", *growth(ours, lambda n: ours(x(n)))),
            Outcome("causal", *growth(ours, lambda n: decoder(x(n)))),
            Outcome("padded", *growth(ours, lambda n: ours(x(n), keep(n)))),
            Outcome("both", *growth(ours, lambda n: decoder(x(n), keep=keep(n)))),
            Outcome("both, on the left", *growth(ours, lambda n: decoder(x(n), keep=keep(n).flip(1)))),
            Outcome("attention_weights", *square_part(written_out)),
        ],
    )
