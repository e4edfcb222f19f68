"""BERT: encoder-only, post-norm, with learned positions and segments."""

from dataclasses import dataclass
from typing import ClassVar

from ..core import EncoderOnly
from .encoder_only import EncoderOnlyConfig, architectures, assemble, output_name, prefix, unused
from .hf_config import Published, settings_of
from .registry import register
from .weight_map import Link, WeightMap, link


@dataclass(frozen=True, kw_only=True)
class BertConfig(EncoderOnlyConfig):
    """BERT. The defaults are the base model, uncased."""

    family: ClassVar[str] = "bert"

    n_segments: int = 2  # Segment ids: 2 distinguish the texts of a pair

    def check(self) -> None:
        super().check()
        self.require_positive("n_segments")


def build(config: BertConfig) -> EncoderOnly:
    """Build BERT with the config's head."""
    return assemble(config, n_segments=config.n_segments)


def encoder_links(bert: str) -> tuple[Link, ...]:
    """Return the links of everything below the head, and of the pooler; names begin with `bert`."""
    layer, hf = "encoder.layers.*", f"{bert}encoder.layer.*"
    heads = f"{hf}.attention.self"
    return (
        *embedding_links(bert),
        link("encoder.entry.*", f"{bert}embeddings.LayerNorm.*"),
        link(f"{layer}.self_attention.sublayer.q_proj.*", f"{heads}.query.*"),
        link(f"{layer}.self_attention.sublayer.kv_proj.*", (f"{heads}.key.*", f"{heads}.value.*")),
        link(f"{layer}.self_attention.sublayer.out_proj.*", f"{hf}.attention.output.dense.*"),
        link(f"{layer}.self_attention.norm.*", f"{hf}.attention.output.LayerNorm.*"),
        link(f"{layer}.feed_forward.sublayer.up_proj.*", f"{hf}.intermediate.dense.*"),
        link(f"{layer}.feed_forward.sublayer.down_proj.*", f"{hf}.output.dense.*"),
        link(f"{layer}.feed_forward.norm.*", f"{hf}.output.LayerNorm.*"),
        link("head.dense.*", f"{bert}pooler.dense.*"),
    )


def embedding_links(bert: str) -> tuple[Link, ...]:
    """Return the links of the embeddings; a head with the tokens' matrix refers to their segments too."""
    return (
        link("embedding.weight", f"{bert}embeddings.word_embeddings.weight"),
        link("embedding.segments", f"{bert}embeddings.token_type_embeddings.weight"),
        link("head.embedding.segments", f"{bert}embeddings.token_type_embeddings.weight"),
        link("encoder.positions.weight", f"{bert}embeddings.position_embeddings.weight"),
    )


def names(config: BertConfig) -> WeightMap:
    """Return the published names; older checkpoints have gamma and beta for weight and bias."""
    bert = prefix(config, "bert.")
    return WeightMap(
        (
            *encoder_links(bert),
            link("head.transform.dense.*", "cls.predictions.transform.dense.*"),
            link("head.transform.norm.*", "cls.predictions.transform.LayerNorm.*"),
            link("head.embedding.weight", "cls.predictions.decoder.weight"),
            link("head.bias", "cls.predictions.bias"),
            link("head.bias", "cls.predictions.decoder.bias"),
            link("head.pool.dense.*", f"{bert}pooler.dense.*"),
            link("head.out_proj.*", output_name(config)),
        ),
        ignored={f"{bert}embeddings.position_ids": "counts the positions"}
        | unused(
            config,
            {
                "cls.seq_relationship.*": (),
                "cls.predictions.*": ("words",),
                "cls.predictions.*.*": ("words",),
                "cls.predictions.*.*.*": ("words",),
                f"{bert}pooler.dense.*": ("classes", "pooled"),
            },
        ),
        prefix="bert.",
        older={"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"},
    )


SETTINGS = settings_of(
    BertConfig,
    n_segments="type_vocab_size",
    norm_eps="layer_norm_eps",
    dropout="hidden_dropout_prob",
    attention_dropout="attention_probs_dropout_prob",
)
FIXED = {
    "position_embedding_type": "absolute",
    "is_encoder_decoder": False,
    "is_decoder": False,
    "add_cross_attention": False,
    "tie_word_embeddings": True,
}


def _size(n_layers: int, d_model: int) -> BertConfig:
    """Return a config of this size, with heads of width 64."""
    return BertConfig(n_layers=n_layers, d_model=d_model, n_heads=d_model // 64, d_ff=4 * d_model)


bert = register(
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
    published=Published(
        model_type="bert",
        architectures=(*architectures("Bert"), ("BertForPreTraining", {"head": "words"})),
        settings=SETTINGS,
        fixed=FIXED,
        names=names,
    ),
)
