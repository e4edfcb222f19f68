"""Figures of chapter 4: one query in numbers, and the shapes from a sentence to its weights.

Shapes: B batch, H heads, Tq queries, Tk keys, K head width, D d_model.
"""

from typing import Any

import torch
from torch import Tensor, nn

from ...core import MultiHeadAttention, TokenEmbedding, attend, attention_weights
from . import figure, rounded
from .generations import HELD_OUT, encode, sentence_pair, trained_model

SENTENCE = ["나는", "트랜스포머", "를", "공부한다"]


def inputs_of(attention: nn.Module, run: nn.Module, *inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the query, key and value (H, T, K) that reach a DotProduct while a model runs."""
    seen: list[Tensor] = []
    hook = attention.register_forward_hook(lambda part, arguments, output: seen.extend(arguments[:3]))
    with torch.no_grad():
        run(*inputs)
    hook.remove()
    query, key, value = (tensor[0] for tensor in seen[:3])
    return query, key, value


@figure("one-query")
def one_query(language: str) -> dict[str, Any]:
    """Return queries, keys and values of a trained translator's encoder self-attention and cross-attention."""
    model, (source, target) = trained_model("transformer"), encode([[HELD_OUT[1]]])
    english, korean = sentence_pair([HELD_OUT[1]])
    part = model.get_submodule
    blocks = {
        "self": (part("encoder.layers.0.self_attention.sublayer.attention"), [*english, "</s>"]),
        "cross": (part("decoder.layers.0.cross_attention.sublayer.attention"), korean),
    }
    data: dict[str, Any] = {"keys": [*english, "</s>"]}
    for name, (block, queries) in blocks.items():
        query, key, value = inputs_of(block, model, source, target[:, :-1])
        query = query[:, : len(queries)]
        weights = attention_weights(query[None], key[None])[0]
        output = attend(query[None], key[None], value[None])[0]
        parts = {"query": query, "key": key, "value": value, "weights": weights, "output": output}
        data[name] = {"queries": queries, **{part: rounded(numbers) for part, numbers in parts.items()}}
    return data


@figure("attention-shapes")
def attention_shapes(language: str) -> dict[str, Any]:
    """Send four tokens of 512 numbers through one head of 64 with random weights; return all matrices on the way."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        x = nn.functional.layer_norm(TokenEmbedding(len(SENTENCE), 512).look_up(torch.arange(len(SENTENCE))), (512,))
        attention = MultiHeadAttention(512, 8)
    query, key, value = inputs_of(attention.attention, attention, x[None])
    scores = query[0] @ key[0].T
    weights = attention_weights(query[None, :1], key[None, :1])[0, 0]
    matrices = {"x": x, "query": query[0], "key": key[0], "value": value[0], "scores": scores, "weights": weights}
    return {
        "tokens": SENTENCE,
        "matrices": {name: rounded(matrix, 2) for name, matrix in (matrices | {"output": weights @ value[0]}).items()},
    }
