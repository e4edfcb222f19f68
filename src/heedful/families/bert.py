"""BERT: an encoder alone, post-norm, learned positions and segments; what it says depends on its head."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from torch import nn

from ..config import FamilyConfig
from ..core import (
    ClassHead,
    Encoder,
    EncoderLayer,
    EncoderOnly,
    FeedForward,
    FirstToken,
    Hidden,
    LayerNorm,
    Learned,
    Mean,
    MultiHeadAttention,
    PoolingHead,
    PostNorm,
    TokenEmbedding,
    Transform,
    VocabularyHead,
)
from ..core.init import linear, start_normal
from .names import Names, link
from .published import ACTIVATIONS, Given, Published, Setting, same, words
from .registry import Family, register


@dataclass(frozen=True, kw_only=True)
class BertConfig(FamilyConfig):
    """The defaults are the base model.

    `head`: "words" gives logits over the vocabulary, "classes" logits over `n_classes`, "pooled" the first token's
    vector through a dense layer, "mean" the mean of all vectors, "hidden" the vectors.
    """

    family: ClassVar[str] = "bert"

    vocab_size: int = 30522
    d_model: int = 768
    n_heads: int = 12
    d_ff: int = 3072
    n_layers: int = 12
    n_segments: int = 2
    max_length: int = 512
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "gelu"
    head: Literal["words", "classes", "pooled", "mean", "hidden"] = "words"
    n_classes: int = 2
    norm_eps: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1

    def check(self) -> None:
        self.require_positive("vocab_size", "d_model", "n_heads", "d_ff", "n_layers", "n_segments", "max_length")
        self.require_positive("n_classes")
        self.require_share("dropout", "attention_dropout")
        self.require(
            self.d_model % self.n_heads == 0,
            f"d_model={self.d_model} is not divisible by n_heads={self.n_heads}; change one",
        )


def _norm(config: BertConfig) -> LayerNorm:
    return LayerNorm(config.d_model, eps=config.norm_eps)


def _words(config: BertConfig, embedding: TokenEmbedding) -> nn.Module:
    width = config.d_model
    transform = Transform(width, width, activation=config.activation, norm=_norm(config))
    return VocabularyHead(width, config.vocab_size, table=embedding, bias=True, transform=transform)


def _pooled(config: BertConfig, embedding: TokenEmbedding) -> nn.Module:
    return PoolingHead(FirstToken(), linear(config.d_model, config.d_model), "tanh")


def _classes(config: BertConfig, embedding: TokenEmbedding) -> nn.Module:
    return ClassHead(_pooled(config, embedding), config.d_model, config.n_classes, dropout=config.dropout)


HEADS: dict[str, Callable[[BertConfig, TokenEmbedding], nn.Module]] = {
    "words": _words,
    "classes": _classes,
    "pooled": _pooled,
    "mean": lambda config, embedding: PoolingHead(Mean()),
    "hidden": lambda config, embedding: Hidden(),
}


def build(config: BertConfig) -> EncoderOnly:
    """Put the parts together."""
    d_model, dropout = config.d_model, config.dropout

    def layer() -> nn.Module:
        attention = MultiHeadAttention(d_model, config.n_heads, dropout=config.attention_dropout)
        feed_forward = FeedForward(d_model, config.d_ff, activation=config.activation)
        return EncoderLayer(PostNorm(attention, _norm(config), dropout), PostNorm(feed_forward, _norm(config), dropout))

    embedding = TokenEmbedding(config.vocab_size, d_model, scale=False, n_segments=config.n_segments)
    encoder = Encoder(
        [layer() for _ in range(config.n_layers)],
        positions=Learned(config.max_length, d_model),
        entry=_norm(config),
        dropout=dropout,
    )
    head = HEADS[config.head](config, embedding)
    return start_normal(EncoderOnly(embedding=embedding, encoder=encoder, head=head), 0.02)


OTHER_HEAD = "belongs to another head"


def names(config: BertConfig) -> Names:
    """The model alone has names without a prefix; with a head on top, its names begin with "bert."."""
    bert = "bert." if config.head in ("words", "classes") else ""
    ours, theirs = "encoder.layers.*", f"{bert}encoder.layer.*"
    other_heads = {"cls.seq_relationship.*": OTHER_HEAD}
    if config.head != "words":
        other_heads |= {f"cls.predictions{stars}": OTHER_HEAD for stars in (".*", ".*.*", ".*.*.*")}
    if config.head not in ("classes", "pooled"):
        other_heads[f"{bert}pooler.dense.*"] = OTHER_HEAD
    return Names(
        (
            link("embedding.weight", f"{bert}embeddings.word_embeddings.weight"),
            link("embedding.segments", f"{bert}embeddings.token_type_embeddings.weight"),
            link("encoder.positions.weight", f"{bert}embeddings.position_embeddings.weight"),
            link("encoder.entry.*", f"{bert}embeddings.LayerNorm.*"),
            link(f"{ours}.attention.part.query.*", f"{theirs}.attention.self.query.*"),
            link(
                f"{ours}.attention.part.key_value.*",
                (f"{theirs}.attention.self.key.*", f"{theirs}.attention.self.value.*"),
            ),
            link(f"{ours}.attention.part.out.*", f"{theirs}.attention.output.dense.*"),
            link(f"{ours}.attention.norm.*", f"{theirs}.attention.output.LayerNorm.*"),
            link(f"{ours}.feed_forward.part.wide.*", f"{theirs}.intermediate.dense.*"),
            link(f"{ours}.feed_forward.part.narrow.*", f"{theirs}.output.dense.*"),
            link(f"{ours}.feed_forward.norm.*", f"{theirs}.output.LayerNorm.*"),
            link("head.transform.dense.*", "cls.predictions.transform.dense.*"),
            link("head.transform.norm.*", "cls.predictions.transform.LayerNorm.*"),
            link("head.table.weight", "cls.predictions.decoder.weight"),
            link("head.table.segments", f"{bert}embeddings.token_type_embeddings.weight"),
            link("head.bias", "cls.predictions.bias"),
            link("head.bias", "cls.predictions.decoder.bias"),
            link("head.dense.*", f"{bert}pooler.dense.*"),
            link("head.pool.dense.*", f"{bert}pooler.dense.*"),
            link("head.out.*", "classifier.*"),
        ),
        ignored={f"{bert}embeddings.position_ids": "counts the positions"} | other_heads,
        prefix="bert.",
        older={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    )


def _read_classes(given: Given) -> int | None:
    labels = given.get("id2label")
    return len(labels) if isinstance(labels, dict) else given.get("num_labels")


def _write_classes(n: int) -> dict[str, Any]:
    labels = {str(index): f"LABEL_{index}" for index in range(n)}
    return {"id2label": labels, "label2id": {label: int(index) for index, label in labels.items()}}


PUBLISHED = Published(
    model_type="bert",
    architectures=(
        ("BertForMaskedLM", {"head": "words"}),
        ("BertForPreTraining", {"head": "words"}),
        ("BertForSequenceClassification", {"head": "classes"}),
        ("BertModel", {"head": "hidden"}),
        ("BertModel", {"head": "mean"}),
        ("BertModel", {"head": "pooled"}),
    ),
    settings={
        "vocab_size": same("vocab_size"),
        "d_model": same("hidden_size"),
        "n_heads": same("num_attention_heads"),
        "d_ff": same("intermediate_size"),
        "n_layers": same("num_hidden_layers"),
        "n_segments": same("type_vocab_size"),
        "max_length": same("max_position_embeddings"),
        "activation": words("hidden_act", ACTIVATIONS),
        "n_classes": Setting(("id2label", "num_labels"), _read_classes, _write_classes),
        "norm_eps": same("layer_norm_eps"),
        "dropout": same("hidden_dropout_prob"),
        "attention_dropout": same("attention_probs_dropout_prob"),
    },
    fixed={
        "position_embedding_type": "absolute",
        "is_encoder_decoder": False,
        "is_decoder": False,
        "add_cross_attention": False,
        "tie_word_embeddings": True,
    },
    names=names,
)


def _size(n_layers: int, d_model: int) -> BertConfig:
    """The published ones have heads of width 64."""
    return BertConfig(n_layers=n_layers, d_model=d_model, n_heads=d_model // 64, d_ff=4 * d_model)


bert = register(
    Family(
        BertConfig,
        build,
        presets={
            "bert-tiny": _size(2, 128),
            "bert-mini": _size(4, 256),
            "bert-small": _size(4, 512),
            "bert-medium": _size(8, 512),
            "bert-base": BertConfig(),
            "bert-large": _size(24, 1024),
        },
        published=PUBLISHED,
    )
)
