"""A module as a CTranslate2 specification, decided by its parts and filled with their weights.

What CTranslate2 has no place for is refused, with the part's place and the reason.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ... import core
from ...errors import HeedfulError, MissingDependencyError
from ..description import activation_name
from ..weight_map import to_hf
from .reading import WEIGHTS

NORMS: tuple[type[nn.Module], ...] = (core.LayerNorm, core.RMSNorm)
RESIDUALS: tuple[type[nn.Module], ...] = (core.PreNorm, core.PostNorm)
PARTS: dict[str, tuple[type[nn.Module], ...]] = {
    "attention": (core.MultiHeadAttention,),
    "cross_attention": (core.MultiHeadAttention,),
    "feed_forward": (core.FeedForward, core.GatedFeedForward),
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
    attentions = {name: part for name, part in parts.items() if isinstance(part, core.MultiHeadAttention)}
    wide = {name: part for name, part in parts.items() if name not in attentions}
    norms = {f"{name}.norm": wrapper.norm for name, wrapper in wrapped.items()}
    norms |= {name: norm for name, norm in _ends(stack, where) if isinstance(norm, NORMS)}
    pre_norm = same(wrapped, type) is core.PreNorm
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
        "rms_norm": same(norms, type) is core.RMSNorm,
        "ffn_glu": same(wide, type) is core.GatedFeedForward,
        "activation": getattr(specs.Activation, ACTIVATION_NAMES[activation]),
        **_position_options(specs, stack.positions, f"{where}.positions", causal=where == "decoder"),
    }


def _checked(stack: Any, where: str, kind: type[nn.Module]) -> Iterator[tuple[str, Any]]:
    """The parts of all layers in their residual wrappers, each of a kind that is known, by their places."""
    default = type(stack).default_mask
    for mask in stack.masks:
        if mask.parts != default.parts:
            raise refusal(mask, f"{where}.mask", f"what it has there is {default!r}")
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
    expect(positions, (core.Sinusoidal, core.Learned, core.Relative, core.Rotary, core.ALiBi), where)
    if isinstance(positions, core.Relative):
        if positions.causal != causal:
            raise refusal(positions, where, "its decoders look back and its encoders both ways, and not otherwise")
        return {"relative_attention_bias": True}
    if isinstance(positions, core.ALiBi):
        return {"alibi": True}
    if not isinstance(positions, core.Rotary):
        return {}
    options = {"rotary_dim": positions.width, "rotary_interleave": positions.interleaved, "rotary_base": positions.base}
    kinds = specs.attention_spec.RotaryScalingType
    if isinstance(positions.scaling, core.LinearScaling):
        options |= {"rotary_scaling_type": kinds.Linear, "rotary_scaling_factor": positions.scaling.factor}
    elif isinstance(positions.scaling, core.Llama3Scaling):
        options["rotary_scaling_type"] = kinds.Llama3
    elif positions.scaling is not None:
        raise refusal(positions.scaling, f"{where}.scaling", "it knows linear and llama3 scaling")
    return options


def _activation(given: Callable[[Tensor], Tensor], where: str) -> str:
    name = activation_name(given)
    if name is None:
        raise refusal(given, f"{where}.activation", f"it knows {', '.join(ACTIVATION_NAMES)}")
    return name


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


def spec_of(module: nn.Module) -> Any:
    """CTranslate2's own specification of an EncoderDecoder or a DecoderOnly, filled with copies of its weights."""
    specs = library().specs
    if type(module) is core.EncoderDecoder:
        encoder = _encoder(specs, module.encoder, module.source_embedding)
        decoder = _decoder(specs, module.decoder, module.target_embedding, module.head, core.DecoderLayer)
        spec = specs.TransformerSpec(encoder, decoder)
    elif type(module) is core.DecoderOnly:
        decoder = _decoder(specs, module.decoder, module.embedding, module.head, core.EncoderLayer)
        spec = specs.TransformerDecoderModelSpec(decoder)
    else:
        raise ExportError(
            f"CTranslate2 runs an EncoderDecoder or a DecoderOnly that Heedful writes, not a {type(module).__name__}"
        )
    norms = {name: part for name, part in module.named_modules() if isinstance(part, NORMS)}
    spec.config.layer_norm_epsilon = same(norms, lambda norm: float(norm.eps))
    for name, tensor in to_hf(module.state_dict(), WEIGHTS).items():
        if not name.endswith(("/encodings", "/relative_attention_bias")):  # positions have other rows, and places
            _assign(spec, name, tensor)
    for stack in ("encoder", "decoder")[type(module) is core.DecoderOnly :]:
        _finish(getattr(spec, stack), getattr(module, stack))
    return spec


def _encoder(specs: Any, stack: Any, embedding: nn.Module) -> Any:
    expect(stack, (core.Encoder,), "encoder")
    options = options_of(specs, stack, "encoder", core.EncoderLayer)
    if "alibi" in options:
        raise refusal(stack.positions, "encoder.positions", "its encoders have no ALiBi")
    spec = specs.TransformerEncoderSpec(len(stack.layers), **options)
    spec.scale_embeddings = _scale_of(embedding, "source_embedding")
    return spec


def _decoder(specs: Any, stack: Any, embedding: nn.Module, head: Any, kind: type[nn.Module]) -> Any:
    expect(stack, (core.Decoder,), "decoder")
    scale = _scale_of(embedding, "target_embedding" if kind is core.DecoderLayer else "embedding")
    expect(head, (core.VocabularyHead,), "head")
    expect(head.transform, (nn.Identity,), "head.transform")
    options = options_of(specs, stack, "decoder", kind)
    spec = specs.TransformerDecoderSpec(len(stack.layers), with_encoder_attention=kind is core.DecoderLayer, **options)
    spec.scale_embeddings = scale
    if head.scale != 1.0:
        spec.scale_outputs = np.float32(head.scale)
    return spec


def _assign(spec: Any, name: str, tensor: Tensor) -> None:
    """A variable by its name, in which the numbers of lists stand behind an underscore."""
    *scopes, last = name.split("/")
    for scope in scopes:
        stem, _, index = scope.rpartition("_")
        spec = getattr(spec, scope) if hasattr(spec, scope) else getattr(spec, stem)[int(index)]
    setattr(spec, last, _array(tensor))


def _finish(spec: Any, stack: Any) -> None:
    """What is no weight as it is."""
    for theirs, ours in zip(spec.layer, stack.layers, strict=True):
        _place(theirs.self_attention, stack.positions)
        wrapped = {"self_attention": ours.attention, "ffn": ours.feed_forward}
        if isinstance(ours, core.DecoderLayer):
            wrapped["attention"] = ours.cross_attention
            part: Any = ours.cross_attention.part
            weight, bias = _for_every_head(part, part.key_value.weight, part.key_value.bias)
            theirs.attention.linear[1].weight = _array(weight)
            if bias is not None:
                theirs.attention.linear[1].bias = _array(bias)
            vars(theirs.attention).pop("num_heads_kv", None)
        for name, wrapper in wrapped.items():
            _offset(getattr(theirs, name).layer_norm, wrapper.norm)
            if name != "ffn" and wrapper.part.attention.scale is not None:
                getattr(theirs, name).queries_scale = np.float32(wrapper.part.attention.scale)
    if isinstance(stack.positions, core.Sinusoidal | core.Learned):
        spec.position_encodings.encodings = _array(stack.positions.table())
    for name, norm in (("layer_norm", stack.norm), ("layernorm_embedding", stack.entry)):
        if isinstance(norm, NORMS):
            _offset(getattr(spec, name), norm)


def _offset(spec: Any, norm: Any) -> None:
    """Its layer norms have a bias."""
    if isinstance(norm, core.LayerNorm) and norm.bias is None:
        spec.beta = _array(torch.zeros_like(norm.weight))


def _for_every_head(part: core.MultiHeadAttention, weight: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Keys and values of heads that share them, once for each: CTranslate2's cross-attention shares none."""

    def repeated(rows: Tensor) -> Tensor:
        heads = rows.unflatten(0, (2, part.n_kv_heads, part.d_head))
        return heads.repeat_interleave(part.n_heads // part.n_kv_heads, dim=1).flatten(0, 2)

    return repeated(weight), None if bias is None else repeated(bias)


def _place(spec: Any, positions: nn.Module) -> None:
    """What a position scheme says in every layer."""
    if isinstance(positions, core.Relative):
        spec.relative_attention_bias = _array(positions.weight)
        spec.relative_attention_max_distance = np.int32(positions.max_distance)
    if isinstance(positions, core.Rotary) and isinstance(positions.scaling, core.Llama3Scaling):
        scaling = positions.scaling
        spec.rotary_low_freq_factor = np.float32(scaling.low)
        spec.rotary_high_freq_factor = np.float32(scaling.high)
        # Its runtime reads these two, which its specification forgets for this kind.
        vars(spec)["rotary_scaling_factor"] = np.float32(scaling.factor)
        vars(spec)["original_max_position_embeddings"] = np.int32(scaling.original_length)


def _scale_of(embedding: Any, where: str) -> np.float32:
    expect(embedding, (core.TokenEmbedding,), where)
    if embedding.segments is not None:
        raise refusal(embedding.segments, f"{where}.segments", "its models of this kind have no segments")
    return np.float32(embedding.scale)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    """A copy: CTranslate2 quantises in place."""
    return np.array(tensor.detach().float().cpu().numpy(), order="C")
