"""Small models of every wiring in float64, batches whose padding can be told from zeros, and ways to watch them.

Weights are random, biases and norms too: as they start, zero and one, they would hide a mistake.
Shapes: B batch, T tokens, D d_model, H heads, V vocabulary.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import heedful
from heedful import core

D, H, V, LIMIT = 16, 4, 23, 40
PAD = 0  # no sentence holds it
Rows = list[list[int]]

SMALL = {"vocab_size": V, "d_model": D, "tied": "none", "dropout": 0.0, "n_encoder_layers": 2}
ORIGINAL = {"family": "original", "d_ff": 32, "n_heads": H, "n_kv_heads": 2, "n_decoder_layers": 2, "max_length": LIMIT}
SCHEMES: dict[str, dict[str, Any]] = {
    name: ORIGINAL | {"positions": name} for name in ("sinusoidal", "learned", "relative", "rotary", "alibi", "none")
}
TRANSLATORS = SCHEMES | {
    "pre-norm": ORIGINAL | {"norm": "pre", "norm_kind": "rms", "feed_forward": "gated"},
    "additive": {"family": "recurrent", "attention": "additive"},
    "one vector": {"family": "recurrent", "attention": "none"},
}
LANGUAGE_MODELS = {f"{name} language model": config for name, config in SCHEMES.items()}
CLASSIFIERS: dict[str, type[nn.Module]] = {"mean": core.MeanPool, "first token": core.ClsPool}
DECODERS = [*TRANSLATORS, *LANGUAGE_MODELS]
MODELS = [*DECODERS, *CLASSIFIERS]


def build(name: str, **changes: Any) -> Any:
    """A translator, or its parts wired as a language model or a classifier."""
    config = (TRANSLATORS | LANGUAGE_MODELS).get(name, ORIGINAL)
    parts: Any = heedful.build(config | SMALL | changes)
    if name in TRANSLATORS:
        return randomised(parts)
    if name in LANGUAGE_MODELS:
        decoder = core.Decoder(parts.encoder.layers, positions=parts.encoder.positions)
        return randomised(core.DecoderOnly(embedding=parts.source_embedding, decoder=decoder, head=parts.head))
    head = core.ClassHead(CLASSIFIERS[name](), D, 5)
    return randomised(core.EncoderOnly(embedding=parts.source_embedding, encoder=parts.encoder, head=head))


def randomised(model: nn.Module) -> Any:
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.4)
    return model.double().eval()


def sentences(*lengths: int) -> Rows:
    return [torch.randint(1, V, (n,)).tolist() for n in lengths]


def batch(rows: Rows, side: str = "right", extra: int = 0, fill: int | None = None) -> tuple[Tensor, Tensor]:
    """Rows as one (B, T) tensor, and its keep. In the padding stands `fill`, or any token."""
    length = max(map(len, rows)) + extra
    tokens = torch.randint(1, V, (len(rows), length)) if fill is None else torch.full((len(rows), length), fill)
    keep = torch.zeros(len(rows), length, dtype=torch.bool)
    for i, row in enumerate(rows):
        scattered = sorted(random.Random(i).sample(range(length), len(row)))
        places = {"right": list(range(len(row))), "left": list(range(length - len(row), length))}.get(side, scattered)
        tokens[i, places] = torch.tensor(row, dtype=torch.long)
        keep[i, places] = True
    return tokens, keep


def read(model: Any, rows: Rows, side: str = "right", extra: int = 0, fill: int | None = None) -> list[Tensor]:
    """What a model says of each row, at its real places. A translator's target is its source backwards."""
    tokens, keep = batch(rows, side, extra, fill)
    if hasattr(model, "encode"):
        target, target_keep = batch([row[::-1] for row in rows], side, extra, fill)
        out, keep = model(tokens, target, keep, target_keep), target_keep
    else:
        out = model(tokens, keep)
    assert out.isfinite().all()
    return [row[real] if out.dim() == 3 else row for row, real in zip(out, keep, strict=True)]


def decoder_of(model: Any) -> Callable[..., Tensor]:
    """tokens, keep and cache → logits, over the memory of a fixed source where there is one."""
    if isinstance(model, core.DecoderOnly):
        return model
    return partial(model.decode, memory=model.encode(torch.arange(1, 11).view(2, 5)))


def in_steps(model: Any, tokens: Tensor, keep: Tensor, capacity: int | None = None) -> Tensor:
    """The logits of eight tokens with a cache, growing or of fixed capacity, some tokens at a time."""
    cache = model.new_cache() if capacity is None else model.new_cache(capacity)
    decode, logits = decoder_of(model), []
    for start, end in pairwise([0, 3, 4, 6, 7, 8]):
        seen = keep[:, :end] if capacity is None else F.pad(keep, (0, capacity - 8), value=True)
        logits.append(decode(tokens[:, start:end], keep=seen, cache=cache))
    return torch.cat(logits, dim=1)


def outputs_of(modules: list[nn.Module]) -> list[Tensor]:
    """A list that fills as the modules run."""
    outputs: list[Tensor] = []
    for module in modules:
        module.register_forward_hook(lambda module, inputs, output: outputs.append(output))
    return outputs


def saved_bytes(run: Callable[[], Tensor], parameters: list[nn.Parameter]) -> int:
    """What autograd holds for the backward pass, every storage once, parameters not counted."""
    storages: dict[int, int] = {}

    def hold(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(hold, lambda tensor: tensor):
        out = run()
    assert out.requires_grad  # and so the graph, and all it holds, lived until here
    return sum(storages.values()) - sum(storages.get(p.untyped_storage().data_ptr(), 0) for p in parameters)


def normalised(x: Tensor) -> bool:
    """Each token's features have mean 0 and variance 1, which fresh norms give and a residual sum does not."""
    mean, variance = x.mean(dim=-1), x.var(dim=-1, unbiased=False)
    return bool((mean.abs() < 1e-9).all() and ((variance - 1).abs() < 1e-3).all())
