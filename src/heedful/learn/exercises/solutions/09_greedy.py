"""The greedy loop."""

import torch
from torch import Tensor

from heedful.core import EncoderDecoder


def greedy(model: EncoderDecoder, memory: Tensor, start: int, end: int, max_new_tokens: int) -> list[int]:
    """memory (1, S, D) → ids, len ≤ max_new_tokens"""
    tokens: list[int] = []
    cache, token = model.new_cache(), start
    while len(tokens) < max_new_tokens:
        logits = model.decode(torch.tensor([[token]]), memory, cache=cache)
        token = int(logits[0, -1].argmax())
        if token == end:
            break
        tokens.append(token)
    return tokens
