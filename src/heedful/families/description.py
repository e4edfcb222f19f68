"""Infers the config of a model from its parts.

The settings of a stack are read from its first layer. Then a reference model is built from the config on the meta
device, and every part of the model must equal the reference's part in that place. A model that the config cannot
describe is therefore refused.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from functools import partial
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn

from .. import core
from ..core.heads import OutputEmbedding
from ..core.masks import Window
from ..errors import HeedfulError
from .composed import (
    AttentionPart,
    ComposedConfig,
    FeedForwardPart,
    NormPart,
    PositionsPart,
    StackPart,
    build,
)
from .llama import SCALINGS, ScalingConfig
from .original import FEED_FORWARDS, NORMS, POSITIONS, RESIDUALS
from .weights import first_names

TIED: dict[tuple[bool, bool], Any] = {
    (True, True): "all",
    (False, True): "output",
    (True, False): "embeddings",
    (False, False): "none",
}
UNCOMPARED = ("training", "masks")  # a mode, and rules that `_window` compares by their types


class DescriptionError(HeedfulError, ValueError):
    """A model that no config can describe; the message names the part and its place."""


def describe(module: nn.Module) -> ComposedConfig:
    """Return the config from which `build` makes a model of the same parts with the same ties, except for weights."""
    model = _Model(module)
    is_encoder_decoder = type(model.at("", core.EncoderDecoder, core.DecoderOnly)) is core.EncoderDecoder
    target = model.at("target_embedding" if is_encoder_decoder else "embedding", core.TokenEmbedding)
    source = model.at("source_embedding", core.TokenEmbedding) if is_encoder_decoder else target
    head = model.at("head", core.VocabularyHead)
    if head.embedding is not target:
        model.at("head.embedding", OutputEmbedding)
    config = ComposedConfig(
        vocab_size=len(source.weight),
        target_vocab_size=None if len(target.weight) == len(source.weight) else len(target.weight),
        encoder=model.stack("encoder", core.Encoder, source) if is_encoder_decoder else None,
        decoder=model.stack("decoder", core.Decoder, target),
        tied=TIED[is_encoder_decoder and source is target, head.embedding is target],
        head_bias=head.bias is not None,
        head_scale=head.scale,
    )
    with torch.device("meta"):
        reference = build(config)
    _compare_parts(module, reference)
    _compare_weights(module, reference)
    return config


class _Model:
    """Reads the parts of a model by their dotted names.

    Types must match exactly, since a subclass may compute something else.
    """

    def __init__(self, module: nn.Module) -> None:
        self._module = module

    def at(self, place: str, *kinds: type[nn.Module]) -> Any:
        """Return the part at a place, which must be of one of these types."""
        part = self._get(place)
        if type(part) not in kinds:
            raise _refusal(place, _type_name(part), " or ".join(kind.__name__ for kind in kinds))
        return part

    def kind(self, place: str, kinds: Mapping[str, type[nn.Module]]) -> tuple[Any, Any]:
        """Return the name of the kind of the part at a place, and the part."""
        part = self.at(place, *kinds.values())
        return next(name for name, kind in kinds.items() if kind is type(part)), part

    def stack(self, place: str, kind: type[nn.Module], embedding: core.TokenEmbedding) -> StackPart:
        stack, first = self.at(place, kind), f"{place}.layers.0"
        if not len(stack.layers):
            raise _refusal(f"{place}.layers", "empty", "one layer or more")
        has_cross_attention = type(self.at(first, core.EncoderLayer, core.DecoderLayer)) is core.DecoderLayer
        order, _ = self.kind(f"{first}.self_attention", RESIDUALS)
        return StackPart(
            d_model=embedding.weight.shape[1],
            n_layers=len(stack.layers),
            attention=self.attention(f"{first}.self_attention"),
            cross_attention=self.attention(f"{first}.cross_attention") if has_cross_attention else None,
            feed_forward=self.feed_forward(f"{first}.feed_forward"),
            norm=self.norm(f"{first}.self_attention.norm"),
            order=order,
            positions=self.positions(f"{place}.positions"),
            embedding_scale=embedding.scale,
            entry_norm=self.norm_or_none(f"{place}.entry"),
            final_norm=self.norm_or_none(f"{place}.norm"),
            window=_window(stack, place),
            dropout=self.dropout(f"{first}.self_attention.dropout"),
            entry_dropout=self.dropout(f"{place}.dropout"),
        )

    def attention(self, place: str) -> AttentionPart:
        self.kind(place, RESIDUALS)
        part = self.at(f"{place}.sublayer", core.MultiHeadAttention)
        query, out = (self.at(f"{place}.sublayer.{name}", nn.Linear) for name in ("q_proj", "out_proj"))
        product = self.at(f"{place}.sublayer.attention", core.DotProduct)
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
        kind, part = self.kind(f"{place}.sublayer", FEED_FORWARDS)
        narrow = self.at(f"{place}.sublayer.down_proj", nn.Linear)
        return FeedForwardPart(
            kind=kind,
            d_ff=narrow.in_features,
            activation=_activation(part.activation, f"{place}.sublayer.activation"),
            bias=narrow.bias is not None,
            dropout=self.dropout(f"{place}.sublayer.dropout"),
        )

    def norm(self, place: str) -> NormPart:
        kind, part = self.kind(place, NORMS)
        return NormPart(kind=kind, eps=part.eps, bias=part.bias is not None if kind == "layer" else None)

    def norm_or_none(self, place: str) -> NormPart | None:
        return None if type(self._get(place)) is nn.Identity else self.norm(place)

    def dropout(self, place: str) -> float:
        return float(self.at(place, nn.Dropout).p)

    def positions(self, place: str) -> PositionsPart:
        kind, part = self.kind(place, POSITIONS)
        names = {field.name for field in fields(PositionsPart)} & signature(POSITIONS[kind]).parameters.keys()
        options = {name: getattr(part, name) for name in names}
        if options.get("scaling") is not None:
            options["scaling"] = _scaling(options["scaling"], f"{place}.scaling")
        return PositionsPart(kind=kind, **options)

    def _get(self, place: str) -> nn.Module | None:
        try:
            return self._module.get_submodule(place)
        except AttributeError:
            return None


def _window(stack: Any, place: str) -> int | None:
    """Return the size of the window beside the default rules of the stack's mask, or None."""
    default, (*rules,) = type(stack).default_mask, stack.masks[0].parts
    size = rules.pop().size if rules and type(rules[-1]) is Window else None
    if len(stack.masks) > 1 or [type(rule) for rule in rules] != [type(rule) for rule in default.parts]:
        masks = ", ".join(map(repr, stack.masks))
        raise _refusal(f"{place}.mask", masks, f"{default!r}, with a window or without")
    return size


def _scaling(scaling: Any, place: str) -> ScalingConfig:
    name: Any = next((name for name, kind in SCALINGS.items() if kind is type(scaling)), None)
    if name is None:
        raise _refusal(place, repr(scaling), " or ".join(kind.__name__ for kind in SCALINGS.values()))
    return ScalingConfig(kind=name, **asdict(scaling))


def activation_name(function: Callable[[Tensor], Tensor]) -> str | None:
    """Return the core's name of an activation, or None."""
    return next((name for name, other in core.ACTIVATIONS.items() if _comparable(function) == _comparable(other)), None)


def _activation(function: Callable[[Tensor], Tensor], place: str) -> Any:
    name = activation_name(function)
    if name is None:
        raise _refusal(place, repr(function), " or ".join(core.ACTIVATIONS))
    return name


def _compare_parts(module: nn.Module, reference: nn.Module) -> None:
    """Raise unless every part has the reference's type and attributes, weights aside."""
    parts, references = (dict(model.named_modules(remove_duplicate=False)) for model in (module, reference))
    for place in dict.fromkeys((*parts, *references)):
        part, expected = parts.get(place), references.get(place)
        if type(part) is not type(expected):
            raise _refusal(place, _type_name(part), _type_name(expected))
        values, expected_values = vars(part), vars(expected)
        overrides = [name for name in values if name not in expected_values and hasattr(type(part), name)]  # methods
        for name in (*expected_values, *overrides):
            if name.startswith("_") or name in UNCOMPARED:
                continue
            value, expected_value = values.get(name), expected_values.get(name)
            if isinstance(value, Tensor) or _comparable(value) != _comparable(expected_value):
                raise _refusal(f"{place}.{name}".lstrip("."), repr(value), repr(expected_value))


def _compare_weights(module: nn.Module, reference: nn.Module) -> None:
    """Raise unless every weight has the reference's shape and is shared with the same others."""
    weights, references = _weights(module), _weights(reference)
    for name in dict.fromkeys((*weights, *references)):
        weight, expected = weights.get(name, "left out"), references.get(name, "left out")
        if weight != expected:
            raise _refusal(name, weight, expected)


def _weights(module: nn.Module) -> dict[str, str]:
    """Describe the shape of every weight, and the first name of a shared one."""
    weights = module.state_dict(keep_vars=True)
    owners = first_names(weights)
    shared = {name: "" if owner == name else f" and one with {owner}" for name, owner in owners.items()}
    return {name: f"{tuple(weight.shape)}{shared[name]}" for name, weight in weights.items()}


def _comparable(value: Any) -> Any:
    """Return a value that can be compared; two equal partials are not equal objects."""
    return (value.func, value.args, value.keywords) if isinstance(value, partial) else value


def _type_name(part: nn.Module | None) -> str:
    return "left out" if part is None else type(part).__name__


def _refusal(place: str, actual: str, expected: str) -> DescriptionError:
    return DescriptionError(
        f"{place or 'the model'} is {actual}; a composed model, whose layers are alike, can only have {expected} there"
    )
