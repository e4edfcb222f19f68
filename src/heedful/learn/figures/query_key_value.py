"""Figures of chapter 4: one query in numbers, and the shapes from a sentence to its weights."""

from typing import Any

import torch

from ...lab.models import encoder
from ...lens.trace import trace
from ..toy import shifted
from . import figure, rounded
from .generations import HELD_OUT, encode, sentence_pair, trained_model

SENTENCE = ["나는", "트랜스포머", "를", "공부한다"]


@figure("one-query")
def one_query(language: str) -> dict[str, Any]:
    """Return queries, keys and values of a trained translator's encoder self-attention and cross-attention."""
    model, (source, target) = trained_model("transformer"), encode([[HELD_OUT[1]]])
    english, korean = (text.split() for text in sentence_pair([HELD_OUT[1]]))
    with torch.no_grad(), trace(model) as run:
        model(source, shifted(target))
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
