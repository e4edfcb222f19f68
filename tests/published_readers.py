"""Tiny encoders of transformers that read text, with odd sizes. Their weights are made random in published_pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import transformers

V, LIMIT = 37, 80


def _bert(kind: type[Any], model: dict[str, Any] | None = None, **changes: Any) -> Any:
    sizes = {"vocab_size": V, "hidden_size": 20, "intermediate_size": 23, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 5, "max_position_embeddings": LIMIT, "type_vocab_size": 3}
    return kind(transformers.BertConfig(**sizes | heads | changes), **model or {})


READERS: dict[str, Callable[[], Any]] = {
    "bert": lambda: _bert(transformers.BertForMaskedLM),
    "bert classes": lambda: _bert(transformers.BertForSequenceClassification, num_labels=3, layer_norm_eps=1e-3),
    "bert hidden": lambda: _bert(transformers.BertModel, {"add_pooling_layer": False}, hidden_act="gelu_new"),
    "bert pooled": lambda: _bert(transformers.BertModel),
}
CHANGES: dict[str, dict[str, Any]] = {"bert pooled": {"head": "pooled"}}  # what a config.json does not say
PARTS: dict[str, dict[str, Any]] = {"bert hidden": {"add_pooling_layer": False}}  # what transformers is told besides
