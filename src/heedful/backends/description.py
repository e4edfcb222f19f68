"""A description of Transformer layers for the backends that run the parts of a layer themselves.

The checks are allow-lists: a part is supported if it has exactly a supported type, and no attributes beyond those that
the type had when the backends were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from .. import core
from ..core.masks import Causal

STACK = ("mask", "masks", "positions", "entry", "dropout", "layers", "norm", "activation_checkpointing")
RESIDUAL = ("norm", "sublayer", "dropout")
ATTRIBUTES: dict[type[nn.Module], tuple[str, ...]] = {
    core.EncoderDecoder: ("source_embedding", "encoder", "target_embedding", "decoder", "head"),
    core.DecoderOnly: ("embedding", "decoder", "head"),
    core.Encoder: STACK,
    core.Decoder: STACK,
    core.EncoderLayer: ("self_attention", "feed_forward"),
    core.DecoderLayer: ("self_attention", "cross_attention", "feed_forward"),
    core.PreNorm: RESIDUAL,
    core.PostNorm: RESIDUAL,
    core.MultiHeadAttention: ("n_heads", "n_kv_heads", "d_head", "q_proj", "kv_proj", "attention", "out_proj"),
    core.DotProduct: ("scale", "dropout"),
    core.FeedForward: ("activation", "up_proj", "dropout", "down_proj"),
    core.GatedFeedForward: ("activation", "gate_up_proj", "dropout", "down_proj"),
    core.LayerNorm: ("eps", "weight", "bias"),
    core.RMSNorm: ("eps", "weight"),
    core.Rotary: ("d_head", "width", "base", "interleaved", "scaling"),
    core.TokenEmbedding: ("scale", "weight", "segments"),
    core.VocabularyHead: ("transform", "scale", "embedding", "bias"),
}
POSITIONS = (core.Positions, core.Sinusoidal, core.Learned, core.Relative, core.ALiBi, core.Rotary)
EVERY_MODULE = frozenset(vars(nn.Module()))


class Reason(NamedTuple):
    """A reason why a model cannot use a backend, or cannot use it for one of its parts."""

    part: str  # its path in the model, "decoder.layers.3.self_attention"; "" for the model or the machine as a whole
    what: str

    def __str__(self) -> str:
        return f"{self.part}: {self.what}" if self.part else self.what

    def below(self, path: str) -> Reason:
        """Return the reason for the module that has this part at `path`."""
        return Reason(".".join(filter(None, (path, self.part))), self.what)


SUBLAYERS = ("self_attention", "cross_attention", "feed_forward")  # attributes of a layer, as they run


class Sublayer(NamedTuple):
    """A residual sublayer: its computation, and whether its norm comes first."""

    name: str  # one of SUBLAYERS
    norm_first: bool
    norm: nn.Module
    module: Any


def sublayers(layer: nn.Module) -> list[Sublayer]:
    """Return the sublayers of a layer, in the order in which they run."""
    wraps = _residuals(layer).items()
    return [Sublayer(name, isinstance(wrap, core.PreNorm), wrap.norm, wrap.sublayer) for name, wrap in wraps]


def _residuals(layer: nn.Module) -> dict[str, Any]:
    return {name: wrap for name in SUBLAYERS if (wrap := getattr(layer, name, None)) is not None}


def joined_projection(part: core.MultiHeadAttention) -> tuple[Tensor, Tensor | None]:
    """Return the projections to queries, keys and values as one matrix ((H + 2 G) · K, D), and their bias."""
    both = part.q_proj, part.kv_proj
    bias = None if part.q_proj.bias is None else torch.cat([linear.bias.detach() for linear in both])
    return torch.cat([linear.weight.detach() for linear in both]), bias


def first_projection(part: Any) -> nn.Linear:
    """Return the first linear map of a feed-forward part."""
    linear: nn.Linear = part.gate_up_proj if hasattr(part, "gate_up_proj") else part.up_proj
    return linear


# ---- checks ----


def only(part: nn.Module, *kinds: type[nn.Module]) -> Iterator[Reason]:
    """Require that a part has exactly one of these types, and no attributes beyond the listed ones.

    Attributes that are None, False or an identity are allowed.
    """
    if type(part) not in kinds:
        allowed = f", only {_listed(kinds)}" if len(kinds) <= 3 else ""
        yield Reason("", f"{type(part).__name__} is not supported{allowed}")
        return
    attributes = EVERY_MODULE.union(ATTRIBUTES.get(type(part), vars(part)))
    for name in (*vars(part), *part._parameters, *part._buffers, *part._modules) if type(part) in ATTRIBUTES else ():
        value = getattr(part, name)
        if name not in attributes and value is not None and value is not False and type(value) is not nn.Identity:
            yield Reason("", f"{type(part).__name__} has `{name}`, which is not supported")


def within(path: str, reasons: Iterable[Reason]) -> Iterator[Reason]:
    """Return the reasons about a part at a path."""
    return (reason.below(path) for reason in reasons)


def attention_refusals(part: Any) -> Iterator[Reason]:
    """Require the paper's multi-head attention with plain linear maps."""
    yield from (reasons := list(only(part, core.MultiHeadAttention)))
    if reasons:
        return
    yield from within("attention", only(part.attention, core.DotProduct))
    for name in ("q_proj", "kv_proj", "out_proj"):
        yield from within(name, only(getattr(part, name), nn.Linear))
    if (part.q_proj.bias is None) != (part.kv_proj.bias is None):
        yield Reason("", "q_proj and kv_proj must both have a bias, or neither")


def layer_refusals(layer: Any) -> Iterator[Reason]:
    """Require a layer of residuals, all of one kind, around attention and a feed-forward part."""
    yield from (reasons := list(only(layer, core.EncoderLayer, core.DecoderLayer)))
    if reasons:
        return
    for name, wrap in _residuals(layer).items():
        yield from within(name, (reasons := list(only(wrap, core.PreNorm, core.PostNorm))))
        if reasons:
            continue
        if name == "feed_forward":
            yield from within(f"{name}.sublayer", only(wrap.sublayer, core.FeedForward, core.GatedFeedForward))
        else:
            yield from within(f"{name}.sublayer", attention_refusals(wrap.sublayer))
    if len(kinds := {type(wrap) for wrap in _residuals(layer).values()}) > 1:
        yield Reason("", f"its residuals differ: {_listed(kinds)}")


def stack_refusals(stack: Any, kind: type[core.Stack]) -> Iterator[Reason]:
    """Require a stack of such layers with the default mask for its kind."""
    yield from (reasons := list(only(stack, kind)))
    if reasons:
        return
    for index, mask in enumerate(stack.masks):  # one for all layers, or one for each
        rules = [type(rule) for rule in mask.parts]
        if rules != ([Causal] if kind is core.Decoder else []):
            names = ", ".join(rule.__name__ for rule in rules) or "nothing"
            default = "causal()" if kind is core.Decoder else "everything()"
            yield Reason(f"layers.{index}" if len(stack.masks) > 1 else "", f"its mask ({names}) is not {default}")
    yield from within("positions", only(stack.positions, *POSITIONS))
    if not len(stack.layers):
        yield Reason("", "it has no layers")
    for index, layer in enumerate(stack.layers):
        yield from within(f"layers.{index}", layer_refusals(layer))


def _listed(kinds: Iterable[type]) -> str:
    return " and ".join(sorted(kind.__name__ for kind in kinds))
