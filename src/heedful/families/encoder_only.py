"""The config, layers and heads that BERT and its relatives share."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Literal, TypedDict, Unpack

from torch import nn

from .. import core
from ..core.init import linear
from .layers import LayersConfig, initialize_normal, residual_layer
from .weight_map import Link, WeightMap, layer_links, link


@dataclass(frozen=True, kw_only=True)
class EncoderOnlyConfig(LayersConfig):
    """The fields of BERT and its relatives."""

    vocab_size: int = 30522  # Number of tokens; training sets it to that of a new tokenizer
    max_length: int = 512  # The most tokens of a text, special ones included
    # What the model returns. words: logits over the vocabulary; classes: logits over the classes; token-classes: the
    # same for every token; span: scores for the start and the end of an answer; pooled: the first token's vector
    # through a dense layer; first: that vector itself; mean: the mean of all vectors; hidden: all vectors.
    head: Literal["words", "classes", "token-classes", "span", "pooled", "first", "mean", "hidden"] = "words"
    n_classes: int = 2  # Classes of the heads classes and token-classes; training takes them from the data
    norm_eps: float = 1e-12  # Added to the variance in every layer norm
    dropout: float = 0.1  # Probability of dropping a feature of the embeddings and of every sublayer's output
    attention_dropout: float = 0.1

    def check(self) -> None:
        super().check()
        self.require_positive("vocab_size", "max_length", "n_classes")
        self.require_share("dropout")
        self.require_divisible("d_model", "n_heads")


def norm(config: EncoderOnlyConfig, width: int | None = None) -> core.LayerNorm:
    """Return a norm over `width` features, by default the model's."""
    return core.LayerNorm(config.d_model if width is None else width, eps=config.norm_eps)


class HeadOptions(TypedDict, total=False):
    """How a family's heads differ from BERT's."""

    transform: str  # Activation before the output over the vocabulary; by default the config's
    pooling: str  # Activation of the pooler; by default tanh
    span_dropout: float  # Probability of dropping a feature before the head for spans; by default 0


def assemble(
    config: EncoderOnlyConfig, *, n_segments: int = 0, offset: int = 0, **head: Unpack[HeadOptions]
) -> core.EncoderOnly:
    """Build a model with learned positions, whose table begins with `offset` unused rows."""
    encoder = core.Encoder(
        [residual_layer(config, core.PostNorm, partial(norm, config)) for _ in range(config.n_layers)],
        positions=core.Learned(config.max_length, config.d_model, offset=offset),
        entry=norm(config),
        dropout=config.dropout,
    )
    embedding = core.TokenEmbedding(config.vocab_size, config.d_model, scale=False, n_segments=n_segments)
    return finish(config, embedding, encoder, **head)


def finish(
    config: EncoderOnlyConfig, embedding: core.TokenEmbedding, encoder: core.Encoder, **options: Unpack[HeadOptions]
) -> core.EncoderOnly:
    """Add the config's head, and initialize the weights as BERT does."""
    d_model = config.d_model

    def masked_lm() -> nn.Module:
        width, activation = embedding.weight.shape[1], options.get("transform", config.activation)
        transform = core.Transform(d_model, width, activation=activation, norm=norm(config, width))
        return core.VocabularyHead(width, config.vocab_size, embedding=embedding, bias=True, transform=transform)

    def pooled() -> nn.Module:
        return core.PoolingHead(core.ClsPool(), linear(d_model, d_model), options.get("pooling", "tanh"))

    def classes(vectors: nn.Module) -> nn.Module:
        return core.ClassHead(vectors, d_model, config.n_classes, dropout=config.dropout)

    heads: dict[str, Callable[[], nn.Module]] = {
        "words": masked_lm,
        "classes": lambda: classes(pooled()),
        "token-classes": lambda: classes(core.Hidden()),
        "span": lambda: core.SpanHead(d_model, dropout=options.get("span_dropout", 0.0)),
        "pooled": pooled,
        "first": lambda: core.PoolingHead(core.ClsPool()),
        "mean": lambda: core.PoolingHead(core.MeanPool()),
        "hidden": core.Hidden,
    }
    model = core.EncoderOnly(embedding=embedding, encoder=encoder, head=heads[config.head]())
    return initialize_normal(model, 0.02)


def word_links(transform: str, norm: str, decoder: str, bias: str) -> tuple[Link, ...]:
    """Return the links of the head for words; the bias stands under one or both of two names."""
    return (
        link("head.transform.dense.*", f"{transform}.*"),
        link("head.transform.norm.*", f"{norm}.*"),
        link("head.embedding.weight", f"{decoder}.weight"),
        link("head.bias", f"{bias}.bias"),
        link("head.bias", f"{decoder}.bias"),
    )


def weight_map(
    config: EncoderOnlyConfig,
    model: str,
    *,
    layers: Mapping[str, str],
    self_attention: Sequence[str],
    feed_forward: Sequence[str],
    word_head: tuple[Link, ...],
    pooler: str | None,
    dense: str | None = None,
    classifier: str = "classifier",
    unused: Collection[str] = (),
) -> WeightMap:
    """Return the published names of a model.

    Args:
        config: The model's config.
        model: The model's published name, which is a prefix if the model has a head.
        layers: The name of each layer here and as published.
        self_attention: The names in each layer, as for `layer_links`.
        feed_forward: Likewise.
        word_head: The links of the head for words.
        pooler: The name of the pooler's dense layer.
        dense: The name of the classifier's dense layer; None means the pooler.
        classifier: The name of the last layer of the head for classes.
        unused: The names of other heads, which are never read.
    """
    base = f"{model}." if config.head in ("words", "classes", "token-classes", "span") else ""
    pooler = pooler and f"{base}{pooler}.*"
    others = [*unused] if config.head == "words" else [*unused, *(name for line in word_head for name in line.hf)]
    if pooler and config.head != "pooled" and (dense or config.head != "classes"):
        others.append(pooler)
    last = {"span": "qa_outputs", "token-classes": "classifier"}.get(config.head, classifier)
    segments = f"{base}embeddings.token_type_embeddings.weight"
    return WeightMap(
        (
            link("embedding.weight", f"{base}embeddings.word_embeddings.weight"),
            link("embedding.segments", segments),
            link("head.embedding.segments", segments),  # the head has the tokens' embedding with its segments
            link("encoder.positions.weight", f"{base}embeddings.position_embeddings.weight"),
            link("encoder.entry.*", f"{base}embeddings.LayerNorm.*"),
            link("encoder.entry.0.*", f"{base}embeddings.LayerNorm.*"),
            link("encoder.entry.2.*", f"{base}encoder.embedding_hidden_mapping_in.*"),  # to the width of the layers
            *chain.from_iterable(
                layer_links(local, base + hf, self_attention=self_attention, feed_forward=feed_forward)
                for local, hf in layers.items()
            ),
            *word_head,
            *([link("head.dense.*", pooler)] if pooler else []),
            link("head.pool.dense.*", f"{dense}.*" if dense else pooler or ""),
            link("head.out_proj.*", f"{last}.*"),
        ),
        ignored={f"{base}embeddings.position_ids": "counts the positions"}
        | dict.fromkeys(others, "belongs to another head"),
        prefix=f"{model}.",
        older={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    )


def architectures(kind: str) -> tuple[tuple[str, dict[str, str]], ...]:
    """Return the classes of transformers that have these heads."""
    return (
        (f"{kind}ForMaskedLM", {"head": "words"}),
        (f"{kind}ForSequenceClassification", {"head": "classes"}),
        (f"{kind}ForTokenClassification", {"head": "token-classes"}),
        (f"{kind}ForQuestionAnswering", {"head": "span"}),
        *((f"{kind}Model", {"head": head}) for head in ("hidden", "mean", "first", "pooled")),
    )
