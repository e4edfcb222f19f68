"""OPT: decoder-only, pre-norm, learned positions, ReLU, and an output tied to the embedding."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from .. import core
from ..config import FamilyConfig
from .bart import layer_links
from .hf_config import ACTIVATIONS, Published, enum, setting
from .registry import initialize_normal, register, residual_layer
from .weight_map import WeightMap, link


@dataclass(frozen=True, kw_only=True)
class OPTConfig(FamilyConfig):
    """OPT. The defaults are the smallest published model."""

    family: ClassVar[str] = "opt"
    norm_eps: ClassVar[float] = 1e-5

    vocab_size: int = 50272  # Number of tokens; training sets it to that of a new tokenizer
    d_model: int = 768  # Width of the embeddings and of all layers
    n_heads: int = 12  # Attention heads of each layer
    d_ff: int = 3072  # Inner width of the feed-forward sublayers
    n_layers: int = 12  # Layers of the decoder
    max_length: int = 2048  # The most tokens of a text
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"  # Between the matrices of feed-forward parts
    tied: bool = True  # Whether the output shares the embedding's matrix
    dropout: float = 0.1  # Probability of dropping a feature of every sublayer's output
    attention_dropout: float = 0.0  # Probability of dropping an attention weight

    def check(self) -> None:
        self.require_positive("vocab_size", "d_model", "n_heads", "d_ff", "n_layers", "max_length")
        self.require_share("dropout", "attention_dropout")
        self.require_divisible("d_model", "n_heads")


def build(config: OPTConfig) -> core.DecoderOnly:
    """Build OPT; the position table begins with two unused rows, as in BART."""
    d_model = config.d_model
    embedding = core.TokenEmbedding(config.vocab_size, d_model, scale=False)
    decoder = core.Decoder(
        [residual_layer(config, core.PreNorm) for _ in range(config.n_layers)],
        positions=core.Learned(config.max_length, d_model, offset=2),
        norm=core.LayerNorm(d_model, eps=config.norm_eps),
    )
    head = core.VocabularyHead(d_model, config.vocab_size, embedding=embedding if config.tied else None)
    return initialize_normal(core.DecoderOnly(embedding=embedding, decoder=decoder, head=head), 0.02)


NAMES = WeightMap(
    (
        link("embedding.weight", "model.decoder.embed_tokens.weight"),
        link("decoder.positions.weight", "model.decoder.embed_positions.weight"),
        *layer_links(),
        link("decoder.norm.*", "model.decoder.final_layer_norm.*"),
        link("head.embedding.weight", "lm_head.weight"),
    ),
    prefix="model.",
)

PUBLISHED = Published(
    model_type="opt",
    architectures=(("OPTForCausalLM", {}), ("OPTModel", {})),
    settings={
        "vocab_size": setting("vocab_size"),
        "d_model": setting("hidden_size", "word_embed_proj_dim"),
        "n_heads": setting("num_attention_heads"),
        "d_ff": setting("ffn_dim"),
        "n_layers": setting("num_hidden_layers"),
        "max_length": setting("max_position_embeddings"),
        "activation": enum("activation_function", ACTIVATIONS),
        "tied": setting("tie_word_embeddings"),
        "dropout": setting("dropout"),
        "attention_dropout": setting("attention_dropout"),
    },
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
