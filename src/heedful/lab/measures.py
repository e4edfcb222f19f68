"""Experiments without training: the scale 1/√d_k with random vectors, and sequential steps with their times."""

from collections.abc import Callable
from functools import partial
from math import log
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from .. import core
from .experiments import Arm, Measurement, experiment, numbered
from .models import encoder

WIDTHS = (4, 16, 64, 256, 1024)
LENGTHS = (32, 128, 512)
D_MODEL = 64


@experiment("scale", x="d_k", y="largest", ticks=WIDTHS)
def scale(seed: int, effort: float) -> Measurement:
    """Attention between random vectors, with 1/√d_k and without it."""
    query, key, direction = random_attention(torch.Generator().manual_seed(seed))
    arms = {}
    for name, factor in {"intact": None, "no-scale": 1.0}.items():
        by_width = [softmax_statistics(query[..., :d], key[..., :d], direction, factor) for d in WIDTHS]
        arms[name] = Arm(by_width[-1], [scores["largest"] for scores in by_width])
    return arms


def random_attention(generator: torch.Generator, n_queries: int = 256, n_keys: int = 32) -> tuple[Tensor, ...]:
    """Return normal queries (1, 1, Tq, K) and keys (1, 1, Tk, K), and a gradient of length 1 for each query."""
    query, key = (torch.randn(1, 1, n, WIDTHS[-1], generator=generator) for n in (n_queries, n_keys))
    return query, key, nn.functional.normalize(torch.randn(n_queries, n_keys, generator=generator), dim=-1)


def softmax_statistics(query: Tensor, key: Tensor, direction: Tensor, scale: float | None) -> dict[str, float]:
    """Return what attention looks like: means over all queries, and the variance of all scores.

    The gradient is the norm of a row of the softmax's Jacobian times a direction: what of the weights' gradient reaches
    the scores.
    """
    weights = core.attention_weights(query, key, scale=scale)
    gradient = weights * (direction - (weights * direction).sum(dim=-1, keepdim=True))
    scores = query @ key.mT * (query.shape[-1] ** -0.5 if scale is None else scale)
    return {
        "variance": float(scores.var()),
        "entropy": float(torch.special.entr(weights).sum(dim=-1).mean()) / log(2),
        "largest": float(weights.amax(dim=-1).mean()),
        "gradient": float(gradient.norm(dim=-1).mean()),
    }


@experiment("steps", x="length", y="milliseconds", ticks=LENGTHS)
def steps(seed: int, effort: float) -> Measurement:
    """A GRU cell and a layer of attention over longer and longer sequences."""
    torch.manual_seed(seed)
    cell, stack = nn.GRUCell(D_MODEL, D_MODEL), encoder(D_MODEL)
    runs: dict[str, Any] = {"recurrent": (cell, partial(unrolled, cell)), "attention": (stack.layers[0], stack)}
    arms = {}
    for name, (part, forward) in runs.items():
        measured = [counted(part, forward, torch.randn(1, length, D_MODEL)) for length in LENGTHS]
        counts, times = [n for n, _ in measured], [1000 * seconds for _, seconds in measured]
        arms[name] = Arm(numbered("steps", LENGTHS, counts) | numbered("time", LENGTHS, times), times)
    return arms


def unrolled(cell: nn.GRUCell, x: Tensor) -> Tensor:
    """Run a cell over x (1, T, D), each step with the state of the step before it."""
    state, states = torch.zeros(1, D_MODEL), []
    for token in x[0]:
        state = cell(token[None], state)
        states.append(state)
    return torch.stack(states, dim=1)


def counted(part: nn.Module, forward: Callable[[Tensor], Tensor], x: Tensor) -> tuple[int, float]:
    """Return how often the part runs, each time after the time before, and the least seconds of three passes.

    A pass is forward and backward.
    """
    calls: list[None] = []
    handle = part.register_forward_hook(lambda *_: calls.append(None))
    times = []
    for _ in range(3):
        calls.clear()
        begin = perf_counter()
        forward(x).sum().backward()
        times.append(perf_counter() - begin)
    handle.remove()
    return len(calls), min(times)
