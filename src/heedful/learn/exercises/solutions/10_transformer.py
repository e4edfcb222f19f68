"""The Transformer with the weights of torch.nn."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def key_padding_mask(keep: Tensor) -> Tensor:
    """(B, T) → (B, T)"""
    return ~keep


def attention(part: nn.MultiheadAttention, x: Tensor, memory: Tensor, keep: Tensor) -> Tensor:
    """x (B, Tq, D), memory (B, Tk, D), keep (B, 1, 1 | Tq, Tk) → (B, Tq, D)"""
    matrices = zip((x, memory, memory), part.in_proj_weight.chunk(3), part.in_proj_bias.chunk(3), strict=True)
    q, k, v = (F.linear(i, w, b).unflatten(-1, (part.num_heads, -1)).transpose(1, 2) for i, w, b in matrices)
    scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(~keep, -torch.inf)
    return part.out_proj((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2))


def encoder_layer(part: nn.TransformerEncoderLayer, x: Tensor, keep: Tensor) -> Tensor:
    """(B, S, D) → (B, S, D)"""
    x = part.norm1(x + attention(part.self_attn, x, x, keep))
    return part.norm2(x + part.linear2(part.linear1(x).relu()))


def decoder_layer(
    part: nn.TransformerDecoderLayer, x: Tensor, memory: Tensor, keep: Tensor, memory_keep: Tensor
) -> Tensor:
    """(B, T, D) → (B, T, D)"""
    x = part.norm1(x + attention(part.self_attn, x, x, keep))
    x = part.norm2(x + attention(part.multihead_attn, x, memory, memory_keep))
    return part.norm3(x + part.linear2(part.linear1(x).relu()))


def transformer(part: nn.Transformer, source: Tensor, target: Tensor, source_keep: Tensor) -> Tensor:
    """source (B, S, D), target (B, T, D), source_keep (B, S) → (B, T, D)"""
    keep, length = source_keep[:, None, None], target.shape[1]
    causal = torch.ones(length, length, dtype=torch.bool).tril()
    for layer in part.encoder.layers:
        source = encoder_layer(layer, source, keep)
    memory = part.encoder.norm(source)
    for layer in part.decoder.layers:
        target = decoder_layer(layer, target, memory, causal, keep)
    return part.decoder.norm(target)
