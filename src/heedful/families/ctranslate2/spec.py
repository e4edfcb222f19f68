"""Converts a module to a CTranslate2 specification filled with copies of its weights.

`describe` reads the module's config. What the config holds and CTranslate2 does not support is an ExportError.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from ... import core
from ...errors import HeedfulError, MissingDependencyError
from ..composed import ComposedConfig, PositionsPart, StackPart
from ..description import describe
from ..weight_map import to_hf
from .loader import WEIGHTS

ACTIVATION_NAMES = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH", "tanh": "Tanh"}


class ExportError(HeedfulError, ValueError):
    """A model that cannot be exported; the message names the part, its place and the reason."""


def library() -> Any:
    """Import CTranslate2, or raise MissingDependencyError with the command that installs it."""
    try:
        import ctranslate2
    except ImportError:
        raise MissingDependencyError(
            "CTranslate2 is not installed; install it with: pip install 'heedful[ctranslate2]'"
        ) from None
    return ctranslate2


def spec_of(module: nn.Module) -> Any:
    """Return CTranslate2's specification of an EncoderDecoder or a DecoderOnly, filled with copies of its weights."""
    specs = library().specs
    try:
        config = describe(module)
    except HeedfulError as error:
        raise ExportError(f"CTranslate2 cannot run this model: {error}") from None
    stacks = {name: stack for name in ("encoder", "decoder") if (stack := getattr(config, name)) is not None}
    for name, stack in stacks.items():
        _check_stack(name, stack)
    if len(epsilons := {norm.eps for stack in stacks.values() for norm in stack.norms}) > 1:
        raise ExportError(f"CTranslate2 has one eps for all norms, but this model has {sorted(epsilons)}")

    spec = _empty_spec(specs, config)
    spec.config.layer_norm_epsilon = epsilons.pop()
    for name, tensor in to_hf(module.state_dict(), WEIGHTS).items():
        if not name.endswith(("/encodings", "/relative_attention_bias")):  # positions are written per stack
            _assign(spec, name, tensor)
    for name, stack in stacks.items():
        _write_stack(getattr(spec, name), stack, getattr(module, name))
    return spec


def _empty_spec(specs: Any, config: ComposedConfig) -> Any:
    decoder = specs.TransformerDecoderSpec(
        config.decoder.n_layers, with_encoder_attention=config.encoder is not None, **_options(specs, config.decoder)
    )
    decoder.scale_embeddings = np.float32(config.decoder.embedding_scale)
    if config.head_scale != 1.0:
        decoder.scale_outputs = np.float32(config.head_scale)
    if config.encoder is None:
        return specs.TransformerDecoderModelSpec(decoder)
    encoder = specs.TransformerEncoderSpec(config.encoder.n_layers, **_options(specs, config.encoder))
    encoder.scale_embeddings = np.float32(config.encoder.embedding_scale)
    return specs.TransformerSpec(encoder, decoder)


def _check_stack(name: str, stack: StackPart) -> None:
    """Raise for parts that a config can describe and CTranslate2 cannot run."""
    attention, cross, positions = stack.attention, stack.cross_attention, stack.positions.kind
    if stack.window is not None:
        raise _unsupported(f"{name}.mask", f"a window of {stack.window}", "it supports no sliding window here")
    if positions == "none" or (positions == "alibi" and name == "encoder"):
        raise _unsupported(f"{name}.positions", positions, f"its {name}s have no such position scheme")
    if stack.order == "post" and stack.final_norm is not None:
        raise _unsupported(f"{name}.norm", stack.final_norm.kind, "no norm follows its post-norm layers")
    if len(kinds := {norm.kind for norm in stack.norms}) > 1:
        raise _unsupported(f"the norms of the {name}", " and ".join(sorted(kinds)), "all norms must be of one kind")
    if cross is not None:
        for field in ("n_heads", "n_kv_heads", "d_head"):
            value, other = getattr(attention, field), getattr(cross, field)
            if value != other:
                place = f"{name}.layers.*.cross_attention.{field}"
                raise _unsupported(place, other, f"self-attention has {value}, and both must agree")


def _unsupported(place: str, value: object, reason: str) -> ExportError:
    return ExportError(f"CTranslate2 has no place for {place}, {value}: {reason}")


def _options(specs: Any, stack: StackPart) -> dict[str, Any]:
    attention = stack.attention
    return {
        "num_heads": attention.n_heads,
        "num_heads_kv": None if attention.n_kv_heads == attention.n_heads else attention.n_kv_heads,
        "head_dim": attention.d_head,
        "pre_norm": stack.order == "pre",
        "no_final_norm": stack.final_norm is None,
        "layernorm_embedding": stack.entry_norm is not None,
        "rms_norm": stack.norm.kind == "rms",
        "ffn_glu": stack.feed_forward.kind == "gated",
        "activation": getattr(specs.Activation, ACTIVATION_NAMES[stack.feed_forward.activation]),
        **_position_options(specs, stack.positions),
    }


def _position_options(specs: Any, positions: PositionsPart) -> dict[str, Any]:
    if positions.kind == "relative":
        return {"relative_attention_bias": True}
    if positions.kind == "alibi":
        return {"alibi": True}
    if positions.kind != "rotary":
        return {}
    options = {"rotary_dim": positions.width, "rotary_interleave": positions.interleaved, "rotary_base": positions.base}
    scaling, kinds = positions.scaling, specs.attention_spec.RotaryScalingType
    if scaling is None:
        return options
    if scaling.kind == "linear":
        return options | {"rotary_scaling_type": kinds.Linear, "rotary_scaling_factor": scaling.factor}
    return options | {"rotary_scaling_type": kinds.Llama3}


def _assign(spec: Any, name: str, tensor: Tensor) -> None:
    """Set a variable by its name, in which an underscore and a number stand for the item of a list."""
    *scopes, last = name.split("/")
    for scope in scopes:
        stem, _, index = scope.rpartition("_")
        spec = getattr(spec, scope) if hasattr(spec, scope) else getattr(spec, stem)[int(index)]
    setattr(spec, last, _array(tensor))


def _write_stack(spec: Any, stack: StackPart, module: Any) -> None:
    """Write what is not a copied weight: positions, scales, missing biases, and repeated keys and values."""
    norms = [getattr(spec, name) for name in ("layer_norm", "layernorm_embedding") if hasattr(spec, name)]
    for layer_spec, layer in zip(spec.layer, module.layers, strict=True):
        _write_positions(layer_spec.self_attention, stack.positions, module.positions)
        attentions = [(layer_spec.self_attention, stack.attention.scale)]
        if stack.cross_attention is not None:
            attentions.append((layer_spec.attention, stack.cross_attention.scale))
            _write_keys_and_values(layer_spec.attention, layer.cross_attention.sublayer)
        for attention_spec, scale in attentions:
            if scale is not None:
                attention_spec.queries_scale = np.float32(scale)
        norms += [attention_spec.layer_norm for attention_spec, _ in attentions] + [layer_spec.ffn.layer_norm]
    if stack.positions.kind in ("sinusoidal", "learned"):
        spec.position_encodings.encodings = _array(module.positions.table())
    if stack.norm.kind == "layer":
        for norm in norms:
            if norm.beta is None:  # its layer norms always have a bias
                norm.beta = np.zeros_like(norm.gamma)


def _write_keys_and_values(spec: Any, attention: core.MultiHeadAttention) -> None:
    """Repeat keys and values that heads share, once for each head: CTranslate2's cross-attention shares none."""

    def repeated(rows: Tensor) -> NDArray[np.float32]:
        heads = rows.unflatten(0, (2, attention.n_kv_heads, attention.d_head))
        return _array(heads.repeat_interleave(attention.n_heads // attention.n_kv_heads, dim=1).flatten(0, 2))

    spec.linear[1].weight = repeated(attention.kv_proj.weight)
    if attention.kv_proj.bias is not None:
        spec.linear[1].bias = repeated(attention.kv_proj.bias)
    vars(spec).pop("num_heads_kv", None)


def _write_positions(spec: Any, positions: PositionsPart, module: Any) -> None:
    """Write the settings of a position scheme that every layer repeats."""
    scaling = positions.scaling
    if positions.kind == "relative":
        spec.relative_attention_bias = _array(module.weight)
        spec.relative_attention_max_distance = np.int32(module.max_distance)
    elif scaling is not None and scaling.kind == "llama3":
        spec.rotary_low_freq_factor = np.float32(scaling.low)
        spec.rotary_high_freq_factor = np.float32(scaling.high)
        # CTranslate2's runtime reads these two, but its specification lacks them for this kind.
        vars(spec)["rotary_scaling_factor"] = np.float32(scaling.factor)
        vars(spec)["original_max_position_embeddings"] = np.int32(scaling.original_length)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    """Copy a tensor, because CTranslate2 quantizes in place."""
    return np.array(tensor.detach().float().cpu().numpy(), order="C")
