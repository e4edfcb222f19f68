"""T5: encoder-decoder, pre-norm, relative positions, no biases; 1.0 has ReLU, 1.1 is gated and untied."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from .. import core
from ..config import FamilyConfig
from .encoder_decoder import stacks
from .hf_config import HFConfig, Published, Setting, settings_of
from .registry import register
from .weight_map import Link, WeightMap, layer_links, link


@dataclass(frozen=True, kw_only=True)
class T5Config(FamilyConfig):
    """T5. The defaults are the small model of version 1.0."""

    family: ClassVar[str] = "t5"

    vocab_size: int = 32128  # Number of tokens; training sets it to that of a new tokenizer
    d_model: int = 512  # Width of the embeddings and of all layers
    n_heads: int = 8  # Attention heads of each layer
    d_head: int = 64  # Width of a head; n_heads · d_head need not be d_model
    d_ff: int = 2048  # Inner width of the feed-forward sublayers
    n_encoder_layers: int = 6  # Layers of the encoder
    n_decoder_layers: int = 6  # Layers of the decoder
    n_buckets: int = 32  # Buckets of relative positions, each with a learned bias per head
    max_distance: int = 128  # Larger distances share the last bucket
    feed_forward: Literal["relu", "gelu", "silu", "gated-gelu", "gated-silu"] = "relu"  # Activation; 1.1 has gated-gelu
    tied: bool = True  # Whether the output shares the embedding's matrix; its input is then multiplied by d_model^−½
    norm_eps: float = 1e-6  # Added to the mean square in every RMSNorm
    dropout: float = 0.1  # Probability of dropping a feature anywhere, or an attention weight

    def check(self) -> None:
        self.require_positive("vocab_size", "d_model", "n_heads", "d_head", "d_ff")
        self.require_positive("n_encoder_layers", "n_decoder_layers", "n_buckets", "max_distance")
        self.require_share("dropout")
        self.require(
            self.n_buckets >= 4 and self.max_distance > self.n_buckets // 2,
            f"n_buckets={self.n_buckets} to max_distance={self.max_distance} leave no bucket for near or far distances",
        )

    @property
    def activation(self) -> str:
        """The activation between the matrices of feed-forward parts."""
        return FEED_FORWARDS[self.feed_forward][1]

    @property
    def attention_dropout(self) -> float:
        """The probability of dropping an attention weight."""
        return self.dropout

    activation_dropout = attention_dropout


FEED_FORWARDS: dict[str, tuple[type[nn.Module], str]] = {  # the class and the activation
    **{name: (core.FeedForward, name) for name in ("relu", "gelu", "silu")},
    "gated-gelu": (core.GatedFeedForward, "gelu_tanh"),
    "gated-silu": (core.GatedFeedForward, "silu"),
}


@torch.no_grad()
def _attention(d_model: int, n_heads: int, *, d_head: int, dropout: float) -> core.MultiHeadAttention:
    """Build an attention without scaled scores, whose initial weights contain the scale."""
    attention = core.MultiHeadAttention(d_model, n_heads, d_head=d_head, bias=False, scale=1.0, dropout=dropout)
    attention.q_proj.weight.mul_(d_head**-0.5)
    return attention


def build(config: T5Config) -> core.EncoderDecoder:
    """Build T5.

    Neither scores nor embeddings are scaled; the initial weights contain the scales instead.
    """
    d_model = config.d_model
    encoder, decoder = stacks(
        config,
        positions=lambda causal: core.Relative(
            config.n_heads, n_buckets=config.n_buckets, max_distance=config.max_distance, causal=causal
        ),
        residual=core.PreNorm,
        norm=partial(core.RMSNorm, eps=config.norm_eps),
        attention=partial(_attention, d_head=config.d_head),
        feed_forward=partial(FEED_FORWARDS[config.feed_forward][0], bias=False),
    )
    tokens = core.TokenEmbedding(config.vocab_size, d_model, scale=False)
    with torch.no_grad():
        tokens.weight.mul_(d_model**0.5)
    table, scale = (tokens, d_model**-0.5) if config.tied else (None, 1.0)
    head = core.VocabularyHead(d_model, config.vocab_size, embedding=table, scale=scale)
    return core.EncoderDecoder(
        source_embedding=tokens, encoder=encoder, target_embedding=tokens, decoder=decoder, head=head
    )


def _embedding(published: Mapping[str, Tensor], local: Tensor) -> Tensor:
    """Return the embedding, under any of its names, for an output that was left out."""
    names = "shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
    return next(published[name] for name in names if name in published)


def _links(config: T5Config) -> Iterator[Link]:
    yield link("source_embedding.weight", "shared.weight")
    yield link("source_embedding.weight", "encoder.embed_tokens.weight")
    yield link("target_embedding.weight", "decoder.embed_tokens.weight")
    yield link("head.embedding.weight", "lm_head.weight", absent=_embedding)
    self_attention, cross_attention = (
        (*(f"layer.{index}.{name}.{part}" for part in "qkvo"), f"layer.{index}.layer_norm")
        for index, name in enumerate(("SelfAttention", "EncDecAttention"))
    )
    matrices = ("wi_0", "wi_1", "wo") if config.feed_forward.startswith("gated") else ("wi", "wo")
    for stack, cross, last in (("encoder", (), "layer.1"), ("decoder", cross_attention, "layer.2")):
        yield from layer_links(
            f"{stack}.layers.*",
            f"{stack}.block.*",
            self_attention=self_attention,
            cross_attention=cross,
            feed_forward=(*(f"{last}.DenseReluDense.{name}" for name in matrices), f"{last}.layer_norm"),
        )
        yield link(f"{stack}.positions.weight", f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight")
        yield link(f"{stack}.norm.*", f"{stack}.final_layer_norm.*")


def names(config: T5Config) -> WeightMap:
    """Return the published names."""
    unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
    return WeightMap(tuple(_links(config)), ignored={unused: "cross-attention has no positions"})


def _read_tied(hf: HFConfig) -> bool | None:
    """Read the scale of the output; newer files have it besides the tying, which may be wrong."""
    return hf.get("scale_decoder_outputs", hf.get("tie_word_embeddings"))


def _read_decoder_layers(hf: HFConfig) -> int | None:
    return hf.get("num_layers") if hf.get("num_decoder_layers") is None else hf["num_decoder_layers"]


def _size(d_model: int, n_heads: int, d_ff: int, n_layers: int, d_head: int = 64) -> T5Config:
    return T5Config(
        d_model=d_model, n_heads=n_heads, d_head=d_head, d_ff=d_ff, n_encoder_layers=n_layers, n_decoder_layers=n_layers
    )


GATED = {"feed_forward": "gated-gelu", "tied": False}
t5 = register(
    T5Config,
    build,
    presets={
        "t5-tiny": _size(128, 4, 512, 3, d_head=32).changed(vocab_size=8000),
        "t5-small": T5Config(),
        "t5-base": _size(768, 12, 3072, 12),
        "t5-large": _size(1024, 16, 4096, 24),
        "t5-3b": _size(1024, 32, 16384, 24, d_head=128),
        "t5-11b": _size(1024, 128, 65536, 24, d_head=128),
        "t5-v1.1-small": _size(512, 6, 1024, 8).changed(**GATED),
        "t5-v1.1-base": _size(768, 12, 2048, 12).changed(**GATED),
        "t5-v1.1-large": _size(1024, 16, 2816, 24).changed(**GATED),
        "t5-v1.1-xl": _size(2048, 32, 5120, 24).changed(**GATED),
        "t5-v1.1-xxl": _size(4096, 64, 10240, 24).changed(**GATED),
    },
    published=Published(
        model_type="t5",
        architectures=(("T5ForConditionalGeneration", {}), ("T5WithLMHeadModel", {}), ("T5Model", {})),
        settings=settings_of(
            T5Config,
            *("d_model", "d_ff"),
            n_heads="num_heads",
            d_head="d_kv",
            n_encoder_layers="num_layers",
            n_decoder_layers=Setting(
                ("num_decoder_layers",), _read_decoder_layers, lambda n: {"num_decoder_layers": n}
            ),
            n_buckets="relative_attention_num_buckets",
            max_distance="relative_attention_max_distance",
            feed_forward="feed_forward_proj",
            tied=Setting(
                ("tie_word_embeddings", "scale_decoder_outputs"), _read_tied, lambda tied: {"tie_word_embeddings": tied}
            ),
            norm_eps="layer_norm_epsilon",
            dropout="dropout_rate",
        ),
        fixed={"is_encoder_decoder": True},
        names=names,
        start="decoder_start_token_id",
    ),
)
