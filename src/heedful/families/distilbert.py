"""DistilBERT: BERT with half its layers, without segments and without the pooler."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from ..core import EncoderOnly
from .encoder_only import (
    HEADS,
    EncoderOnlyConfig,
    Heads,
    architectures,
    assemble,
    classes,
    output_name,
    prefix,
    span,
    unused,
)
from .hf_config import ACTIVATIONS, Published, enum, settings_of, unpublished
from .registry import register
from .weight_map import WeightMap, link

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
    heads: Heads = {
        **HEADS,
        "classes": partial(classes, activation="relu"),
        "span": partial(span, dropout=config.dropout),
    }
    return assemble(config, heads=heads)


def names(config: DistilBertConfig) -> WeightMap:
    """Return the published names, which differ from all of BERT's."""
    distilbert = prefix(config, "distilbert.")
    layer, hf = "encoder.layers.*", f"{distilbert}transformer.layer.*"
    return WeightMap(
        (
            link("embedding.weight", f"{distilbert}embeddings.word_embeddings.weight"),
            link("encoder.positions.weight", f"{distilbert}embeddings.position_embeddings.weight"),
            link("encoder.entry.*", f"{distilbert}embeddings.LayerNorm.*"),
            link(f"{layer}.self_attention.sublayer.q_proj.*", f"{hf}.attention.q_lin.*"),
            link(f"{layer}.self_attention.sublayer.kv_proj.*", (f"{hf}.attention.k_lin.*", f"{hf}.attention.v_lin.*")),
            link(f"{layer}.self_attention.sublayer.out_proj.*", f"{hf}.attention.out_lin.*"),
            link(f"{layer}.self_attention.norm.*", f"{hf}.sa_layer_norm.*"),
            link(f"{layer}.feed_forward.sublayer.up_proj.*", f"{hf}.ffn.lin1.*"),
            link(f"{layer}.feed_forward.sublayer.down_proj.*", f"{hf}.ffn.lin2.*"),
            link(f"{layer}.feed_forward.norm.*", f"{hf}.output_layer_norm.*"),
            link("head.transform.dense.*", "vocab_transform.*"),
            link("head.transform.norm.*", "vocab_layer_norm.*"),
            link("head.embedding.weight", "vocab_projector.weight"),
            link("head.bias", "vocab_projector.bias"),
            link("head.pool.dense.*", "pre_classifier.*"),
            link("head.out_proj.*", output_name(config)),
        ),
        ignored={f"{distilbert}embeddings.position_ids": "counts the positions"}
        | unused(config, {f"vocab_{part}.*": ("words",) for part in ("transform", "layer_norm", "projector")}),
        prefix="distilbert.",
    )


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
