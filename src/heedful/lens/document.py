"""The task-independent parts of a look document: attentions, layers, position encoding and config facts.

The numbers stand in arrays beside the document, deflated and in base64, so that a page reads only those it shows.

Shapes: T tokens (Tq, Tk), D d_model, H heads, G key/value heads, K head width, F neurons, L positions shown.
"""

import base64
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from ..config import Config
from ..core import ALiBi, Learned, Relative, Rotary, Sinusoidal
from ..errors import RecordingError
from .recorder import Look
from .trace import Entry, Layer, Numbers, Trace

Kind = Literal["float32", "float16", "uint8", "decimal4", "decimal3"]
# Little-endian.
TYPES: dict[Kind, str] = {"float32": "<f4", "float16": "<f2", "uint8": "|u1", "decimal4": "<u2", "decimal3": "<u2"}
DIGITS: dict[Kind, int] = {"decimal4": 4, "decimal3": 3}  # after the point: they count units of 0.0001, or 0.001
LEVEL = 4  # of deflating: the next take twice as long and save a hundredth
LARGEST: dict[Kind, float] = {"uint8": 255, "decimal4": 6.5535, "decimal3": 65.535}
LARGEST_HALF = float(np.finfo(np.float16).max)
EXACT, FOUR_DIGITS = 1_500_000, 8_000_000  # weights that are not 0: a page of 300 tokens stays below 12 MB
ROOM = 1_200_000  # bytes for the numbers of all attentions, before they are packed: the page stays below 3 MB
ROOM_ASKED = 8 * ROOM  # where a reader has chosen the layers, their numbers are what is looked for
NEURONS = 128  # of a feed-forward that are shown
FAINT = 0.01  # of the layer's largest activation: below, a neuron that is never exactly zero counts as silent
SEQUENCES = {"encoder": "source", "decoder": "target"}
LONGEST, WIDEST = 100, 128  # of a table
BIASED = 64  # positions of a bias


class Arrays:
    """The arrays of a document, named a0, a1, … in the order of `put`."""

    def __init__(self) -> None:
        self._arrays: list[tuple[NDArray[Any], Kind]] = []

    def __len__(self) -> int:
        return len(self._arrays)

    def put(self, values: Tensor | ArrayLike, kind: Kind = "float32") -> str:
        """Store a copy and return its name. Values too large for float16 are stored as float32."""
        array = _plain(values)
        most = LARGEST.get(kind)
        if most is not None and array.size and not (array.min() >= 0 and array.max() <= most):
            raise ValueError(f"{kind} holds 0 to {most}, but these are {array.min()} to {array.max()}")
        if kind == "float16" and np.abs(array[np.isfinite(array)]).max(initial=0) > LARGEST_HALF:
            kind = "float32"
        if most is not None:
            array = np.rint(array.astype(np.float64) * 10 ** DIGITS.get(kind, 0))
        self._arrays.append((np.array(array, dtype=TYPES[kind]), kind))
        return f"a{len(self._arrays) - 1}"

    def to_dict(self, *, with_data: bool) -> dict[str, dict[str, Any]]:
        """Return shape and type of each array; `with_data` adds its deflated bytes in base64."""
        return {
            f"a{place}": {"shape": list(array.shape), "type": kind} | ({"data": _packed(array)} if with_data else {})
            for place, (array, kind) in enumerate(self._arrays)
        }


def unpacked(array: Mapping[str, Any]) -> NDArray[Any]:
    """Return the array of one entry in what `to_dict(with_data=True)` returns."""
    kind, shape, data = array["type"], array["shape"], zlib.decompress(base64.b64decode(array["data"]))
    if kind not in DIGITS:
        return np.frombuffer(data, dtype=TYPES[kind]).reshape(shape)
    low, high = np.frombuffer(data, dtype=np.uint8).reshape(2, -1)
    return ((low + 256.0 * high) / 10 ** DIGITS[kind]).astype(np.float32).reshape(shape)


def _plain(values: Tensor | ArrayLike) -> NDArray[Any]:
    if not isinstance(values, Tensor):
        return np.asarray(values)
    whole = values.detach().cpu()
    return (whole.float() if whole.is_floating_point() else whole).numpy()  # numpy has no bf16


def _packed(array: NDArray[Any]) -> str:
    """Compress an array; of 16-bit integers all low bytes come first, then all high bytes, which compress well."""
    plain = array.view(np.uint8).reshape(-1, 2).T if array.dtype == np.uint16 else array
    return base64.b64encode(zlib.compress(plain.tobytes(), LEVEL)).decode("ascii")


def attentions(trace: Trace, arrays: Arrays, room: int = ROOM) -> list[dict[str, Any]]:
    """Describe every attention with the weights of each head and, where there is room, the tensors they come from.

    That is all layers, or the first and the last of each stack, or none.
    """
    biases: dict[int, str] = {}  # layers of a stack share one
    included, kind = _looks_with_numbers(trace, room), kind_of_weights(trace)
    return [
        _attention(look, trace.numbers.get(place), arrays, kind)
        | {"numbers": _numbers(trace.numbers[place], arrays, biases) if place in included else None}
        for place, look in enumerate(trace.looks)
    ]


def kind_of_weights(trace: Trace) -> Kind:
    """Choose how weights are stored by their number: as float32, with four decimal places, or with three."""
    n = sum(int(look.weights.count_nonzero()) for look in trace.looks)
    return "float32" if n <= EXACT else "decimal4" if n <= FOUR_DIGITS else "decimal3"


def layers(trace: Trace, arrays: Arrays) -> list[dict[str, Any]]:
    """Describe every layer: its norms, its residual stream and its neurons."""
    return [_layer(layer, arrays) for layer in trace.layers]


def entries(trace: Trace, arrays: Arrays) -> dict[str, dict[str, Any]]:
    """Describe by sequence how its ids become the input of the first layer: the first 128 dimensions of each vector."""
    return {SEQUENCES[stack]: _entry(entry, arrays) for stack, entry in trace.entries.items()}


def facts(config: Config) -> list[list[Any]]:
    """List the single-valued fields of a config; fields of a nested config have its name and a dot in front."""
    return [[name, value] for name, value in _flat(config.to_dict()) if name != "family"]


def n_parameters(module: nn.Module) -> int:
    """Count the module's parameters, each shared parameter once."""
    return sum(parameter.numel() for parameter in module.parameters())


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
    """Return the mean distance in tokens between a query and the keys it attends to: (Tq, Tk) → a number."""
    queries, keys = (torch.arange(n, device=weights.device) for n in weights.shape)
    return float((weights * (keys - queries[:, None]).abs()).sum(dim=-1).mean())


def _entropy(weights: Tensor) -> float:
    """Return the mean entropy of the rows in bits: 0 for a single key, log₂ Tk for uniform weights."""
    return float(torch.special.entr(weights).sum(dim=-1).mean()) / math.log(2)


def _looks_with_numbers(trace: Trace, room: int) -> set[int]:
    """Return the indices of the looks whose numbers fit in the document."""
    last = {look.stack: look.layer for look in sorted(trace.looks, key=lambda look: look.layer)}
    ends = {place for place in trace.numbers if trace.looks[place].layer in (0, last[trace.looks[place].stack])}
    choices = (set(trace.numbers), ends, set[int]())
    return next(places for places in choices if _bytes(trace.numbers[place] for place in places) <= room)


def _bytes(chosen: Iterable[Numbers]) -> int:
    """Return their size in float16; a shared bias counts once."""
    sizes: dict[int, int] = {}
    for numbers in chosen:
        tensors = (numbers.x, numbers.query, numbers.key, numbers.value, numbers.mixed, numbers.bias)
        sizes |= {id(tensor): tensor.numel() for tensor in tensors if tensor is not None}
    return 2 * sum(sizes.values())


def _numbers(numbers: Numbers, arrays: Arrays, biases: dict[int, str]) -> dict[str, Any]:
    names = ("x", "query", "key", "value", "mixed")
    included: dict[str, Any] = {name: arrays.put(getattr(numbers, name), "float16") for name in names}
    bias = numbers.bias
    if bias is not None and id(bias) not in biases:
        n_heads, n_queries, n_keys = numbers.query.shape[0], numbers.query.shape[1], numbers.key.shape[1]
        biases[id(bias)] = arrays.put(bias.expand(1, n_heads, n_queries, n_keys)[0], "float16")
    return included | {"scale": numbers.scale, "bias": None if bias is None else biases[id(bias)]}


def _entry(entry: Entry, arrays: Arrays) -> dict[str, Any]:
    position = entry.summed.float() - entry.embedding.float()  # of the vectors that ran
    vectors = {
        "embedding": entry.embedding,
        "position": position if position.any() else None,
        "normalized": entry.normalized,
    }
    return {
        "ids": entry.ids.tolist(),
        "d_model": entry.embedding.shape[-1],
        "scale": entry.scale,
        "segments": entry.has_segments,
        **{name: None if x is None else arrays.put(x[:, :WIDEST], "float16") for name, x in vectors.items()},
    }


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
            {"name": name} | {side: arrays.put(getattr(part, side)) for side in ("before", "after")}
            for name, part in layer.parts.items()
        ],
        "residual": arrays.put(torch.stack([parts[0].entry, *(part.added for part in parts)], dim=1)),
        "hidden": None if hidden is None else arrays.put(hidden, "uint8"),
        "zeros": None if zeros is None else arrays.put(zeros),
    }


def _neurons(hidden: Tensor, has_zeros: bool) -> tuple[Tensor, Tensor]:
    """Return the first neurons scaled to 0 … 255, (T, ≤ 128), and the share of all neurons that are inactive, (T,).

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


def positions_of(module: nn.Module, arrays: Arrays) -> dict[str, Any] | None:
    """Describe the position encoding of the model's first stack that has a known one; None if there is none."""
    for part in module.modules():
        match part:
            case Sinusoidal():
                return position_vectors("sinusoidal", part.table(LONGEST), arrays)
            case Learned():
                return position_vectors("learned", part.table(min(LONGEST, part.max_length)), arrays)
            case Rotary():
                return _turns(part, arrays)
            case Relative():
                return _bias("relative", part, part.weight.device, arrays)
            case ALiBi():
                return _bias("alibi", part, torch.device("cpu"), arrays)
    return None


def position_vectors(name: str, table: Tensor, arrays: Arrays) -> dict[str, Any]:
    """Describe vectors that are added to the input, with the cosine similarity of every two over their full width."""
    directions = F.normalize(table.float(), dim=-1)
    return _table(name, table, directions @ directions.T, arrays)


def _turns(rotary: Rotary, arrays: Arrays) -> dict[str, Any]:
    """Describe rotations: the cosine of each pair's angle by position, and the mean cosine of every two positions."""
    places = torch.arange(LONGEST).float()
    frequencies = rotary.frequencies()
    between = (places[:, None] - places)[..., None] * frequencies  # (L, L, pairs)
    return _table("rotary", (places[:, None] * frequencies).cos(), between.cos().mean(dim=-1), arrays)


def _table(name: str, table: Tensor, similarity: Tensor, arrays: Arrays) -> dict[str, Any]:
    stored = {"table": arrays.put(table[:, :WIDEST]), "similarity": arrays.put(similarity)}
    return {"scheme": name, **stored, "bias": None, "length": len(table)}


def _bias(name: str, scheme: Relative | ALiBi, device: torch.device, arrays: Arrays) -> dict[str, Any]:
    """Describe the bias added to the scores, by head: (H, 64, 64), queries in rows."""
    places = torch.arange(BIASED, device=device)
    bias = arrays.put(scheme.bias(places, places))
    return {"scheme": name, "table": None, "similarity": None, "bias": bias, "length": BIASED}
