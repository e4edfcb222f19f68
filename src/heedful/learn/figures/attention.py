"""Figures of attention: one query in numbers, the shapes from a sentence to its weights, and what scaling does."""

from typing import Any

import torch

from ...core import attention_weights
from ...lab.measures import random_attention, softmax_statistics
from ...lab.models import encoder, shifted
from ...lens.trace import trace
from ..toy import START
from . import figure, rounded
from .generations import HELD_OUT, encode, sentence_pair, trained_model

SENTENCE = ["나는", "트랜스포머", "를", "공부한다"]
WIDTHS = [2**n for n in range(11)]  # of queries and keys: d_k from 1 to 1,024
DIVISORS = {"none": 0.0, "root": 0.5, "full": 1.0}  # the power of d_k that the scores are divided by
N_QUERIES, N_KEYS = 512, 8


@figure("one-query")
def one_query(language: str) -> dict[str, Any]:
    """Return queries, keys and values of a trained translator's encoder self-attention and cross-attention."""
    model, (source, target) = trained_model("transformer"), encode([[HELD_OUT[1]]])
    english, korean = (text.split() for text in sentence_pair([HELD_OUT[1]]))
    with torch.no_grad(), trace(model) as run:
        model(source, shifted(target, START))
    data: dict[str, Any] = {"keys": [*english, "</s>"]}
    for look, part in zip(run.looks, run.numbers.values(), strict=True):
        if (look.stack, look.kind) != ("decoder", "self"):
            queries = data["keys"] if look.kind == "self" else korean
            of_queries = {"query": part.query, "weights": look.weights[0], "output": part.mixed}
            data[look.kind] = {"queries": queries, "key": rounded(part.key), "value": rounded(part.value)}
            data[look.kind] |= {name: rounded(rows[:, : len(queries)]) for name, rows in of_queries.items()}
    return data


@figure("attention-shapes")
@torch.no_grad()
def attention_shapes(language: str) -> dict[str, Any]:
    """Send four tokens of 512 numbers through one head of 64 with random weights; return all matrices on the way."""
    layer = encoder(512, n_heads=8).eval()
    with trace(layer) as run:
        layer(torch.randn(1, len(SENTENCE), 512))
    part, weights = run.numbers[0], run.looks[0].weights[0, 0]
    matrices = {"x": part.x, "query": part.query[0], "key": part.key[0], "value": part.value[0]}
    matrices |= {"scores": part.query[0] @ part.key[0].T, "weights": weights, "output": part.mixed[0]}
    return {"tokens": SENTENCE, "matrices": {name: rounded(matrix, 2) for name, matrix in matrices.items()}}


def measure(width: int, power: float) -> dict[str, Any]:
    """Return means over all queries, and the weights of the first one, with scores divided by width^power."""
    query, key, direction = random_attention(torch.Generator().manual_seed(0), N_QUERIES, N_KEYS)
    query, key, scale = query[..., :width], key[..., :width], width**-power
    statistics = softmax_statistics(query, key, direction, scale)
    weights = attention_weights(query[:, :, :1], key, scale=scale).flatten()
    return {name: round(value, 4) for name, value in statistics.items()} | {"weights": rounded(weights)}


@figure("scaled-scores")
def scaled_scores(language: str) -> dict[str, Any]:
    """Return, for each divisor, the measures at each width."""
    measures = {name: [measure(width, power) for width in WIDTHS] for name, power in DIVISORS.items()}
    return {"widths": WIDTHS, "keys": N_KEYS, "queries": N_QUERIES, "measures": measures}
