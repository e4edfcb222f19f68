"""ALBERT: BERT with narrow embeddings, which are projected once, and layers that share their weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from torch import nn

from .. import core
from ..core.init import linear
from .bert import FIXED, SETTINGS, BertConfig, embedding_links
from .encoder_only import architectures, finish, norm, output_name, prefix, unused
from .hf_config import Published, setting
from .layers import residual_layer
from .registry import register
from .weight_map import Link, WeightMap, link


@dataclass(frozen=True, kw_only=True)
class AlbertConfig(BertConfig):
    """ALBERT. The defaults are the largest model, version 2."""

    family: ClassVar[str] = "albert"

    vocab_size: int = 30000
    d_embedding: int = 128  # Width of tokens, positions and segments, which are projected to d_model
    d_model: int = 4096
    n_heads: int = 64
    d_ff: int = 16384
    n_groups: int = 1  # Layers with weights of their own; each runs n_layers / n_groups times in a row
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "gelu_tanh"
    dropout: float = 0.0
    attention_dropout: float = 0.0

    def check(self) -> None:
        super().check()
        self.require_positive("d_embedding", "n_groups")
        self.require_divisible("n_layers", "n_groups")

    @property
    def groups(self) -> list[int]:
        """The index of each layer's group."""
        return [index * self.n_groups // self.n_layers for index in range(self.n_layers)]


def build(config: AlbertConfig) -> core.EncoderOnly:
    """Build ALBERT; a shared layer stands in the stack once for each time it runs."""
    width = config.d_embedding
    layers = [residual_layer(config, core.PostNorm, partial(norm, config)) for _ in range(config.n_groups)]
    encoder = core.Encoder(
        [layers[group] for group in config.groups],
        positions=core.Learned(config.max_length, width),
        entry=nn.Sequential(norm(config, width), nn.Dropout(config.dropout), linear(width, config.d_model)),
    )
    embedding = core.TokenEmbedding(config.vocab_size, width, scale=False, n_segments=config.n_segments)
    return finish(config, embedding, encoder)


def _layer_links(config: AlbertConfig, albert: str) -> Iterator[Link]:
    """Link every layer to its published group."""
    for index, group in enumerate(config.groups):
        layer, hf = f"encoder.layers.{index}", f"{albert}encoder.albert_layer_groups.{group}.albert_layers.0"
        yield link(f"{layer}.self_attention.sublayer.q_proj.*", f"{hf}.attention.query.*")
        yield link(f"{layer}.self_attention.sublayer.kv_proj.*", (f"{hf}.attention.key.*", f"{hf}.attention.value.*"))
        yield link(f"{layer}.self_attention.sublayer.out_proj.*", f"{hf}.attention.dense.*")
        yield link(f"{layer}.self_attention.norm.*", f"{hf}.attention.LayerNorm.*")
        yield link(f"{layer}.feed_forward.sublayer.up_proj.*", f"{hf}.ffn.*")
        yield link(f"{layer}.feed_forward.sublayer.down_proj.*", f"{hf}.ffn_output.*")
        yield link(f"{layer}.feed_forward.norm.*", f"{hf}.full_layer_layer_norm.*")


def names(config: AlbertConfig) -> WeightMap:
    """Return the published names; the pooler is a matrix and a bias, not a module."""
    albert = prefix(config, "albert.")
    return WeightMap(
        (
            *embedding_links(albert),
            link("encoder.entry.0.*", f"{albert}embeddings.LayerNorm.*"),
            link("encoder.entry.2.*", f"{albert}encoder.embedding_hidden_mapping_in.*"),
            *_layer_links(config, albert),
            link("head.transform.dense.*", "predictions.dense.*"),
            link("head.transform.norm.*", "predictions.LayerNorm.*"),
            link("head.embedding.weight", "predictions.decoder.weight"),
            link("head.bias", "predictions.bias"),
            link("head.bias", "predictions.decoder.bias"),
            link("head.dense.*", f"{albert}pooler.*"),
            link("head.pool.dense.*", f"{albert}pooler.*"),
            link("head.out_proj.*", output_name(config)),
        ),
        ignored={f"{albert}embeddings.position_ids": "counts the positions"}
        | unused(
            config,
            {
                "sop_classifier.classifier.*": (),
                "predictions.*": ("words",),
                "predictions.*.*": ("words",),
                f"{albert}pooler.*": ("classes", "pooled"),
            },
        ),
        prefix="albert.",
    )


XXLARGE = AlbertConfig()
albert = register(
    AlbertConfig,
    build,
    presets={
        "albert-tiny": XXLARGE.changed(vocab_size=8000, d_embedding=64, d_model=128, n_heads=2, d_ff=512, n_layers=4),
        "albert-base": XXLARGE.changed(d_model=768, n_heads=12, d_ff=3072),
        "albert-large": XXLARGE.changed(d_model=1024, n_heads=16, d_ff=4096, n_layers=24),
        "albert-xlarge": XXLARGE.changed(d_model=2048, n_heads=16, d_ff=8192, n_layers=24),
        "albert-xxlarge": XXLARGE,
    },
    published=Published(
        model_type="albert",
        architectures=(*architectures("Albert"), ("AlbertForPreTraining", {"head": "words"})),
        settings=SETTINGS | {"d_embedding": setting("embedding_size"), "n_groups": setting("num_hidden_groups")},
        fixed=FIXED | {"inner_group_num": 1},
        names=names,
    ),
)
