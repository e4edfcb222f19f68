"""What BERT and its kin share: the fields, post-norm layers, and heads that say what a text is read for."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

from .. import core
from ..config import FamilyConfig
from ..core.init import linear
from .registry import initialize_normal, residual_layer


@dataclass(frozen=True, kw_only=True)
class EncoderOnlyConfig(FamilyConfig):
    """`head`: "words" gives logits over the vocabulary, "classes" logits over `n_classes`, "token-classes" the same for
    every token, "span" scores of where an answer starts and ends, "pooled" the first token's vector through a dense
    layer, "first" the same as it is, "mean" the mean of all vectors, "hidden" the vectors.
    """

    vocab_size: int = 30522
    d_model: int = 768
    n_heads: int = 12
    d_ff: int = 3072
    n_layers: int = 12
    max_length: int = 512
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "gelu"
    head: Literal["words", "classes", "token-classes", "span", "pooled", "first", "mean", "hidden"] = "words"
    n_classes: int = 2
    norm_eps: float = 1e-12
    dropout: float = 0.1
    attention_dropout: float = 0.1

    def check(self) -> None:
        self.require_positive("vocab_size", "d_model", "n_heads", "d_ff", "n_layers", "max_length", "n_classes")
        self.require_share("dropout", "attention_dropout")
        self.require_divisible("d_model", "n_heads")


def norm(config: EncoderOnlyConfig, width: int | None = None) -> core.LayerNorm:
    """Over the model's width unless another is given."""
    return core.LayerNorm(config.d_model if width is None else width, eps=config.norm_eps)


def words(config: EncoderOnlyConfig, embedding: core.TokenEmbedding, *, activation: str | None = None) -> nn.Module:
    """Which token it is, asked of the embedding's own matrix and at its width."""
    width = embedding.weight.shape[1]
    chosen = config.activation if activation is None else activation
    transform = core.Transform(config.d_model, width, activation=chosen, norm=norm(config, width))
    return core.VocabularyHead(width, config.vocab_size, table=embedding, bias=True, transform=transform)


def pooled(config: EncoderOnlyConfig, embedding: core.TokenEmbedding, *, activation: str = "tanh") -> nn.Module:
    """The first token's vector through a dense layer."""
    return core.PoolingHead(core.FirstToken(), linear(config.d_model, config.d_model), activation)


def classes(config: EncoderOnlyConfig, embedding: core.TokenEmbedding, *, activation: str = "tanh") -> nn.Module:
    """Which class it is, asked of what is pooled."""
    pool = pooled(config, embedding, activation=activation)
    return core.ClassHead(pool, config.d_model, config.n_classes, dropout=config.dropout)


def token_classes(config: EncoderOnlyConfig, embedding: core.TokenEmbedding) -> nn.Module:
    """Which class each token is."""
    return core.ClassHead(core.Hidden(), config.d_model, config.n_classes, dropout=config.dropout)


def span(config: EncoderOnlyConfig, embedding: core.TokenEmbedding, *, dropout: float = 0.0) -> nn.Module:
    """Where an answer starts and ends."""
    return core.SpanHead(config.d_model, dropout=dropout)


Heads = Mapping[str, Callable[[Any, core.TokenEmbedding], nn.Module]]
HEADS: Heads = {
    "words": words,
    "classes": classes,
    "token-classes": token_classes,
    "span": span,
    "pooled": pooled,
    "first": lambda config, embedding: core.PoolingHead(core.FirstToken()),
    "mean": lambda config, embedding: core.PoolingHead(core.Mean()),
    "hidden": lambda config, embedding: core.Hidden(),
}


def assemble(
    config: EncoderOnlyConfig, *, n_segments: int = 0, offset: int = 0, heads: Heads = HEADS
) -> core.EncoderOnly:
    """The parts put together, over learned positions that begin after `offset` unused rows."""
    encoder = core.Encoder(
        [residual_layer(config, core.PostNorm) for _ in range(config.n_layers)],
        positions=core.Learned(config.max_length, config.d_model, offset=offset),
        entry=norm(config),
        dropout=config.dropout,
    )
    embedding = core.TokenEmbedding(config.vocab_size, config.d_model, scale=False, n_segments=n_segments)
    return finish(config, embedding, encoder, heads)


def finish(
    config: EncoderOnlyConfig, embedding: core.TokenEmbedding, encoder: core.Encoder, heads: Heads = HEADS
) -> core.EncoderOnly:
    """The config's head on top, and the weights as BERT's start."""
    head = heads[config.head](config, embedding)
    return initialize_normal(core.EncoderOnly(embedding=embedding, encoder=encoder, head=head), 0.02)


def prefix(config: EncoderOnlyConfig, name: str) -> str:
    """The model alone is published under names without a prefix; under a head, they have one."""
    return name if config.head in ("words", "classes", "token-classes", "span") else ""


def output_name(config: EncoderOnlyConfig, classes: str = "classifier.*") -> str:
    """The published name of a head's last layer, which differs by head; `classes` is that of a text's classes."""
    return {"span": "qa_outputs.*", "token-classes": "classifier.*"}.get(config.head, classes)


def unused(config: EncoderOnlyConfig, readers: Mapping[str, Collection[str]]) -> dict[str, str]:
    """For `WeightMap.ignored`: of published names, each with the heads that read it, those that this head does not."""
    return {name: "belongs to another head" for name, heads in readers.items() if config.head not in heads}


def architectures(kind: str) -> tuple[tuple[str, dict[str, str]], ...]:
    """The classes of transformers that have such heads."""
    return (
        (f"{kind}ForMaskedLM", {"head": "words"}),
        (f"{kind}ForSequenceClassification", {"head": "classes"}),
        (f"{kind}ForTokenClassification", {"head": "token-classes"}),
        (f"{kind}ForQuestionAnswering", {"head": "span"}),
        *((f"{kind}Model", {"head": head}) for head in ("hidden", "mean", "first", "pooled")),
    )
