"""DistilBERT: BERT with half its layers, without segments and without the pooler."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..core import EncoderOnly
from .encoder_only import EncoderOnlyConfig, architectures, assemble, weight_map, word_links
from .hf_config import ACTIVATIONS, Published, enum, settings_of, unpublished
from .registry import register
from .weight_map import Link, WeightMap, layer_links

NORM_EPS = 1e-12  # of all published models; config.json has no key for it


@dataclass(frozen=True, kw_only=True)
class DistilBertConfig(EncoderOnlyConfig):
    """DistilBERT, which has no segments. The defaults are the base model."""

    family: ClassVar[str] = "distilbert"

    n_layers: int = 6
    head: Literal["words", "classes", "token-classes", "span", "first", "mean", "hidden"] = "words"
    norm_eps: float = NORM_EPS


def build(config: DistilBertConfig) -> EncoderOnly:
    """Build DistilBERT; its classifier has ReLU instead of tanh, and its span head has dropout."""
    return assemble(config, pooling="relu", span_dropout=config.dropout)


def layers(distilbert: str) -> Iterator[Link]:
    """Return the links of all layers, whose published names begin with `distilbert`."""
    return layer_links(
        "encoder.layers.*",
        f"{distilbert}transformer.layer.*",
        self_attention=(*(f"attention.{name}_lin" for name in ("q", "k", "v", "out")), "sa_layer_norm"),
        feed_forward=("ffn.lin1", "ffn.lin2", "output_layer_norm"),
    )


WORDS = word_links("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector")


def names(config: DistilBertConfig) -> WeightMap:
    """Return the published names; there is no pooler."""
    return weight_map(config, "distilbert", layers, WORDS, pooler=None, dense="pre_classifier")


distilbert = register(
    DistilBertConfig,
    build,
    presets={
        "distilbert-tiny": DistilBertConfig(n_layers=2, d_model=128, n_heads=2, d_ff=512),
        "distilbert-base": DistilBertConfig(),
    },
    published=Published(
        model_type="distilbert",
        architectures=architectures("DistilBert"),
        settings=settings_of(
            DistilBertConfig,
            *("n_heads", "n_layers"),
            d_model="dim",
            d_ff="hidden_dim",
            activation=enum("activation", ACTIVATIONS),
            norm_eps=unpublished(
                NORM_EPS, f"a published distilbert always has norm_eps={NORM_EPS}; there is no key for {{value}}"
            ),
        ),
        fixed={"sinusoidal_pos_embds": False, "is_encoder_decoder": False, "tie_word_embeddings": True},
        names=names,
    ),
)
