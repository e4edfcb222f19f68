"""Trace one input through a model from outside: hooks note activations; the model is not changed.

The weights are the recorder's. Beside them each attention's queries, keys and values, each residual's sums and norms,
each feed-forward's neurons. What is inside is noted first, and gathered by what stands around it.

Shapes, of the one row that ran: T tokens (Tq, Tk), D d_model, H heads, G key/value heads, K head width, F neurons.
"""

import copy
import math
from collections import Counter, OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from .. import core
from ..core import DecoderLayer, EncoderLayer, MultiHeadAttention, PostNorm, PreNorm
from ..errors import RecordingError
from .recorder import Look, Recording, record

M = TypeVar("M", bound=nn.Module)

NormName = Literal["layer", "rms", "batch"]
NORMS: dict[type[nn.Module], NormName] = {core.LayerNorm: "layer", core.RMSNorm: "rms", core.BatchNorm: "batch"}


@dataclass(frozen=True, eq=False)
class Numbers:
    """The tensors of one attention. Queries and keys are those of the dot product, after any rotation."""

    x: Tensor  # (Tq, D) what went in
    query: Tensor  # (H, Tq, K)
    key: Tensor  # (G, Tk, K)
    value: Tensor  # (G, Tk, K)
    mixed: Tensor  # (H, Tq, K)
    scale: float
    bias: Tensor | None  # added to the scores; broadcasts to (1, H, Tq, Tk). One for all layers of a stack
    causal: bool


@dataclass(frozen=True, eq=False)
class Part:
    """One sublayer with its residual and its norm. Statistics are each token's mean and deviation, (T, 2)."""

    order: Literal["pre", "post"]
    norm: NormName | None  # None: of another make
    before: Tensor  # the norm
    after: Tensor
    entry: Tensor  # (T,) the length of each token's vector as it came
    added: Tensor  # (T,) and of its sum with what the part gave, before any norm of that sum
    hidden: Tensor | None  # (T, F) the neurons of a feed-forward
    has_zeros: bool  # the neurons are switched off by an exact zero (ReLU)


@dataclass(frozen=True, eq=False)
class Layer:
    """One layer that ran, and its sublayers by name, in order."""

    stack: str
    layer: int
    parts: dict[str, Part]


@dataclass(frozen=True, eq=False)
class Entry:
    """The way of a stack's tokens to its first layer."""

    ids: Tensor  # (T,)
    scale: float  # of the embedding: √D in the paper
    embedding: Tensor  # (T, D) scaled; with segments, their vectors are in it
    has_segments: bool
    summed: Tensor  # (T, D) with the vectors of the positions, where the scheme has any
    normalized: Tensor | None  # (T, D) after a norm or a projection, where there is one


@dataclass
class Trace:
    """The results of one run. `numbers` are by the index of their look; a recurrent model has none.

    `entries` are by stack, for tokens that have ids. `streams` are by stack the input of the first layer and the output
    of each, (T, D).
    """

    recording: Recording
    numbers: dict[int, Numbers] = field(default_factory=dict, repr=False)
    layers: list[Layer] = field(default_factory=list, repr=False)
    entries: dict[str, Entry] = field(default_factory=dict, repr=False)
    streams: dict[str, list[Tensor]] = field(default_factory=dict, repr=False)

    @property
    def looks(self) -> list[Look]:
        """Return the attentions in the order in which they ran."""
        return self.recording.looks


def hookable_copy(module: M) -> M:
    """Copy the modules but share the weights, so that hooks do not affect other threads that use the model."""
    copies: dict[int, Any] = {id(tensor): tensor for tensor in (*module.parameters(), *module.buffers())}
    values = (value for part in module.modules() for value in vars(part).values())
    copies |= {id(value): OrderedDict() for value in values if type(value) is OrderedDict and not value}  # of no hooks
    return copy.deepcopy(module, copies)


@contextmanager
def trace(module: nn.Module) -> Iterator[Trace]:
    """Trace one input that runs through the model once: one row, without a cache.

    >>> with trace(model) as seen:
    ...     model(source, target)
    >>> seen.numbers[0].query  # (H, Tq, K)
    """
    if not any(isinstance(part, core.Stack | core.RecurrentDecoder) for part in module.modules()):
        raise RecordingError(f"a {type(module).__name__} has no encoder or decoder to look into; give a whole model")
    with record(module) as recording, ExitStack() as hooks:  # its hooks come first, so a look is there before ours run
        seen = Trace(recording)
        _hook_entries(seen, module, hooks)
        for part in module.modules():
            if isinstance(part, MultiHeadAttention):
                _hook_attention(seen, part, hooks)
            elif isinstance(part, EncoderLayer | DecoderLayer):
                _hook_layer(seen, part, hooks)
            elif isinstance(part, core.Stack):
                _hook_stream(seen, part, hooks)
        yield seen
    _refuse_several(seen.looks)


def _hook_entries(seen: Trace, module: nn.Module, hooks: ExitStack) -> None:
    embedded: dict[str, Any] = {}  # what the next stack reads: both may have one embedding

    def looked_up(embedding: Any, args: tuple[Any, ...], output: tuple[Tensor, Any]) -> None:
        has_segments = embedding.segments is not None
        embedded.update(ids=_row(args[0]), scale=embedding.scale, embedding=_row(output[0]), has_segments=has_segments)

    def entered(name: str, entry: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        if embedded and not seen.recording.over:
            normalized = None if isinstance(entry, nn.Identity) else _row(output)
            seen.entries[name] = Entry(**embedded, summed=_row(args[0]), normalized=normalized)
        embedded.clear()

    for part in module.modules():
        if isinstance(part, core.TokenEmbedding):
            hooks.callback(part.register_forward_hook(looked_up).remove)
        elif isinstance(part, core.Stack):
            name = "decoder" if isinstance(part, core.Decoder) else "encoder"
            hooks.callback(part.entry.register_forward_hook(partial(entered, name)).remove)


def _hook_stream(seen: Trace, stack: core.Stack, hooks: ExitStack) -> None:
    name = "decoder" if isinstance(stack, core.Decoder) else "encoder"

    def ran(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        if not seen.recording.over:
            stream = seen.streams.setdefault(name, [_row(args[0] if args else kwargs["x"])])
            stream.append(_row(output))

    for layer in dict.fromkeys(stack.layers):  # one module may be several layers
        hooks.callback(layer.register_forward_hook(ran, with_kwargs=True).remove)


def _hook_attention(seen: Trace, attention: MultiHeadAttention, hooks: ExitStack) -> None:
    inside: dict[str, Any] = {}

    def mixed(mixer: Any, args: tuple[Any, ...], output: Tensor) -> None:
        query, key, value, bound = args
        inside.update(query=_row(query), key=_row(key), value=_row(value), mixed=_row(output))
        inside.update(scale=1 / math.sqrt(query.shape[-1]) if mixer.scale is None else mixer.scale)
        inside.update(bias=bound.bias, causal=bound.rules.is_causal)

    def ran(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Tensor) -> None:
        if not seen.recording.over:
            x = args[0] if args else kwargs["x"]
            seen.numbers[len(seen.looks) - 1] = Numbers(x=_row(x), **inside)

    hooks.callback(attention.attention.register_forward_hook(mixed).remove)
    hooks.callback(attention.register_forward_hook(ran, with_kwargs=True).remove)


def _hook_layer(seen: Trace, layer: EncoderLayer | DecoderLayer, hooks: ExitStack) -> None:
    parts: dict[str, Part] = {}
    for name, wrap in layer.named_children():
        if isinstance(wrap, PreNorm | PostNorm):
            _hook_part(parts, name, wrap, hooks)

    def ran(*_: Any) -> None:
        if parts and not seen.recording.over:
            look = seen.looks[-1]  # the layer's own attention knows which layer this was: one module may be several
            seen.layers.append(Layer(look.stack, look.layer, dict(parts)))

    hooks.callback(layer.register_forward_hook(ran).remove)


def _hook_part(parts: dict[str, Part], name: str, wrap: PreNorm | PostNorm, hooks: ExitStack) -> None:
    inside: dict[str, Tensor] = {}

    def normalized(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        inside.update(before=_row(args[0]), after=_row(output))

    def widened(_: nn.Module, args: tuple[Any, ...]) -> None:
        inside.update(hidden=_row(args[0]))

    def ran(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
        is_pre, activation = isinstance(wrap, PreNorm), getattr(wrap.sublayer, "activation", None)
        parts[name] = Part(
            order="pre" if is_pre else "post",
            norm=next((name for kind, name in NORMS.items() if isinstance(wrap.norm, kind)), None),
            before=_statistics(inside["before"]),
            after=_statistics(inside["after"]),
            entry=_row(args[0]).float().norm(dim=-1),
            added=(_row(output) if is_pre else inside["before"]).float().norm(dim=-1),
            hidden=inside.get("hidden"),
            has_zeros=activation in (F.relu, torch.relu) or isinstance(activation, nn.ReLU),
        )

    hooks.callback(wrap.norm.register_forward_hook(normalized).remove)
    if isinstance(wrap.sublayer, core.FeedForward | core.GatedFeedForward):
        hooks.callback(wrap.sublayer.down_proj.register_forward_pre_hook(widened).remove)
    hooks.callback(wrap.register_forward_hook(ran).remove)


def _row(x: Tensor) -> Tensor:
    return x.detach()[0]


def _statistics(x: Tensor) -> Tensor:
    """Return each token's mean and standard deviation: (T, D) → (T, 2)."""
    deviation, mean = torch.std_mean(x.float(), dim=-1, correction=0)
    return torch.stack([mean, deviation], dim=-1)


def _refuse_several(looks: list[Look]) -> None:
    rows = max(look.weights.shape[0] for look in looks)
    if rows != 1:
        raise RecordingError(f"one input is traced at a time, but {rows} rows ran together; give them one by one")
    again, times = Counter((look.stack, look.kind, look.layer) for look in looks).most_common(1)[0]
    if times > 1:
        raise RecordingError(
            f"one run is traced at a time, but the {again[0]}'s layer {again[2]} ran {times} times; "
            "run the model once over all tokens, without a cache"
        )
