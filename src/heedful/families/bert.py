"""BERT: encoder-only, post-norm, with learned positions and segments.

RoBERTa and the multilingual XLM-RoBERTa: BERT with other heads, and positions that begin after the padding id.
DistilBERT: BERT with half its layers, without segments and without the pooler.
ALBERT: BERT with narrow embeddings, which are projected once, and layers that share their weights.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from torch import nn

from .. import core
from ..core.init import linear
from .encoder_only import EncoderOnlyConfig, architectures, assemble, finish, norm, weight_map, word_links
from .hf_config import ACTIVATIONS, HFConfig, Published, Setting, enum, setting, settings_of, unpublished
from .layers import residual_layer
from .registry import register
from .weight_map import WeightMap


@dataclass(frozen=True, kw_only=True)
class BertConfig(EncoderOnlyConfig):
    """BERT. The defaults are the base model, uncased."""

    family: ClassVar[str] = "bert"

    n_segments: int = 2  # Segment ids: 2 distinguish the texts of a pair

    def check(self) -> None:
        super().check()
        self.require_positive("n_segments")


def build(config: BertConfig) -> core.EncoderOnly:
    """Build BERT with the config's head."""
    return assemble(config, n_segments=config.n_segments)


OUTPUT = ("output.dense", "output.LayerNorm")
weight_map_of_bert = partial(
    weight_map,
    layers={"encoder.layers.*": "encoder.layer.*"},
    self_attention=[f"attention.{name}" for name in ("self.query", "self.key", "self.value", *OUTPUT)],
    feed_forward=("intermediate.dense", *OUTPUT),
)


def names(config: BertConfig) -> WeightMap:
    """Return the published names."""
    name = "cls.predictions"
    word_head = word_links(f"{name}.transform.dense", f"{name}.transform.LayerNorm", f"{name}.decoder", name)
    return weight_map_of_bert(
        config, "bert", word_head=word_head, pooler="pooler.dense", unused=["cls.seq_relationship.*"]
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

ROWS = 512  # of the position table, if a config has no max_position_embeddings


@dataclass(frozen=True, kw_only=True)
class RobertaConfig(BertConfig):
    """RoBERTa. The defaults are those of transformers for missing keys; the presets are the published models."""

    family: ClassVar[str] = "roberta"

    vocab_size: int = 50265
    position_offset: int = 2  # Unused first rows of the position table: the id of the padding token, plus one
    max_length: int = ROWS - 2

    def check(self) -> None:
        super().check()
        self.require_positive("position_offset")


@dataclass(frozen=True, kw_only=True)
class XLMRobertaConfig(RobertaConfig):
    """XLM-RoBERTa: RoBERTa with another tag and another vocabulary."""

    family: ClassVar[str] = "xlm-roberta"

    vocab_size: int = 30522


def build_roberta(config: RobertaConfig) -> core.EncoderOnly:
    """Build RoBERTa; the transform before the output always has GELU."""
    return assemble(config, n_segments=config.n_segments, offset=config.position_offset, transform="gelu")


def roberta_names(config: RobertaConfig) -> WeightMap:
    """Return the published names; the classifier has its own dense layer, not the pooler."""
    word_head = word_links("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", "lm_head")
    dense, classifier = "classifier.dense", "classifier.out_proj"
    return weight_map_of_bert(
        config, "roberta", word_head=word_head, pooler="pooler.dense", dense=dense, classifier=classifier
    )


def _read_offset(hf: HFConfig) -> Any:
    pad = hf.get("pad_token_id")
    return pad + 1 if isinstance(pad, int) else pad


def _read_length(hf: HFConfig) -> Any:
    rows, offset = hf.get("max_position_embeddings"), _read_offset(hf)
    rows, offset = ROWS if rows is None else rows, 2 if offset is None else offset
    return rows - offset if isinstance(rows, int) and isinstance(offset, int) else rows


class RobertaPublished(Published):
    """Writes the number of rows of the position table, which two config fields determine."""

    def write(self, config: Any) -> dict[str, Any]:
        """Return the contents of config.json for a config."""
        return super().write(config) | {"max_position_embeddings": config.max_length + config.position_offset}


def _published_roberta(model_type: str, kind: str) -> Published:
    return RobertaPublished(
        model_type=model_type,
        architectures=architectures(kind),
        settings=SETTINGS
        | {
            "max_length": Setting(("max_position_embeddings", "pad_token_id"), _read_length, lambda length: {}),
            "position_offset": Setting(("pad_token_id",), _read_offset, lambda offset: {"pad_token_id": offset - 1}),
        },
        fixed=FIXED,
        names=roberta_names,
    )


TRAINED = {"max_length": 512, "n_segments": 1, "norm_eps": 1e-5}
TINY = TRAINED | {"vocab_size": 8000, "d_model": 128, "n_heads": 2, "d_ff": 512, "n_layers": 2}
LARGE = TRAINED | {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "n_layers": 24}
LANGUAGES = {"vocab_size": 250002}

roberta = register(
    RobertaConfig,
    build_roberta,
    presets={
        "roberta-tiny": RobertaConfig().changed(**TINY),
        "roberta-base": RobertaConfig().changed(**TRAINED),
        "roberta-large": RobertaConfig().changed(**LARGE),
    },
    published=_published_roberta("roberta", "Roberta"),
)
xlm_roberta = register(
    XLMRobertaConfig,
    build_roberta,
    presets={
        "xlm-roberta-tiny": XLMRobertaConfig().changed(**TINY),
        "xlm-roberta-base": XLMRobertaConfig().changed(**TRAINED, **LANGUAGES),
        "xlm-roberta-large": XLMRobertaConfig().changed(**LARGE, **LANGUAGES),
    },
    published=_published_roberta("xlm-roberta", "XLMRoberta"),
)

NORM_EPS = 1e-12  # of all published models; config.json has no key for it


@dataclass(frozen=True, kw_only=True)
class DistilBertConfig(EncoderOnlyConfig):
    """DistilBERT, which has no segments. The defaults are the base model."""

    family: ClassVar[str] = "distilbert"

    n_layers: int = 6
    head: Literal["words", "classes", "token-classes", "span", "first", "mean", "hidden"] = "words"
    norm_eps: float = NORM_EPS


def build_distilbert(config: DistilBertConfig) -> core.EncoderOnly:
    """Build DistilBERT; its classifier has ReLU instead of tanh, and its span head has dropout."""
    return assemble(config, pooling="relu", span_dropout=config.dropout)


def distilbert_names(config: DistilBertConfig) -> WeightMap:
    """Return the published names; there is no pooler."""
    return weight_map(
        config,
        "distilbert",
        layers={"encoder.layers.*": "transformer.layer.*"},
        self_attention=(*(f"attention.{name}_lin" for name in ("q", "k", "v", "out")), "sa_layer_norm"),
        feed_forward=("ffn.lin1", "ffn.lin2", "output_layer_norm"),
        word_head=word_links("vocab_transform", "vocab_layer_norm", "vocab_projector", "vocab_projector"),
        pooler=None,
        dense="pre_classifier",
    )


distilbert = register(
    DistilBertConfig,
    build_distilbert,
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
        names=distilbert_names,
    ),
)


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


def build_albert(config: AlbertConfig) -> core.EncoderOnly:
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


def albert_names(config: AlbertConfig) -> WeightMap:
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
    build_albert,
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
        names=albert_names,
    ),
)
