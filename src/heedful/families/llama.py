"""LLaMA and Mistral: decoder-only, pre-norm, rotary positions, gated feed-forward, grouped key/value heads."""

from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal

from .. import core
from ..config import Config
from ..core import window
from ..errors import ConfigError, unknown
from .hf_config import HFConfig, Published, Setting, derived, optional, setting, settings_of
from .layers import DecoderOnlyConfig, decoder_only, residual_layer
from .registry import register
from .weight_map import WeightMap, layer_links, link

SCALINGS: dict[str, type] = {"linear": core.LinearScaling, "llama3": core.Llama3Scaling}


@dataclass(frozen=True, kw_only=True)
class ScalingConfig(Config):
    """How rotary positions are scaled to longer inputs."""

    title: ClassVar[str] = "rotary scaling"

    kind: Literal["linear", "llama3"]  # Divide all frequencies, or as LLaMA 3.1 only the low ones
    factor: float  # What frequencies are divided by
    low: float = 1.0  # "llama3": frequencies with fewer turns over original_length are divided
    high: float = 4.0  # "llama3": frequencies with more turns stay; those in between are interpolated
    original_length: int = 8192  # "llama3": the longest input of the training before the extension

    def check(self) -> None:
        self.require(self.factor > 0, f"factor must be above 0, not {self.factor}")
        self.require(self.high > self.low, f"high={self.high} must be above low={self.low}")
        self.require_positive("original_length")

    def build(self) -> Any:
        """Build the core's scaling of this kind."""
        kind = SCALINGS[self.kind]
        return kind(**{field.name: getattr(self, field.name) for field in fields(kind)})


@dataclass(frozen=True, kw_only=True)
class RotaryConfig(DecoderOnlyConfig):
    """The fields of LLaMA and its successors."""

    dropout: ClassVar[float] = 0.0

    vocab_size: int = 32000
    d_model: int = 4096
    n_heads: int = 32
    d_ff: int = 11008
    n_layers: int = 32
    max_length: int = 2048
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "silu"
    tied: bool = False
    n_kv_heads: int | None = None  # Key/value heads, which divide n_heads (grouped-query attention); None means n_heads
    d_head: int | None = None  # Width of a head; None means d_model / n_heads
    rotary_base: float = 10000.0  # Feature pair i of a head rotates by base^(−2i/d_head) radians per position
    scaling: ScalingConfig | None = None  # Kind, factor … of a model extended to longer inputs; None: not extended
    norm_eps: float = 1e-6  # Added to the mean square in every RMSNorm

    def check(self) -> None:
        super().check()
        self.require_positive("n_kv_heads", "d_head")
        if self.d_head is None:
            self.require_divisible("d_model", "n_heads", "change one, or give d_head")
        self.require_divisible("n_heads", "n_kv_heads")
        self.require(self.head_width % 2 == 0, f"rotary positions rotate pairs, but heads are {self.head_width} wide")

    @property
    def head_width(self) -> int:
        """K, the width of one head."""
        return self.d_model // self.n_heads if self.d_head is None else self.d_head


@dataclass(frozen=True, kw_only=True)
class LlamaConfig(RotaryConfig):
    """LLaMA 1 to 3. The defaults are LLaMA 7B."""

    family: ClassVar[str] = "llama"

    bias: bool = False  # Whether the projections of attention have biases; no published model has them
    feed_forward_bias: bool = False  # The same for the feed-forward sublayers


def assemble(
    config: RotaryConfig, mask: core.Mask | None = None, *, bias: bool = False, feed_forward_bias: bool = False
) -> core.DecoderOnly:
    """Build the model with this mask, which is causal by default."""
    norm = partial(core.RMSNorm, eps=config.norm_eps)
    attention = partial(core.MultiHeadAttention, n_kv_heads=config.n_kv_heads, d_head=config.d_head, bias=bias)
    feed_forward = partial(core.GatedFeedForward, bias=feed_forward_bias)
    layers = (
        residual_layer(config, core.PreNorm, norm, attention=attention, feed_forward=feed_forward)
        for _ in range(config.n_layers)
    )
    scaling = None if config.scaling is None else config.scaling.build()
    positions = core.Rotary(config.head_width, base=config.rotary_base, scaling=scaling)
    return decoder_only(config, core.Decoder(layers, mask=mask, positions=positions, norm=norm(config.d_model)))


def build(config: LlamaConfig) -> core.DecoderOnly:
    """Build LLaMA, in which every token sees all tokens before it."""
    return assemble(config, bias=config.bias, feed_forward_bias=config.feed_forward_bias)


NAMES = WeightMap(
    (
        link("embedding.weight", "model.embed_tokens.weight"),
        *layer_links(
            "decoder.layers.*",
            "model.layers.*",
            self_attention=(*(f"self_attn.{name}_proj" for name in ("q", "k", "v", "o")), "input_layernorm"),
            feed_forward=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj", "post_attention_layernorm"),
        ),
        link("decoder.norm.*", "model.norm.*"),
        link("head.embedding.weight", "lm_head.weight"),
    ),
    ignored={"model.layers.*.self_attn.rotary_emb.inv_freq": "the frequencies, which are computed"},
    prefix="model.",
)


def _rotary(hf: HFConfig) -> dict[str, Any]:
    """Return the settings of rotary positions, which older files store under two keys."""
    scaling = hf.get("rope_parameters") or hf.get("rope_scaling") or {}
    if not isinstance(scaling, dict):
        raise ConfigError(f"rotary scaling must be a mapping, not {scaling!r}")
    settings = {"rope_theta": hf.get("rope_theta"), **scaling}
    kind = settings.get("rope_type", settings.get("type")) or "default"
    if kind not in ("default", *SCALINGS):
        raise ConfigError(unknown("or unsupported rope_type", kind, ["default", *SCALINGS]))
    if settings.get("partial_rotary_factor", 1.0) != 1.0:
        raise ConfigError(f"partial_rotary_factor={settings['partial_rotary_factor']!r} is not supported; only 1.0 is")
    return {**settings, "rope_type": kind}


LLAMA3_KEYS = {
    "factor": "factor",
    "low": "low_freq_factor",
    "high": "high_freq_factor",
    "original_length": "original_max_position_embeddings",
}
SCALING_KEYS = {"linear": {"factor": "factor"}, "llama3": LLAMA3_KEYS}


def _read_scaling(hf: HFConfig) -> ScalingConfig | None:
    settings = _rotary(hf)
    kind = settings["rope_type"]
    if kind == "default":
        return None
    keys = SCALING_KEYS[kind]
    if absent := [key for key in keys.values() if key not in settings]:
        raise ConfigError(f"rotary scaling of the kind {kind!r} needs {', '.join(absent)}")
    return ScalingConfig(kind=kind, **{name: settings[key] for name, key in keys.items()})


def _write_scaling(scaling: ScalingConfig | None) -> dict[str, Any]:
    if scaling is None:
        return {}
    values = {key: getattr(scaling, name) for name, key in SCALING_KEYS[scaling.kind].items()}
    return {"rope_scaling": {"rope_type": scaling.kind, **values}}


def _default_head_width(hf: HFConfig) -> int | None:
    d_model, n_heads = hf.get("hidden_size"), hf.get("num_attention_heads")
    return d_model // n_heads if isinstance(d_model, int) and isinstance(n_heads, int) and n_heads else None


SETTINGS = settings_of(
    RotaryConfig,
    d_head=derived("head_dim", _default_head_width),
    rotary_base=Setting(
        ("rope_theta", "rope_parameters"),
        lambda hf: _rotary(hf).get("rope_theta"),
        lambda base: {"rope_theta": base},
    ),
    scaling=Setting(("rope_scaling", "rope_parameters"), _read_scaling, _write_scaling),
    tied="tie_word_embeddings",
    norm_eps="rms_norm_eps",
)
FIXED = {"is_encoder_decoder": False}

TINY = {"vocab_size": 8000, "d_model": 128, "n_heads": 4, "n_kv_heads": 2, "d_ff": 352, "n_layers": 4}
LLAMA_7B = LlamaConfig()
LLAMA_2 = LLAMA_7B.changed(max_length=4096, norm_eps=1e-5)
LLAMA_3 = LLAMA_2.changed(vocab_size=128256, n_kv_heads=8, d_ff=14336, max_length=8192, rotary_base=500000.0)
LLAMA_3_2_1B = LLAMA_3.changed(
    d_model=2048,
    d_ff=8192,
    n_layers=16,
    max_length=131072,
    scaling=ScalingConfig(kind="llama3", factor=32.0),
    tied=True,
)
llama = register(
    LlamaConfig,
    build,
    presets={
        "llama-tiny": LLAMA_7B.changed(**TINY, max_length=256),
        "llama-7b": LLAMA_7B,
        "llama-13b": LLAMA_7B.changed(d_model=5120, n_heads=40, d_ff=13824, n_layers=40),
        "llama-2-7b": LLAMA_2,
        "llama-2-70b": LLAMA_2.changed(d_model=8192, n_heads=64, n_kv_heads=8, d_ff=28672, n_layers=80),
        "llama-3-8b": LLAMA_3,
        "llama-3.1-8b": LLAMA_3.changed(max_length=131072, scaling=ScalingConfig(kind="llama3", factor=8.0)),
        "llama-3.2-1b": LLAMA_3_2_1B,
        "llama-3.2-3b": LLAMA_3_2_1B.changed(d_model=3072, n_heads=24, n_layers=28),
    },
    published=Published(
        model_type="llama",
        architectures=(("LlamaForCausalLM", {}), ("LlamaModel", {})),
        settings=SETTINGS
        | {
            "n_kv_heads": derived("num_key_value_heads", lambda hf: hf.get("num_attention_heads")),
            "bias": setting("attention_bias"),
            "feed_forward_bias": setting("mlp_bias"),
        },
        fixed=FIXED,
        names=lambda config: NAMES,
    ),
)


@dataclass(frozen=True, kw_only=True)
class MistralConfig(RotaryConfig):
    """Mistral. The defaults are those of transformers for missing keys; the presets are the published models."""

    family: ClassVar[str] = "mistral"

    n_kv_heads: int = 8
    d_ff: int = 14336
    max_length: int = 131072
    window: int | None = 4096  # Tokens that a token sees in each layer, itself included; None means no limit

    def check(self) -> None:
        super().check()
        self.require_positive("window")


def build_mistral(config: MistralConfig) -> core.DecoderOnly:
    """Build LLaMA with a sliding window, or without one if `window` is None."""
    return assemble(config, None if config.window is None else core.causal() & window(config.window))


MISTRAL_7B = MistralConfig(max_length=32768, norm_eps=1e-5)
mistral = register(
    MistralConfig,
    build_mistral,
    presets={
        "mistral-tiny": MISTRAL_7B.changed(**TINY, max_length=256, window=64),
        "mistral-7b": MISTRAL_7B,
        "mistral-7b-v0.2": MISTRAL_7B.changed(rotary_base=1e6, window=None),
        "mistral-7b-v0.3": MISTRAL_7B.changed(vocab_size=32768, rotary_base=1e6, window=None),
    },
    published=Published(
        model_type="mistral",
        architectures=(("MistralForCausalLM", {}), ("MistralModel", {})),
        settings=SETTINGS | {"n_kv_heads": optional("num_key_value_heads"), "window": optional("sliding_window")},
        fixed=FIXED,
        names=lambda config: NAMES,
    ),
)
