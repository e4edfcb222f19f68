"""BART: encoder-decoder, post-norm, learned positions, a norm after the embeddings, one matrix for all tokens.

Marian, the translation models of OPUS-MT: BART's layers with sinusoidal positions, and one or two vocabularies.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..core import EncoderDecoder, Learned, Sinusoidal
from ..errors import ConfigError
from .encoder_decoder import EncoderDecoderTransformerConfig, assemble, stacks
from .hf_config import ACTIVATIONS, HFConfig, Published, Setting, derived, enum, setting, settings_of
from .layers import initialize_normal
from .registry import register
from .weight_map import ONE_ROW, Formula, Link, WeightMap, layer_links, link, zeros


@dataclass(frozen=True, kw_only=True)
class BartConfig(EncoderDecoderTransformerConfig):
    """BART. The defaults are the large model."""

    family: ClassVar[str] = "bart"

    vocab_size: int = 50265
    d_model: int = 1024
    n_heads: int = 16
    d_ff: int = 4096
    n_encoder_layers: int = 12
    n_decoder_layers: int = 12
    max_length: int = 1024
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "gelu"
    scale_embedding: bool = False  # Multiply the embeddings by √d_model, as in the paper of the Transformer

    def check(self) -> None:
        super().check()
        self.require_divisible("d_model", "n_heads")
        self.check_tied()

    def check_tied(self) -> None:
        """Raise unless all tokens share one matrix, as BART needs."""
        self.require(self.tied == "all", f'{self.family} has one matrix for all tokens: tied="all", not {self.tied!r}')


def build(config: BartConfig) -> EncoderDecoder:
    """Build BART; the position table begins with two unused rows, as in every published BART."""
    encoder, decoder = stacks(
        config, positions=lambda causal: Learned(config.max_length, config.d_model, offset=2), has_entry_norm=True
    )
    model = assemble(config, encoder, decoder, scale_embedding=config.scale_embedding, head_bias=True)
    return initialize_normal(model, 0.02)


def stack_links(stack: str) -> Iterator[Link]:
    """Return the links of the layers of a stack; those of cross-attention have no effect for the encoder."""
    projections = [f"{name}_proj" for name in ("q", "k", "v", "out")]
    return layer_links(
        f"{stack}.layers.*",
        f"model.{stack}.layers.*",
        self_attention=(*(f"self_attn.{name}" for name in projections), "self_attn_layer_norm"),
        cross_attention=(*(f"encoder_attn.{name}" for name in projections), "encoder_attn_layer_norm"),
        feed_forward=("fc1", "fc2", "final_layer_norm"),
    )


LAYERS = (*stack_links("encoder"), *stack_links("decoder"))
SHARED = link("source_embedding.weight", "model.shared.weight")
ENDS = (
    link("source_embedding.weight", "model.encoder.embed_tokens.weight"),
    link("target_embedding.weight", "model.decoder.embed_tokens.weight"),
    link("head.embedding.weight", "lm_head.weight"),
    link("head.bias", "final_logits_bias", ONE_ROW, absent=zeros),
)
NAMES = WeightMap(
    (
        SHARED,
        *ENDS,
        *LAYERS,
        link("encoder.positions.weight", "model.encoder.embed_positions.weight"),
        link("decoder.positions.weight", "model.decoder.embed_positions.weight"),
        link("encoder.entry.*", "model.encoder.layernorm_embedding.*"),
        link("decoder.entry.*", "model.decoder.layernorm_embedding.*"),
    ),
    prefix="model.",
)

SETTINGS = settings_of(
    BartConfig,
    *("d_model", "scale_embedding", "activation_dropout"),
    n_heads=setting("encoder_attention_heads", "decoder_attention_heads"),
    d_ff=setting("encoder_ffn_dim", "decoder_ffn_dim"),
    n_encoder_layers="encoder_layers",
    n_decoder_layers="decoder_layers",
    activation=enum("activation_function", ACTIVATIONS),
)
# Older files have these keys, which describe the architecture.
FIXED = {"is_encoder_decoder": True, "normalize_before": False, "add_final_layer_norm": False}

TINY = {"vocab_size": 8000, "d_model": 128, "n_heads": 4, "d_ff": 512, "n_encoder_layers": 3, "n_decoder_layers": 3}
BASE = BartConfig(d_model=768, n_heads=12, d_ff=3072, n_encoder_layers=6, n_decoder_layers=6)
bart = register(
    BartConfig,
    build,
    presets={
        "bart-tiny": BASE.changed(**TINY),
        "bart-base": BASE,
        "bart-large": BartConfig(),
    },
    published=Published(
        model_type="bart",
        architectures=(("BartForConditionalGeneration", {}), ("BartModel", {})),
        settings=SETTINGS,
        fixed=FIXED | {"tie_word_embeddings": True, "normalize_embedding": True, "static_position_embeddings": False},
        names=lambda config: NAMES,
        start="decoder_start_token_id",
    ),
)


@dataclass(frozen=True, kw_only=True)
class MarianConfig(BartConfig):
    """Marian. The defaults are those of transformers for missing keys; the presets are the published models."""

    family: ClassVar[str] = "marian"

    vocab_size: int = 58101

    def check_tied(self) -> None:
        """Accept any way of tying the matrices."""


def build_marian(config: MarianConfig) -> EncoderDecoder:
    """Build Marian, whose sinusoids have all sines before all cosines."""
    encoder, decoder = stacks(config, positions=lambda causal: _marian_positions(config))
    return assemble(config, encoder, decoder, scale_embedding=config.scale_embedding, head_bias=True)


def _marian_positions(config: MarianConfig) -> Sinusoidal:
    return Sinusoidal(config.d_model, config.max_length, layout="halves")


def marian_names(config: MarianConfig) -> WeightMap:
    """Return the published names; a matrix that both embeddings share has a third name."""
    table = Formula((config.max_length, config.d_model), lambda: _marian_positions(config).table())
    return WeightMap(
        (*((SHARED,) if config.tied == "all" else ()), *ENDS, *LAYERS),
        computed={f"model.{stack}.embed_positions.weight": table for stack in ("encoder", "decoder")},
        prefix="model.",
    )


TIED = {"all": (True, True), "output": (False, True), "none": (False, False)}
TIED_KEYS = ("share_encoder_decoder_embeddings", "tie_word_embeddings")


def _read_tied(hf: HFConfig) -> str:
    values = tuple(hf.get(key, True) for key in TIED_KEYS)
    for tied, expected in TIED.items():
        if values == expected:
            return tied
    raise ConfigError(f"{TIED_KEYS[0]}={values[0]!r} with {TIED_KEYS[1]}={values[1]!r} is not supported")


MARIAN_BASE = MarianConfig(
    d_model=512,
    n_heads=8,
    d_ff=2048,
    n_encoder_layers=6,
    n_decoder_layers=6,
    max_length=512,
    activation="silu",
    scale_embedding=True,
)
marian = register(
    MarianConfig,
    build_marian,
    presets={
        "marian-tiny": MARIAN_BASE.changed(**TINY),
        "marian-base": MARIAN_BASE,
        "marian-big": MARIAN_BASE.changed(d_model=1024, n_heads=16, d_ff=4096, activation="relu"),
    },
    published=Published(
        model_type="marian",
        architectures=(("MarianMTModel", {}), ("MarianModel", {})),
        settings=SETTINGS
        | {
            "target_vocab_size": derived("decoder_vocab_size", lambda hf: hf.get("vocab_size")),
            "tied": Setting(TIED_KEYS, _read_tied, lambda tied: dict(zip(TIED_KEYS, TIED[tied], strict=True))),
        },
        fixed=FIXED | {"normalize_embedding": False, "static_position_embeddings": True},
        names=marian_names,
        start="decoder_start_token_id",
    ),
)
