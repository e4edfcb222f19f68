"""A trace as the part of a look document that knows no task: attentions, layers, and the facts of a config.

Shapes: T tokens (Tq, Tk), D d_model, H heads, G key/value heads, K head width, F neurons.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from ...config import Config
from ...errors import RecordingError
from ..recorder import Look
from .arrays import Arrays, Kind
from .tracing import Layer, Numbers, Trace

EXACT, FOUR_DIGITS = 1_500_000, 8_000_000  # weights that are not 0: a page of 300 tokens stays below 12 MB
ROOM = 1_200_000  # bytes for the numbers of all attentions, before they are packed: the page stays below 3 MB
ROOM_ASKED = 8 * ROOM  # where a reader has chosen the layers, their numbers are what is looked for
NEURONS = 128  # of a feed-forward that are shown
FAINT = 0.01  # of the layer's largest activation: below, a neuron that is never exactly zero counts as silent
SEQUENCES = {"encoder": "source", "decoder": "target"}


def attentions(trace: Trace, arrays: Arrays, room: int = ROOM) -> list[dict[str, Any]]:
    """Every attention with the weights of each head; and what they were computed from, where there is room for it.

    That is all layers, or the first and the last of each stack, or none.
    """
    biases: dict[int, str] = {}  # layers of a stack share one
    shown, kind = _shown(trace, room), kind_of_weights(trace)
    return [
        _attention(look, trace.numbers.get(place), arrays, kind)
        | {"numbers": _numbers(trace.numbers[place], arrays, biases) if place in shown else None}
        for place, look in enumerate(trace.looks)
    ]


def kind_of_weights(trace: Trace) -> Kind:
    """As exact as there is room for: as they are; with the four digits that a page shows at most; with three."""
    n = sum(int(look.weights.count_nonzero()) for look in trace.looks)
    return "float32" if n <= EXACT else "decimal4" if n <= FOUR_DIGITS else "decimal3"


def layers(trace: Trace, arrays: Arrays) -> list[dict[str, Any]]:
    """Every layer: its norms, the way of its residual, its neurons."""
    return [_layer(layer, arrays) for layer in trace.layers]


def facts(config: Config) -> list[list[Any]]:
    """The config's fields that are one value, by their names; those of a config within after its name and a dot."""
    return [[name, value] for name, value in _flat(config.to_dict()) if name != "family"]


def _attention(look: Look, numbers: Numbers | None, arrays: Arrays, kind: Kind) -> dict[str, Any]:
    weights = look.weights[0].float()  # (H, Tq, Tk)
    if not weights.isfinite().all():
        raise RecordingError(
            f"the attention weights of {look.path} are not finite numbers: the model's own weights are broken, "
            "or too large for its precision; load it in float32, or train it anew"
        )
    return {
        "id": f"{look.stack}.{look.kind}.{look.layer}",
        "stack": look.stack,
        "kind": look.kind,
        "layer": look.layer,
        "queries": SEQUENCES[look.stack],
        "keys": "source" if look.kind == "cross" else SEQUENCES[look.stack],
        "causal": numbers is not None and numbers.causal,  # none: a recurrent model's, which sees the whole source
        "heads": [
            {
                "weights": arrays.put(head, kind),
                "distance": _distance(head) if look.kind == "self" else None,
                "entropy": _entropy(head),
            }
            for head in weights
        ],
    }


def _distance(weights: Tensor) -> float:
    """How many tokens lie between a query and what it looks at, on average: (Tq, Tk) → a number."""
    queries, keys = (torch.arange(n, device=weights.device) for n in weights.shape)
    return float((weights * (keys - queries[:, None]).abs()).sum(dim=-1).mean())


def _entropy(weights: Tensor) -> float:
    """In bits, the mean over queries: 0 looks at one key, log₂ Tk at all alike."""
    return float(torch.special.entr(weights).sum(dim=-1).mean()) / math.log(2)


def _shown(trace: Trace, room: int) -> set[int]:
    """The places of the looks whose numbers are shown."""
    depths: dict[str, int] = {}
    for look in trace.looks:
        depths[look.stack] = max(look.layer, depths.get(look.stack, 0))
    ends = {place for place in trace.numbers if trace.looks[place].layer in (0, depths[trace.looks[place].stack])}
    for places in (set(trace.numbers), ends):
        if _bytes(trace.numbers[place] for place in places) <= room:
            return places
    return set()


def _bytes(chosen: Iterable[Numbers]) -> int:
    """What they take in float16, a shared bias once."""
    sizes: dict[int, int] = {}
    for numbers in chosen:
        tensors = (numbers.x, numbers.query, numbers.key, numbers.value, numbers.mixed, numbers.bias)
        sizes |= {id(tensor): tensor.numel() for tensor in tensors if tensor is not None}
    return 2 * sum(sizes.values())


def _numbers(numbers: Numbers, arrays: Arrays, biases: dict[int, str]) -> dict[str, Any]:
    names = ("x", "query", "key", "value", "mixed")
    shown: dict[str, Any] = {name: arrays.put(getattr(numbers, name), "float16") for name in names}
    bias = numbers.bias
    if bias is not None and id(bias) not in biases:
        n_heads, n_queries, n_keys = numbers.query.shape[0], numbers.query.shape[1], numbers.key.shape[1]
        biases[id(bias)] = arrays.put(bias.expand(1, n_heads, n_queries, n_keys)[0], "float16")
    return shown | {"scale": numbers.scale, "bias": None if bias is None else biases[id(bias)]}


def _layer(layer: Layer, arrays: Arrays) -> dict[str, Any]:
    parts = list(layer.parts.values())
    neurons = [_neurons(part.hidden, part.has_zeros) for part in parts if part.hidden is not None]
    hidden, zeros = neurons[0] if neurons else (None, None)
    return {
        "stack": layer.stack,
        "layer": layer.layer,
        "sequence": SEQUENCES[layer.stack],
        "order": parts[0].order,
        "norm": parts[0].norm,
        "norms": [
            {"name": name, "before": arrays.put(part.before), "after": arrays.put(part.after)}
            for name, part in layer.parts.items()
        ],
        "residual": arrays.put(torch.stack([parts[0].entry, *(part.added for part in parts)], dim=1)),
        "hidden": None if hidden is None else arrays.put(hidden, "uint8"),
        "zeros": None if zeros is None else arrays.put(zeros),
    }


def _neurons(hidden: Tensor, has_zeros: bool) -> tuple[Tensor, Tensor]:
    """The first neurons, (T, ≤ 128) from 0 to 255, and the share of all that are silent, (T,).

    What is not exactly 0 is at least 1, however faint.
    """
    strength = hidden.float().abs()
    largest = strength.max()
    silent = strength <= (0 if has_zeros else FAINT * largest)
    shades = (255 * strength[:, :NEURONS] / largest.clamp(min=torch.finfo(torch.float32).tiny)).ceil()
    return shades.clamp(max=255), silent.float().mean(dim=-1)


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        elif isinstance(value, str | int | float):
            yield before + name, value
