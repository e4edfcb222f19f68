"""ALBERT: BERT with narrow embeddings, which are projected once, and layers that share their weights."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

from torch import nn

from .. import core
from ..core.init import linear
from .bert import FIXED, SETTINGS, BertConfig
from .encoder_only import architectures, finish, norm, weight_map, word_links
from .hf_config import Published, setting
from .layers import residual_layer
from .registry import register
from .weight_map import WeightMap


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


def names(config: AlbertConfig) -> WeightMap:
    """Return the published names; the pooler is a matrix and a bias, not a module."""
    group = "encoder.albert_layer_groups.{}.albert_layers.0"
    return weight_map(
        config,
        "albert",
        layers={f"encoder.layers.{index}": group.format(number) for index, number in enumerate(config.groups)},
        self_attention=[f"attention.{name}" for name in ("query", "key", "value", "dense", "LayerNorm")],
        feed_forward=("ffn", "ffn_output", "full_layer_layer_norm"),
        word_head=word_links("predictions.dense", "predictions.LayerNorm", "predictions.decoder", "predictions"),
        pooler="pooler",
        unused=["sop_classifier.classifier.*"],
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
