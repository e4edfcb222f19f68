"""Converts nn.MultiheadAttention and nn.Transformer with its parts to Heedful's parts and back.

Masks have the opposite meaning in torch.nn: its boolean masks are True where a query may NOT attend
(`key_padding_mask=~keep`, `attn_mask=~causal`). In Heedful, as in torch's `scaled_dot_product_attention`, True always
means "may attend".
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from .. import core

S = TypeVar("S", core.Encoder, core.Decoder)


def from_torch(module: nn.Module) -> nn.Module:
    """Return the same module in Heedful's parts, batch first, with its weights copied."""
    with torch.no_grad():
        return _converted(module, _FROM_TORCH).train(module.training)


def to_torch(module: nn.Module) -> nn.Module:
    """Return the same module in torch.nn's classes, batch first, with its weights copied."""
    with torch.no_grad():
        return _converted(module, _TO_TORCH).train(module.training)


def _converted(module: nn.Module, table: dict[type[nn.Module], Callable[[Any], nn.Module]]) -> nn.Module:
    for kind, convert in table.items():
        if isinstance(module, kind):
            return convert(module)
    names = ", ".join(kind.__name__ for kind in table)
    raise TypeError(f"a {type(module).__name__} cannot be converted; these can: {names}")


def _copy(target: Any, source: Any) -> Any:
    """Copy the weight and the bias of a linear layer or a norm."""
    if (target.bias is None) != (source.bias is None):
        raise ValueError("torch.nn's modules have all biases or none; this one has only some")
    target.to(source.weight.device, source.weight.dtype)
    target.weight.copy_(source.weight)
    if target.bias is not None:
        target.bias.copy_(source.bias)
    return target


def _projections(module: core.MultiHeadAttention, torch_module: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield pairs of matching views: the weights of queries, keys and values, then their biases."""
    separate = torch_module.q_proj_weight, torch_module.k_proj_weight, torch_module.v_proj_weight
    weights = separate if torch_module.in_proj_weight is None else torch_module.in_proj_weight.chunk(3)
    yield from zip((module.q_proj.weight, *module.kv_proj.weight.chunk(2)), weights, strict=True)
    if torch_module.in_proj_bias is not None:
        biases = module.q_proj.bias, *module.kv_proj.bias.chunk(2)
        yield from zip(biases, torch_module.in_proj_bias.chunk(3), strict=True)


def _attention_from_torch(torch_module: Any) -> core.MultiHeadAttention:
    if torch_module.bias_k is not None or torch_module.add_zero_attn:
        raise ValueError("add_bias_kv and add_zero_attn cannot be converted; only plain attention can be converted")
    kdim, vdim = torch_module.kdim, torch_module.vdim
    if kdim != vdim:
        raise ValueError(f"keys and values must come from one memory, but kdim={kdim} and vdim={vdim}")
    module = core.MultiHeadAttention(
        torch_module.embed_dim,
        torch_module.num_heads,
        d_memory=kdim,
        bias=torch_module.in_proj_bias is not None,
        dropout=torch_module.dropout,
    ).to(torch_module.out_proj.weight.device, torch_module.out_proj.weight.dtype)
    for target, source in _projections(module, torch_module):
        target.copy_(source)
    _copy(module.out_proj, torch_module.out_proj)
    return module


def _attention_to_torch(module: core.MultiHeadAttention) -> nn.MultiheadAttention:
    d_model, width = module.q_proj.in_features, module.q_proj.out_features
    if (
        module.n_kv_heads != module.n_heads
        or width != d_model
        or module.attention.scale is not None
        or module.normalizes
    ):
        raise ValueError(
            "torch.nn.MultiheadAttention has as many key/value heads as heads, d_head = d_model / n_heads, "
            "the scale 1/√K and no norm of queries and keys; this attention differs"
        )
    d_memory = module.kv_proj.in_features
    torch_module: Any = nn.MultiheadAttention(
        d_model,
        module.n_heads,
        dropout=module.attention.dropout,
        bias=module.q_proj.bias is not None,
        kdim=d_memory,
        vdim=d_memory,
        batch_first=True,
    ).to(module.q_proj.weight.device, module.q_proj.weight.dtype)
    for source, target in _projections(module, torch_module):
        target.copy_(source)
    _copy(torch_module.out_proj, module.out_proj)
    return torch_module


def _norm_from_torch(torch_module: nn.Module | None) -> core.LayerNorm | None:
    if torch_module is None:
        return None
    if not isinstance(torch_module, nn.LayerNorm) or torch_module.weight is None:
        raise TypeError(f"a LayerNorm with a weight is expected, not {type(torch_module).__name__}")
    width, has_bias = torch_module.normalized_shape[0], torch_module.bias is not None
    return _copy(core.LayerNorm(width, eps=torch_module.eps, bias=has_bias), torch_module)


def _norm_to_torch(module: nn.Module) -> nn.LayerNorm | None:
    if isinstance(module, nn.Identity):
        return None
    if not isinstance(module, core.LayerNorm):
        raise TypeError(f"torch.nn's layers have a LayerNorm, not {type(module).__name__}")
    return _copy(nn.LayerNorm(module.weight.shape[0], eps=module.eps, bias=module.bias is not None), module)


def _feed_forward_from_torch(torch_module: Any) -> core.FeedForward:
    module = core.FeedForward(
        torch_module.linear1.in_features,
        torch_module.linear1.out_features,
        activation=torch_module.activation,
        bias=torch_module.linear1.bias is not None,
        dropout=torch_module.dropout.p,
    )
    _copy(module.up_proj, torch_module.linear1)
    _copy(module.down_proj, torch_module.linear2)
    return module


def _layer_from_torch(kind: Callable[..., nn.Module], torch_module: Any) -> nn.Module:
    """Convert a layer; torch numbers norms and dropouts by part, from 1."""
    wrap = core.PreNorm if torch_module.norm_first else core.PostNorm
    attentions = [torch_module.self_attn, *([torch_module.multihead_attn] if kind is core.DecoderLayer else [])]
    parts = [*map(_attention_from_torch, attentions), _feed_forward_from_torch(torch_module)]
    numbered = [
        (part, getattr(torch_module, f"norm{n}"), getattr(torch_module, f"dropout{n}"))
        for n, part in enumerate(parts, 1)
    ]
    return kind(*(wrap(part, _norm_from_torch(norm) or nn.Identity(), dropout.p) for part, norm, dropout in numbered))


def _layer_to_torch(module: Any) -> nn.Module:
    """Convert a layer; torch numbers norms and dropouts by part, from 1."""
    kind: type[nn.Module] = nn.TransformerEncoderLayer
    attentions = {"self_attn": module.self_attention}
    if isinstance(module, core.DecoderLayer):
        kind, attentions = nn.TransformerDecoderLayer, attentions | {"multihead_attn": module.cross_attention}
    if isinstance(module, core.ParallelLayer):
        raise ValueError("torch.nn's layers run their parts in sequence, not in parallel")
    wraps: list[Any] = [*attentions.values(), module.feed_forward]
    if not all(type(wrap) in (core.PreNorm, core.PostNorm) for wrap in wraps):
        raise ValueError("torch.nn's layers have each part in a residual with its norm: PreNorm or PostNorm here")
    pre_norm = {isinstance(wrap, core.PreNorm) for wrap in wraps}
    forward = wraps[-1].sublayer
    if len(pre_norm) != 1 or not isinstance(forward, core.FeedForward):
        raise ValueError("torch.nn's layers have plain feed-forwards, and norms all before or all after their parts")
    torch_module: Any = kind(
        forward.up_proj.in_features,
        wraps[0].sublayer.n_heads,
        forward.up_proj.out_features,
        activation=forward.activation,
        batch_first=True,
        norm_first=pre_norm.pop(),
        bias=forward.up_proj.bias is not None,
    )
    for name, wrap in attentions.items():
        setattr(torch_module, name, _attention_to_torch(wrap.sublayer))
    _copy(torch_module.linear1, forward.up_proj)
    _copy(torch_module.linear2, forward.down_proj)
    torch_module.dropout.p = forward.dropout.p
    for n, wrap in enumerate(wraps, 1):
        norm = _norm_to_torch(wrap.norm)
        if norm is None:
            raise ValueError("torch.nn's layers have a norm around every part")
        setattr(torch_module, f"norm{n}", norm)
        getattr(torch_module, f"dropout{n}").p = wrap.dropout.p
    return torch_module


def _stack_from_torch(kind: type[S], torch_module: Any) -> S:
    """Convert a stack; Heedful's decoder is causal by default, torch's only with a mask."""
    return kind([from_torch(layer) for layer in torch_module.layers], norm=_norm_from_torch(torch_module.norm))


def _stack_to_torch(module: core.Encoder | core.Decoder, kind: Callable[..., Any]) -> nn.Module:
    if type(module.positions) is not core.Positions or not isinstance(module.entry, nn.Identity) or module.dropout.p:
        raise ValueError("torch.nn's stacks have no positions, no norm and no dropout before their layers")
    if [type(part) for part in module.mask.parts] != [type(part) for part in module.default_mask.parts]:
        raise ValueError("torch.nn's stacks store no mask; pass it to every call instead")
    wanted = core.EncoderLayer if isinstance(module, core.Encoder) else core.DecoderLayer
    if not module.layers or not all(isinstance(layer, wanted) for layer in module.layers):
        raise ValueError(
            f"torch.nn's counterpart of this {type(module).__name__} holds {wanted.__name__}s, at least one"
        )
    layers = nn.ModuleList(to_torch(layer) for layer in module.layers)
    torch_module: nn.Module = kind(layers[0], len(layers), _norm_to_torch(module.norm))
    torch_module.layers = layers
    return torch_module


def _transformer_from_torch(torch_module: nn.Transformer) -> core.EncoderDecoder:
    return core.EncoderDecoder(
        source_embedding=core.Vectors(),
        encoder=_stack_from_torch(core.Encoder, torch_module.encoder),
        target_embedding=core.Vectors(),
        decoder=_stack_from_torch(core.Decoder, torch_module.decoder),
        head=core.Hidden(),
    )


def _transformer_to_torch(module: core.EncoderDecoder) -> nn.Transformer:
    parts = module.source_embedding, module.target_embedding, module.head
    if not all(isinstance(part, core.Vectors | core.Hidden) for part in parts):
        raise ValueError("torch.nn.Transformer has no embeddings and no output layer; convert the encoder and decoder")
    encoder, decoder = to_torch(module.encoder), to_torch(module.decoder)
    attention: Any = cast("core.Encoder", module.encoder).layers[0].self_attention  # to_torch takes no other encoder
    torch_module = nn.Transformer(
        attention.sublayer.q_proj.in_features,
        attention.sublayer.n_heads,
        custom_encoder=nn.Identity(),
        custom_decoder=nn.Identity(),
        batch_first=True,
    )
    # Set afterwards, because nn.Transformer initializes the weights of a custom encoder.
    torch_module.encoder, torch_module.decoder = encoder, decoder
    return torch_module


_FROM_TORCH: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    nn.MultiheadAttention: _attention_from_torch,
    nn.TransformerEncoderLayer: partial(_layer_from_torch, core.EncoderLayer),
    nn.TransformerDecoderLayer: partial(_layer_from_torch, core.DecoderLayer),
    nn.TransformerEncoder: partial(_stack_from_torch, core.Encoder),
    nn.TransformerDecoder: partial(_stack_from_torch, core.Decoder),
    nn.Transformer: _transformer_from_torch,
}
_TO_TORCH: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    core.MultiHeadAttention: _attention_to_torch,
    core.EncoderLayer: _layer_to_torch,
    core.DecoderLayer: _layer_to_torch,
    core.Encoder: lambda module: _stack_to_torch(module, partial(nn.TransformerEncoder, enable_nested_tensor=False)),
    core.Decoder: lambda module: _stack_to_torch(module, nn.TransformerDecoder),
    core.EncoderDecoder: _transformer_to_torch,
}
