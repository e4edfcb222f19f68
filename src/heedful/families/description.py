"""The config of a model that was put together by hand or read from elsewhere, found by looking at its parts.

What is said once is read off the first layer. Then a twin is built from it, without memory, and every part of the
model must be what the twin has in that place: nothing that the config has no words for can pass.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from .. import core
from ..core.heads import Table
from ..core.masks import Window
from ..errors import HeedfulError
from .composed import (
    POSITIONS,
    AttentionPart,
    ComposedConfig,
    FeedForwardPart,
    NormPart,
    PositionsPart,
    StackPart,
    build,
)
from .llama import SCALINGS, ScalingConfig
from .original import FEED_FORWARDS, NORMS, RESIDUALS

TIED: dict[tuple[bool, bool], Any] = {
    (True, True): "all",
    (False, True): "output",
    (True, False): "embeddings",
    (False, False): "none",
}
SAID_APART = ("training", "masks")  # a mode, not a part; and rules, which are told apart by their types


class DescriptionError(HeedfulError, ValueError):
    """A model that no config says: which part, and where it stands."""


def describe(module: nn.Module) -> ComposedConfig:
    """The config from which `build` makes a model of the same parts, tied alike; only the weights are fresh."""
    model = _Model(module)
    reads = type(model.at("", core.EncoderDecoder, core.DecoderOnly)) is core.EncoderDecoder
    target = model.at("target_embedding" if reads else "embedding", core.TokenEmbedding)
    source = model.at("source_embedding", core.TokenEmbedding) if reads else target
    head = model.at("head", core.VocabularyHead)
    if head.table is not target:
        model.at("head.table", Table)
    config = ComposedConfig(
        vocab_size=len(source.weight),
        target_vocab_size=None if len(target.weight) == len(source.weight) else len(target.weight),
        encoder=model.stack("encoder", core.Encoder, source) if reads else None,
        decoder=model.stack("decoder", core.Decoder, target),
        tied=TIED[reads and source is target, head.table is target],
        head_bias=head.bias is not None,
        head_scale=head.scale,
    )
    with torch.device("meta"):
        twin = build(config)
    _refuse_other_parts(module, twin)
    _refuse_other_weights(module, twin)
    return config


class _Model:
    """A model whose parts are asked for by their places, and are exactly of a kind that is known there.

    A subclass may do anything, so types are compared and not inherited.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def at(self, place: str, *kinds: type[nn.Module]) -> Any:
        """The part at a place."""
        part = self._found(place)
        if type(part) not in kinds:
            raise _refusal(place, _shown(part), " or ".join(kind.__name__ for kind in kinds))
        return part

    def kind(self, place: str, kinds: Mapping[str, type[nn.Module]]) -> tuple[Any, Any]:
        """The word for what stands at a place, and the part itself."""
        part = self.at(place, *kinds.values())
        return next(name for name, kind in kinds.items() if kind is type(part)), part

    def stack(self, place: str, kind: type[nn.Module], embedding: core.TokenEmbedding) -> StackPart:
        stack, first = self.at(place, kind), f"{place}.layers.0"
        if not len(stack.layers):
            raise _refusal(f"{place}.layers", "empty", "one layer or more")
        reads = type(self.at(first, core.EncoderLayer, core.DecoderLayer)) is core.DecoderLayer
        order, _ = self.kind(f"{first}.attention", RESIDUALS)
        return StackPart(
            d_model=embedding.weight.shape[1],
            n_layers=len(stack.layers),
            attention=self.attention(f"{first}.attention"),
            cross_attention=self.attention(f"{first}.cross_attention") if reads else None,
            feed_forward=self.feed_forward(f"{first}.feed_forward"),
            norm=self.norm(f"{first}.attention.norm"),
            order=order,
            positions=self.positions(f"{place}.positions"),
            embedding_scale=embedding.scale,
            entry_norm=self.norm_or_none(f"{place}.entry"),
            final_norm=self.norm_or_none(f"{place}.norm"),
            window=_window(stack, place),
            dropout=self.dropout(f"{first}.attention.dropout"),
            entry_dropout=self.dropout(f"{place}.dropout"),
        )

    def attention(self, place: str) -> AttentionPart:
        self.kind(place, RESIDUALS)
        part = self.at(f"{place}.part", core.MultiHeadAttention)
        query, out = (self.at(f"{place}.part.{name}", nn.Linear) for name in ("query", "out"))
        product = self.at(f"{place}.part.attention", core.DotProduct)
        return AttentionPart(
            n_heads=part.n_heads,
            n_kv_heads=part.n_kv_heads,
            d_head=part.d_head,
            bias=query.bias is not None,
            out_bias=out.bias is not None,
            scale=product.scale,
            dropout=product.dropout,
        )

    def feed_forward(self, place: str) -> FeedForwardPart:
        self.kind(place, RESIDUALS)
        kind, part = self.kind(f"{place}.part", FEED_FORWARDS)
        narrow = self.at(f"{place}.part.narrow", nn.Linear)
        return FeedForwardPart(
            kind=kind,
            d_ff=narrow.in_features,
            activation=_activation(part.activation, f"{place}.part.activation"),
            bias=narrow.bias is not None,
            dropout=self.dropout(f"{place}.part.dropout"),
        )

    def norm(self, place: str) -> NormPart:
        kind, part = self.kind(place, NORMS)
        return NormPart(kind=kind, eps=part.eps, bias=part.bias is not None if kind == "layer" else None)

    def norm_or_none(self, place: str) -> NormPart | None:
        return None if type(self._found(place)) is nn.Identity else self.norm(place)

    def dropout(self, place: str) -> float:
        return float(self.at(place, nn.Dropout).p)

    def positions(self, place: str) -> PositionsPart:
        kind, part = self.kind(place, POSITIONS)
        own = {field.name for field in fields(PositionsPart)} & signature(POSITIONS[kind]).parameters.keys()
        said = {name: getattr(part, name) for name in own}
        if said.get("scaling") is not None:
            said["scaling"] = _scaling(said["scaling"], f"{place}.scaling")
        return PositionsPart(kind=kind, **said)

    def _found(self, place: str) -> nn.Module | None:
        try:
            return self._module.get_submodule(place)
        except AttributeError:
            return None


def _window(stack: Any, place: str) -> int | None:
    """Beside the rules that every stack of its kind has."""
    default, (*rules,) = type(stack).default_mask, stack.masks[0].parts
    size = rules.pop().size if rules and type(rules[-1]) is Window else None
    if len(stack.masks) > 1 or [type(rule) for rule in rules] != [type(rule) for rule in default.parts]:
        given = ", ".join(map(repr, stack.masks))
        raise _refusal(f"{place}.mask", given, f"{default!r}, with a window or without")
    return size


def _scaling(scaling: Any, place: str) -> ScalingConfig:
    name: Any = next((name for name, kind in SCALINGS.items() if kind is type(scaling)), None)
    if name is None:
        raise _refusal(place, repr(scaling), " or ".join(kind.__name__ for kind in SCALINGS.values()))
    return ScalingConfig(kind=name, **asdict(scaling))


def activation_name(function: Callable[[Tensor], Tensor]) -> str | None:
    """The name that the core has for an activation; None where it has none."""
    return next((name for name, known in core.ACTIVATIONS.items() if _comparable(function) == _comparable(known)), None)


def _activation(given: Callable[[Tensor], Tensor], place: str) -> Any:
    name = activation_name(given)
    if name is None:
        raise _refusal(place, repr(given), " or ".join(core.ACTIVATIONS))
    return name


def _refuse_other_parts(module: nn.Module, twin: nn.Module) -> None:
    """Every part is exactly of the twin's type, and what it remembers beside its weights is the same."""
    ours, twins = (dict(model.named_modules(remove_duplicate=False)) for model in (module, twin))
    for place in (*ours, *(place for place in twins if place not in ours)):
        part, wanted = ours.get(place), twins.get(place)
        if type(part) is not type(wanted):
            raise _refusal(place, _shown(part), _shown(wanted))
        mine, its = vars(part), vars(wanted)
        hiding = [name for name in mine if name not in its and hasattr(type(part), name)]  # a method put on top
        for name in (*its, *hiding):
            if name.startswith("_") or name in SAID_APART:
                continue
            value, usual = mine.get(name), its.get(name)
            if isinstance(value, Tensor) or _comparable(value) != _comparable(usual):
                raise _refusal(f"{place}.{name}".lstrip("."), repr(value), repr(usual))


def _refuse_other_weights(module: nn.Module, twin: nn.Module) -> None:
    """Every weight has the twin's shape, and is one with the same others."""
    ours, twins = _weights(module), _weights(twin)
    for name in (*ours, *(name for name in twins if name not in ours)):
        given, wanted = ours.get(name, "left out"), twins.get(name, "left out")
        if given != wanted:
            raise _refusal(name, given, wanted)


def _weights(module: nn.Module) -> dict[str, str]:
    """In words: the shape of each, and under which other name it was seen before."""
    firsts: dict[int, str] = {}
    weights = module.state_dict(keep_vars=True)
    owners = {name: firsts.setdefault(id(weight), name) for name, weight in weights.items()}
    shared = {name: "" if owner == name else f" and one with {owner}" for name, owner in owners.items()}
    return {name: f"{tuple(weight.shape)}{shared[name]}" for name, weight in weights.items()}


def _comparable(value: Any) -> Any:
    """What tells two values apart; a copied partial is another object that does the same."""
    return (value.func, value.args, value.keywords) if isinstance(value, partial) else value


def _shown(part: nn.Module | None) -> str:
    return "left out" if part is None else type(part).__name__


def _refusal(place: str, given: str, wanted: str) -> DescriptionError:
    return DescriptionError(
        f"{place or 'the model'} is {given}; a composed model, whose layers are alike, can only have {wanted} there"
    )
