"""Tiny encoders of transformers that read text, with odd sizes. Their weights are made random in published_pairs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import transformers

V, LIMIT = 37, 520


def _bert(kind: type[Any], model: dict[str, Any] | None = None, **changes: Any) -> Any:
    sizes = {"vocab_size": V, "hidden_size": 20, "intermediate_size": 23, "num_hidden_layers": 2}
    heads = {"num_attention_heads": 5, "max_position_embeddings": LIMIT, "type_vocab_size": 3}
    return kind(transformers.BertConfig(**sizes | heads | changes), **model or {})


# Padding is not drawn: transformers counts as positions what is not padding, wherever it stands.
UNDRAWN = {"vocab_size": V + 1, "decoder_vocab_size": V, "pad_token_id": V}


def _roberta(kind: type[Any], model: dict[str, Any] | None = None, **changes: Any) -> Any:
    sizes = {"hidden_size": 20, "intermediate_size": 23, "num_hidden_layers": 3, "num_attention_heads": 5}
    rows = {"max_position_embeddings": V + 1 + LIMIT, "type_vocab_size": 2}
    return kind(kind.config_class(**sizes | rows | UNDRAWN | changes), **model or {})


def _distilbert(kind: type[Any], **changes: Any) -> Any:
    sizes = {"vocab_size": V, "dim": 20, "hidden_dim": 23, "n_layers": 3, "n_heads": 5}
    return kind(transformers.DistilBertConfig(max_position_embeddings=LIMIT, **sizes | changes))


def _albert(kind: type[Any], model: dict[str, Any] | None = None, **changes: Any) -> Any:
    sizes = {"vocab_size": V, "embedding_size": 14, "hidden_size": 20, "intermediate_size": 23, "num_hidden_layers": 3}
    heads = {"num_attention_heads": 5, "max_position_embeddings": LIMIT, "type_vocab_size": 3}
    return kind(transformers.AlbertConfig(**sizes | heads | changes), **model or {})


BARE: dict[str, Any] = {"add_pooling_layer": False}  # transformers is told this besides the config
READERS: dict[str, Callable[[], Any]] = {
    "bert": lambda: _bert(transformers.BertForMaskedLM),
    "bert classes": lambda: _bert(transformers.BertForSequenceClassification, num_labels=3, layer_norm_eps=1e-3),
    "bert hidden": lambda: _bert(transformers.BertModel, BARE, hidden_act="gelu_new"),
    "bert pooled": lambda: _bert(transformers.BertModel),
    "roberta": lambda: _roberta(transformers.RobertaForMaskedLM, hidden_act="relu"),
    "roberta classes": lambda: _roberta(transformers.RobertaForSequenceClassification, num_labels=3),
    "roberta hidden": lambda: _roberta(transformers.RobertaModel, BARE, type_vocab_size=1, layer_norm_eps=1e-3),
    "roberta pooled": lambda: _roberta(transformers.RobertaModel),
    "xlm-roberta": lambda: _roberta(transformers.XLMRobertaForMaskedLM),
    "xlm-roberta classes": lambda: _roberta(transformers.XLMRobertaForSequenceClassification, num_labels=3),
    "distilbert": lambda: _distilbert(transformers.DistilBertForMaskedLM),
    "distilbert classes": lambda: _distilbert(transformers.DistilBertForSequenceClassification, num_labels=3),
    "distilbert hidden": lambda: _distilbert(transformers.DistilBertModel, activation="relu"),
    "albert": lambda: _albert(transformers.AlbertForMaskedLM),
    "albert of three groups": lambda: _albert(
        transformers.AlbertForMaskedLM, num_hidden_layers=6, num_hidden_groups=3, layer_norm_eps=1e-3
    ),
    "albert classes": lambda: _albert(
        transformers.AlbertForSequenceClassification, num_labels=3, num_hidden_layers=4, num_hidden_groups=2
    ),
    "albert hidden": lambda: _albert(transformers.AlbertModel, BARE, hidden_act="gelu"),
    "albert pooled": lambda: _albert(transformers.AlbertModel),
}
for _name, _kind, _make in (
    ("bert", "Bert", _bert),
    ("roberta", "Roberta", _roberta),
    ("xlm-roberta", "XLMRoberta", _roberta),
    ("distilbert", "DistilBert", _distilbert),
    ("albert", "Albert", _albert),
):
    _span, _tokens = (
        getattr(transformers, f"{_kind}For{_task}") for _task in ("QuestionAnswering", "TokenClassification")
    )
    READERS[f"{_name} span"] = partial(_make, _span)
    READERS[f"{_name} token classes"] = partial(_make, _tokens, num_labels=5)
# What a config.json does not say, and what transformers is told besides.
CHANGES: dict[str, dict[str, Any]] = {name: {"head": "pooled"} for name in READERS if name.endswith(" pooled")}
PARTS: dict[str, dict[str, Any]] = dict.fromkeys(("bert hidden", "roberta hidden", "albert hidden"), BARE)
