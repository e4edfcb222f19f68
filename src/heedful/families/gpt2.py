"""GPT-2: decoder-only, pre-norm, learned positions, and an output tied to the embedding."""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

import torch

from .. import core
from .hf_config import ACTIVATIONS, HFConfig, Published, Setting, enum, settings_of
from .layers import DecoderOnlyConfig, decoder_only, residual_layer
from .registry import register
from .weight_map import TRANSPOSED, WeightMap, link


@dataclass(frozen=True, kw_only=True)
class GPT2Config(DecoderOnlyConfig):
    """GPT-2. The defaults are the smallest published model."""

    family: ClassVar[str] = "gpt2"

    vocab_size: int = 50257
    max_length: int = 1024
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "gelu_tanh"
    norm_eps: float = 1e-5  # Added to the variance in every layer norm
    dropout: float = 0.1  # Probability of dropping a feature of every sublayer's output
    embedding_dropout: float = 0.1  # Probability of dropping a feature of the embeddings with their positions
    attention_dropout: float = 0.1

    def check(self) -> None:
        super().check()
        self.require_share("dropout", "embedding_dropout")
        self.require_divisible("d_model", "n_heads")


def build(config: GPT2Config) -> core.DecoderOnly:
    """Build GPT-2; projections into the residual stream are initialized smaller, by 1/√(2N)."""
    norm = partial(core.LayerNorm, eps=config.norm_eps)
    decoder = core.Decoder(
        [residual_layer(config, core.PreNorm, norm) for _ in range(config.n_layers)],
        positions=core.Learned(config.max_length, config.d_model),
        norm=norm(config.d_model),
        dropout=config.embedding_dropout,
    )
    model = decoder_only(config, decoder)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith((".out_proj.weight", ".down_proj.weight")):
                parameter.mul_((2 * config.n_layers) ** -0.5)
    return model


LAYER, HF = "decoder.layers.*", "transformer.h.*"
HEADS = f"{LAYER}.self_attention.sublayer"
NAMES = WeightMap(
    (
        link("embedding.weight", "transformer.wte.weight"),
        link("decoder.positions.weight", "transformer.wpe.weight"),
        link(f"{LAYER}.self_attention.norm.*", f"{HF}.ln_1.*"),
        link((f"{HEADS}.q_proj.*", f"{HEADS}.kv_proj.*"), f"{HF}.attn.c_attn.*", TRANSPOSED),
        link(f"{HEADS}.out_proj.*", f"{HF}.attn.c_proj.*", TRANSPOSED),
        link(f"{LAYER}.feed_forward.norm.*", f"{HF}.ln_2.*"),
        link(f"{LAYER}.feed_forward.sublayer.up_proj.*", f"{HF}.mlp.c_fc.*", TRANSPOSED),
        link(f"{LAYER}.feed_forward.sublayer.down_proj.*", f"{HF}.mlp.c_proj.*", TRANSPOSED),
        link("decoder.norm.*", "transformer.ln_f.*"),
        link("head.embedding.weight", "lm_head.weight"),
    ),
    ignored={
        f"{HF}.attn.bias": "the causal mask",
        f"{HF}.attn.masked_bias": "the score of masked positions",
    },
    prefix="transformer.",
)


def _read_d_ff(hf: HFConfig) -> Any:
    """Read the inner width, which is four times d_model by default."""
    inner, d_model = hf.get("n_inner"), hf.get("n_embd")
    return 4 * d_model if inner is None and isinstance(d_model, int) else inner


gpt2 = register(
    GPT2Config,
    build,
    presets={
        "gpt2-tiny": GPT2Config(vocab_size=8000, d_model=128, n_heads=4, d_ff=512, n_layers=4, max_length=256),
        "gpt2-mini": GPT2Config(vocab_size=8000, d_model=384, n_heads=6, d_ff=1536, n_layers=6, max_length=256),
        "gpt2": GPT2Config(),
        "gpt2-medium": GPT2Config(d_model=1024, n_heads=16, d_ff=4096, n_layers=24),
        "gpt2-large": GPT2Config(d_model=1280, n_heads=20, d_ff=5120, n_layers=36),
        "gpt2-xl": GPT2Config(d_model=1600, n_heads=25, d_ff=6400, n_layers=48),
    },
    published=Published(
        model_type="gpt2",
        architectures=(("GPT2LMHeadModel", {}), ("GPT2Model", {})),
        settings=settings_of(
            GPT2Config,
            d_model="n_embd",
            n_heads="n_head",
            d_ff=Setting(("n_inner",), _read_d_ff, lambda width: {"n_inner": width}),
            n_layers="n_layer",
            max_length="n_positions",
            activation=enum("activation_function", ACTIVATIONS),
            tied="tie_word_embeddings",
            norm_eps="layer_norm_epsilon",
            dropout="resid_pdrop",
            embedding_dropout="embd_pdrop",
            attention_dropout="attn_pdrop",
        ),
        fixed={
            "scale_attn_weights": True,
            "scale_attn_by_inverse_layer_idx": False,
            "add_cross_attention": False,
            "is_encoder_decoder": False,
        },
        names=lambda config: NAMES,
    ),
)
