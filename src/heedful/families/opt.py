"""OPT: decoder-only, pre-norm, learned positions, ReLU, and an output tied to the embedding."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .. import core
from .bart import stack_links
from .hf_config import ACTIVATIONS, Published, enum, setting, settings_of
from .layers import DecoderOnlyConfig, decoder_only, residual_layer
from .registry import register
from .weight_map import WeightMap, link


@dataclass(frozen=True, kw_only=True)
class OPTConfig(DecoderOnlyConfig):
    """OPT. The defaults are the smallest published model."""

    family: ClassVar[str] = "opt"

    vocab_size: int = 50272
    max_length: int = 2048
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    dropout: float = 0.1  # Probability of dropping a feature of every sublayer's output

    def check(self) -> None:
        super().check()
        self.require_share("dropout")
        self.require_divisible("d_model", "n_heads")


def build(config: OPTConfig) -> core.DecoderOnly:
    """Build OPT; the position table begins with two unused rows, as in BART."""
    decoder = core.Decoder(
        [residual_layer(config, core.PreNorm, core.LayerNorm) for _ in range(config.n_layers)],
        positions=core.Learned(config.max_length, config.d_model, offset=2),
        norm=core.LayerNorm(config.d_model),
    )
    return decoder_only(config, decoder)


NAMES = WeightMap(
    (
        link("embedding.weight", "model.decoder.embed_tokens.weight"),
        link("decoder.positions.weight", "model.decoder.embed_positions.weight"),
        *stack_links("decoder"),
        link("decoder.norm.*", "model.decoder.final_layer_norm.*"),
        link("head.embedding.weight", "lm_head.weight"),
    ),
    prefix="model.",
)

PUBLISHED = Published(
    model_type="opt",
    architectures=(("OPTForCausalLM", {}), ("OPTModel", {})),
    settings=settings_of(
        OPTConfig,
        d_model=setting("hidden_size", "word_embed_proj_dim"),
        d_ff="ffn_dim",
        activation=enum("activation_function", ACTIVATIONS),
        tied="tie_word_embeddings",
    ),
    fixed={
        "do_layer_norm_before": True,
        "_remove_final_layer_norm": False,
        "enable_bias": True,
        "layer_norm_elementwise_affine": True,
        "is_encoder_decoder": False,
    },
    names=lambda config: NAMES,
)

SMALLEST = OPTConfig()
opt = register(
    OPTConfig,
    build,
    presets={
        "opt-tiny": SMALLEST.changed(vocab_size=8000, d_model=128, n_heads=4, d_ff=512, n_layers=4, max_length=256),
        "opt-125m": SMALLEST,
        "opt-1.3b": SMALLEST.changed(d_model=2048, n_heads=32, d_ff=8192, n_layers=24),
        "opt-2.7b": SMALLEST.changed(d_model=2560, n_heads=32, d_ff=10240, n_layers=32),
        "opt-6.7b": SMALLEST.changed(d_model=4096, n_heads=32, d_ff=16384, n_layers=32),
    },
    published=PUBLISHED,
)
