"""What CTranslate2 says once for a whole stack, read off a stack's parts; what it has no place for is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from torch import Tensor, nn

from ...core import (
    ACTIVATIONS,
    ALiBi,
    FeedForward,
    GatedFeedForward,
    LayerNorm,
    Learned,
    LinearScaling,
    Llama3Scaling,
    MultiHeadAttention,
    PostNorm,
    PreNorm,
    Relative,
    RMSNorm,
    Rotary,
    Sinusoidal,
)
from ...errors import HeedfulError, MissingDependencyError

NORMS: tuple[type[nn.Module], ...] = (LayerNorm, RMSNorm)
RESIDUALS: tuple[type[nn.Module], ...] = (PreNorm, PostNorm)
PARTS: dict[str, tuple[type[nn.Module], ...]] = {
    "attention": (MultiHeadAttention,),
    "cross_attention": (MultiHeadAttention,),
    "feed_forward": (FeedForward, GatedFeedForward),
}
ACTIVATION_NAMES = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH", "tanh": "Tanh"}


class ExportError(HeedfulError, ValueError):
    """A model that cannot be written for another program: which part, where it stands, and why."""


def library() -> Any:
    """CTranslate2, where it is installed."""
    try:
        import ctranslate2
    except ImportError:
        raise MissingDependencyError(
            "CTranslate2 is not installed; install it with: pip install 'heedful[ctranslate2]'"
        ) from None
    return ctranslate2


def options_of(specs: Any, stack: Any, where: str, kind: type[nn.Module]) -> dict[str, Any]:
    """The options of a stack's specification. Layers that differ from each other are refused too."""
    wrapped = dict(_checked(stack, where, kind))
    parts = {f"{name}.part": wrapper.part for name, wrapper in wrapped.items()}
    attentions = {name: part for name, part in parts.items() if isinstance(part, MultiHeadAttention)}
    wide = {name: part for name, part in parts.items() if name not in attentions}
    norms = {f"{name}.norm": wrapper.norm for name, wrapper in wrapped.items()}
    norms |= {name: norm for name, norm in _ends(stack, where) if isinstance(norm, NORMS)}
    pre_norm = same(wrapped, type) is PreNorm
    if not pre_norm and isinstance(stack.norm, NORMS):
        raise refusal(stack.norm, f"{where}.norm", "no norm follows its post-norm layers")
    n_heads, n_kv_heads = same(attentions, lambda part: part.n_heads), same(attentions, lambda part: part.n_kv_heads)
    activation = same({name: _activation(part.activation, name) for name, part in wide.items()}, str)
    return {
        "num_heads": n_heads,
        "num_heads_kv": None if n_kv_heads == n_heads else n_kv_heads,
        "head_dim": same(attentions, lambda part: part.d_head),
        "pre_norm": pre_norm,
        "no_final_norm": isinstance(stack.norm, nn.Identity),
        "layernorm_embedding": isinstance(stack.entry, NORMS),
        "rms_norm": same(norms, type) is RMSNorm,
        "ffn_glu": same(wide, type) is GatedFeedForward,
        "activation": getattr(specs.Activation, ACTIVATION_NAMES[activation]),
        **_position_options(specs, stack.positions, f"{where}.positions", causal=where == "decoder"),
    }


def _checked(stack: Any, where: str, kind: type[nn.Module]) -> Iterator[tuple[str, Any]]:
    """The parts of all layers in their residual wrappers, each of a kind that is known, by their places."""
    default = type(stack).default_mask
    if any(mask.parts != default.parts for mask in stack.masks):
        raise refusal(stack.masks, f"{where}.mask", f"what it has there is {default!r}")
    if not len(stack.layers):
        raise refusal(stack, where, "it has no layers")
    for name, norm in _ends(stack, where):
        expect(norm, (*NORMS, nn.Identity), name)
    for index, layer in enumerate(stack.layers):
        expect(layer, (kind,), f"{where}.layers.{index}")
        for part, kinds in PARTS.items():
            wrapper, name = getattr(layer, part, None), f"{where}.layers.{index}.{part}"
            if wrapper is None:
                continue  # an encoder's layer has no cross-attention
            expect(wrapper, RESIDUALS, name)
            expect(wrapper.norm, NORMS, f"{name}.norm")
            expect(wrapper.part, kinds, f"{name}.part")
            if getattr(wrapper.part, "normalizes", False):
                raise refusal(wrapper.part.query_norm, f"{name}.part.query_norm", "its queries and keys have no norm")
            yield name, wrapper


def _ends(stack: Any, where: str) -> Iterator[tuple[str, Any]]:
    return ((f"{where}.{name}", getattr(stack, name)) for name in ("entry", "norm"))


def _position_options(specs: Any, positions: nn.Module, where: str, *, causal: bool) -> dict[str, Any]:
    """Of the constructor of a stack's specification."""
    expect(positions, (Sinusoidal, Learned, Relative, Rotary, ALiBi), where)
    if isinstance(positions, Relative):
        if positions.causal != causal:
            raise refusal(positions, where, "its decoders look back and its encoders both ways, and not otherwise")
        return {"relative_attention_bias": True}
    if isinstance(positions, ALiBi):
        return {"alibi": True}
    if not isinstance(positions, Rotary):
        return {}
    options = {
        "rotary_dim": positions.width,
        "rotary_interleave": positions.interleaved,
        "rotary_base": positions.base,
    }
    kinds = specs.attention_spec.RotaryScalingType
    if isinstance(positions.scaling, LinearScaling):
        options |= {"rotary_scaling_type": kinds.Linear, "rotary_scaling_factor": positions.scaling.factor}
    elif isinstance(positions.scaling, Llama3Scaling):
        options["rotary_scaling_type"] = kinds.Llama3
    elif positions.scaling is not None:
        raise refusal(positions.scaling, f"{where}.scaling", "it knows linear and llama3 scaling")
    return options


def _activation(given: Callable[[Tensor], Tensor], where: str) -> str:
    for name, known in ACTIVATIONS.items():
        if given is known or _said(given) == _said(known):
            return name
    raise refusal(given, f"{where}.activation", f"it knows {', '.join(ACTIVATION_NAMES)}")


def _said(function: Any) -> Any:
    """What tells two functions apart; a copied partial is another object that does the same."""
    return (function.func, function.args, function.keywords) if isinstance(function, partial) else function


def expect(part: Any, kinds: tuple[type, ...], where: str) -> None:
    """A part of exactly one of these kinds: one that was made from them may do something else."""
    if type(part) not in kinds:
        raise refusal(part, where, f"what it has there is {' or '.join(kind.__name__ for kind in kinds)}")


def same(found: Mapping[str, Any], of: Callable[[Any], Any]) -> Any:
    """What all places have in common."""
    values = {where: of(value) for where, value in found.items()}
    (first, value), *others = values.items()
    for where, other in others:
        if other != value:
            raise ExportError(
                f"CTranslate2 has one value for all, but {first} has {_shown(value)} and {where} {_shown(other)}"
            )
    return value


def _shown(value: object) -> str:
    return value.__name__ if isinstance(value, type) else repr(value)


def refusal(part: object, where: str, why: str) -> ExportError:
    """An error that names the part and its place."""
    name = type(part).__name__ if isinstance(part, nn.Module) else repr(part)
    return ExportError(f"CTranslate2 has no place for {where}, {name}: {why}")
