"""Weights of torch's own classes, in and out: nn.MultiheadAttention and nn.Transformer with its parts.

`from_torch` gives the same module in Heedful's parts, `to_torch` the way back; both copy the weights.

Masks are said the other way round there. torch.nn's boolean masks are True where one may NOT attend
(`key_padding_mask=~keep`, `attn_mask=~causal`); here True always means may attend. torch's own
`scaled_dot_product_attention` agrees with Heedful, and so disagrees with torch.nn.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar, cast

import torch
from torch import Tensor, nn

from .. import core

S = TypeVar("S", core.Encoder, core.Decoder)


def from_torch(module: nn.Module) -> nn.Module:
    """The same module in Heedful's parts, with its weights copied. Ours is batch first, whatever theirs was."""
    with torch.no_grad():
        return _converted(module, _FROM).train(module.training)


def to_torch(module: nn.Module) -> nn.Module:
    """The same module as torch.nn has it, batch first, with its weights copied."""
    with torch.no_grad():
        return _converted(module, _TO).train(module.training)


def _converted(module: nn.Module, table: dict[type[nn.Module], Callable[[Any], nn.Module]]) -> nn.Module:
    for kind, convert in table.items():
        if isinstance(module, kind):
            return convert(module)
    known = ", ".join(kind.__name__ for kind in table)
    raise TypeError(f"a {type(module).__name__} has no counterpart; known: {known}")


def _copy(target: Any, source: Any) -> Any:
    """The weight and the bias of a linear layer or a norm."""
    if (target.bias is None) != (source.bias is None):
        raise ValueError("torch.nn's modules have all their biases or none; this one has some")
    target.to(source.weight.device, source.weight.dtype)
    target.weight.copy_(source.weight)
    if target.bias is not None:
        target.bias.copy_(source.bias)
    return target


def _projections(ours: core.MultiHeadAttention, theirs: Any) -> Iterator[tuple[Tensor, Tensor]]:
    """The weights of queries, keys and values, then their biases: views of ours, each with that of theirs."""
    apart = theirs.q_proj_weight, theirs.k_proj_weight, theirs.v_proj_weight
    weights = apart if theirs.in_proj_weight is None else theirs.in_proj_weight.chunk(3)
    yield from zip((ours.query.weight, *ours.key_value.weight.chunk(2)), weights, strict=True)
    if theirs.in_proj_bias is not None:
        biases = ours.query.bias, *ours.key_value.bias.chunk(2)
        yield from zip(biases, theirs.in_proj_bias.chunk(3), strict=True)


def _attention_in(theirs: Any) -> core.MultiHeadAttention:
    if theirs.bias_k is not None or theirs.add_zero_attn:
        raise ValueError("add_bias_kv and add_zero_attn have no counterpart; only plain attention can be converted")
    if theirs.kdim != theirs.vdim:
        raise ValueError(f"keys and values must come from one memory, but kdim={theirs.kdim} and vdim={theirs.vdim}")
    ours = core.MultiHeadAttention(
        theirs.embed_dim,
        theirs.num_heads,
        d_memory=theirs.kdim,
        bias=theirs.in_proj_bias is not None,
        dropout=theirs.dropout,
    ).to(theirs.out_proj.weight.device, theirs.out_proj.weight.dtype)
    for here, there in _projections(ours, theirs):
        here.copy_(there)
    _copy(ours.out, theirs.out_proj)
    return ours


def _attention_out(ours: core.MultiHeadAttention) -> nn.MultiheadAttention:
    d_model, width = ours.query.in_features, ours.query.out_features
    if ours.n_kv_heads != ours.n_heads or width != d_model or ours.attention.scale is not None or ours.normalizes:
        raise ValueError(
            "torch.nn.MultiheadAttention has as many key/value heads as heads, d_head = d_model / n_heads, "
            "the scale 1/√K and no norm of queries and keys; this attention differs"
        )
    d_memory = ours.key_value.in_features
    theirs: Any = nn.MultiheadAttention(
        d_model,
        ours.n_heads,
        dropout=ours.attention.dropout,
        bias=ours.query.bias is not None,
        kdim=d_memory,
        vdim=d_memory,
        batch_first=True,
    ).to(ours.query.weight.device, ours.query.weight.dtype)
    for here, there in _projections(ours, theirs):
        there.copy_(here)
    _copy(theirs.out_proj, ours.out)
    return theirs


def _norm_in(theirs: nn.Module | None) -> core.LayerNorm | None:
    if theirs is None:
        return None
    if not isinstance(theirs, nn.LayerNorm) or theirs.weight is None:
        raise TypeError(f"a LayerNorm with a weight is expected, not {type(theirs).__name__}")
    return _copy(core.LayerNorm(theirs.normalized_shape[0], eps=theirs.eps, bias=theirs.bias is not None), theirs)


def _norm_out(ours: nn.Module) -> nn.LayerNorm | None:
    if isinstance(ours, nn.Identity):
        return None
    if not isinstance(ours, core.LayerNorm):
        raise TypeError(f"torch.nn's layers hold a LayerNorm, not {type(ours).__name__}")
    return _copy(nn.LayerNorm(ours.weight.shape[0], eps=ours.eps, bias=ours.bias is not None), ours)


def _feed_forward_in(theirs: Any) -> core.FeedForward:
    ours = core.FeedForward(
        theirs.linear1.in_features,
        theirs.linear1.out_features,
        activation=theirs.activation,
        bias=theirs.linear1.bias is not None,
        dropout=theirs.dropout.p,
    )
    _copy(ours.wide, theirs.linear1)
    _copy(ours.narrow, theirs.linear2)
    return ours


def _layer_in(kind: Callable[..., nn.Module], theirs: Any) -> nn.Module:
    """torch numbers norms and dropouts by part: norm1 and dropout1 belong to the first."""
    wrap = core.PreNorm if theirs.norm_first else core.PostNorm
    attentions = [theirs.self_attn, *([theirs.multihead_attn] if kind is core.DecoderLayer else [])]
    parts = [*map(_attention_in, attentions), _feed_forward_in(theirs)]
    numbered = [(part, getattr(theirs, f"norm{n}"), getattr(theirs, f"dropout{n}")) for n, part in enumerate(parts, 1)]
    return kind(*(wrap(part, _norm_in(norm) or nn.Identity(), dropout.p) for part, norm, dropout in numbered))


def _layer_out(ours: Any) -> nn.Module:
    """An encoder's or a decoder's layer; torch numbers the norms in the order of the attentions."""
    kind: type[nn.Module] = nn.TransformerEncoderLayer
    attentions = {"self_attn": ours.attention}
    if isinstance(ours, core.DecoderLayer):
        kind, attentions = nn.TransformerDecoderLayer, attentions | {"multihead_attn": ours.cross_attention}
    if isinstance(ours, core.ParallelLayer):
        raise ValueError("torch.nn's layers run their parts one after the other, and not side by side")
    wraps: list[Any] = [*attentions.values(), ours.feed_forward]
    if not all(type(wrap) in (core.PreNorm, core.PostNorm) for wrap in wraps):
        raise ValueError("torch.nn's layers hold each part in a residual with its norm: PreNorm or PostNorm here")
    pre_norm = {isinstance(wrap, core.PreNorm) for wrap in wraps}
    forward = wraps[-1].part
    if len(pre_norm) != 1 or not isinstance(forward, core.FeedForward):
        raise ValueError("torch.nn's layers have plain feed-forwards, and norms all before or all after their parts")
    theirs: Any = kind(
        forward.wide.in_features,
        wraps[0].part.n_heads,
        forward.wide.out_features,
        activation=forward.activation,
        batch_first=True,
        norm_first=pre_norm.pop(),
        bias=forward.wide.bias is not None,
    )
    for name, wrap in attentions.items():
        setattr(theirs, name, _attention_out(wrap.part))
    _copy(theirs.linear1, forward.wide)
    _copy(theirs.linear2, forward.narrow)
    theirs.dropout.p = forward.dropout.p
    for n, wrap in enumerate(wraps, 1):
        norm = _norm_out(wrap.norm)
        if norm is None:
            raise ValueError("torch.nn's layers have a norm around every part")
        setattr(theirs, f"norm{n}", norm)
        getattr(theirs, f"dropout{n}").p = wrap.dropout.p
    return theirs


def _stack_in(kind: type[S], theirs: Any) -> S:
    """Our decoder masks causally by itself; theirs only when a mask is handed in."""
    return kind([from_torch(layer) for layer in theirs.layers], norm=_norm_in(theirs.norm))


def _stack_out(ours: core.Encoder | core.Decoder, kind: Callable[..., Any]) -> nn.Module:
    if type(ours.positions) is not core.Positions or not isinstance(ours.entry, nn.Identity) or ours.dropout.p:
        raise ValueError("torch.nn's stacks have no positions, no norm and no dropout before their layers")
    if [type(part) for part in ours.mask.parts] != [type(part) for part in ours.default_mask.parts]:
        raise ValueError("torch.nn's stacks have no mask of their own; hand it in at every call there")
    wanted = core.EncoderLayer if isinstance(ours, core.Encoder) else core.DecoderLayer
    if not ours.layers or not all(isinstance(layer, wanted) for layer in ours.layers):
        raise ValueError(f"torch.nn's counterpart of this {type(ours).__name__} holds {wanted.__name__}s, at least one")
    layers = nn.ModuleList(to_torch(layer) for layer in ours.layers)
    theirs: nn.Module = kind(layers[0], len(layers), _norm_out(ours.norm))
    theirs.layers = layers
    return theirs


def _transformer_in(theirs: nn.Transformer) -> core.EncoderDecoder:
    return core.EncoderDecoder(
        source_embedding=core.Vectors(),
        encoder=_stack_in(core.Encoder, theirs.encoder),
        target_embedding=core.Vectors(),
        decoder=_stack_in(core.Decoder, theirs.decoder),
        head=core.Hidden(),
    )


def _transformer_out(ours: core.EncoderDecoder) -> nn.Transformer:
    parts = ours.source_embedding, ours.target_embedding, ours.head
    if not all(isinstance(part, core.Vectors | core.Hidden) for part in parts):
        raise ValueError("torch.nn.Transformer has no embeddings and no output layer; convert the encoder and decoder")
    encoder, decoder = to_torch(ours.encoder), to_torch(ours.decoder)
    attention: Any = cast("core.Encoder", ours.encoder).layers[0].attention  # to_torch takes no other encoder
    theirs = nn.Transformer(
        attention.part.query.in_features,
        attention.part.n_heads,
        custom_encoder=nn.Identity(),
        custom_decoder=nn.Identity(),
        batch_first=True,
    )
    # Set afterwards: nn.Transformer starts the weights of a custom encoder anew.
    theirs.encoder, theirs.decoder = encoder, decoder
    return theirs


_FROM: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    nn.MultiheadAttention: _attention_in,
    nn.TransformerEncoderLayer: partial(_layer_in, core.EncoderLayer),
    nn.TransformerDecoderLayer: partial(_layer_in, core.DecoderLayer),
    nn.TransformerEncoder: partial(_stack_in, core.Encoder),
    nn.TransformerDecoder: partial(_stack_in, core.Decoder),
    nn.Transformer: _transformer_in,
}
_TO: dict[type[nn.Module], Callable[[Any], nn.Module]] = {
    core.MultiHeadAttention: _attention_out,
    core.EncoderLayer: _layer_out,
    core.DecoderLayer: _layer_out,
    core.Encoder: lambda ours: _stack_out(ours, partial(nn.TransformerEncoder, enable_nested_tensor=False)),
    core.Decoder: lambda ours: _stack_out(ours, nn.TransformerDecoder),
    core.EncoderDecoder: _transformer_out,
}
