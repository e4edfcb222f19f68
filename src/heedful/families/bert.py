"""BERT: encoder-only, post-norm, with learned positions and segments."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from ..core import EncoderOnly
from .encoder_only import EncoderOnlyConfig, architectures, assemble, weight_map, word_links
from .hf_config import Published, settings_of
from .registry import register
from .weight_map import Link, WeightMap, layer_links


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


OUTPUT = ("output.dense", "output.LayerNorm")


def layers(bert: str) -> Iterator[Link]:
    """Return the links of all layers, whose published names begin with `bert`."""
    return layer_links(
        "encoder.layers.*",
        f"{bert}encoder.layer.*",
        self_attention=[
            *(f"attention.self.{name}" for name in ("query", "key", "value")),
            *(f"attention.{name}" for name in OUTPUT),
        ],
        feed_forward=("intermediate.dense", *OUTPUT),
    )


HEAD = "cls.predictions"
WORDS = word_links(f"{HEAD}.transform.dense", f"{HEAD}.transform.LayerNorm", f"{HEAD}.decoder", HEAD)


def names(config: BertConfig) -> WeightMap:
    """Return the published names."""
    return weight_map(config, "bert", layers, WORDS, pooler="pooler.dense", unused=["cls.seq_relationship.*"])


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
