"""PatchTST: an encoder alone over the patches of a series, forecasting the steps that follow."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import nn

from .. import core
from ..config import FamilyConfig
from ..errors import ConfigError, unknown
from .hf_config import ACTIVATIONS, Given, Published, Setting, enum, setting, unpublished
from .registry import register
from .weight_map import WeightMap, link


@dataclass(frozen=True, kw_only=True)
class PatchTSTConfig(FamilyConfig):
    """The defaults are the paper's sizes over 30 days of prices: 9 patches of 6 days, and the 5 days that follow.

    `channels`: "independent" channels are read one by one with the same weights, so that any number may be given;
    "mixed" reads all `n_channels` of a patch as one vector. `scale`: each series by its mean and deviation ("std"), by
    the mean of its absolute values ("mean"), or not at all ("none"). `pool`: the forecast is made from all patches one
    after the other ("joined"), or from their mean or largest values. `direct` adds a linear map from the steps
    themselves, which no published model has. `positions` are learned either way and say how
    they start. Where steps are left over by the patches, they are the oldest, and count in the scale alone.
    Pre-norm has no norm after its last layer, as it is published.
    """

    family: ClassVar[str] = "patchtst"

    context_length: int = 30
    horizon: int = 5
    n_channels: int = 1
    patch_length: int = 6
    stride: int = 3
    channels: Literal["independent", "mixed"] = "independent"
    scale: Literal["std", "mean", "none"] = "std"
    d_model: int = 128
    n_heads: int = 16
    d_ff: int = 256
    n_layers: int = 3
    norm: Literal["batch", "layer"] = "batch"
    pre_norm: bool = False
    positions: Literal["learned", "sinusoidal"] = "learned"
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "gelu"
    bias: bool = True
    pool: Literal["joined", "mean", "max"] = "joined"
    direct: bool = False
    norm_eps: float = 1e-5
    dropout: float = 0.2
    embedding_dropout: float = 0.2
    attention_dropout: float = 0.0
    activation_dropout: float = 0.2
    head_dropout: float = 0.0

    def check(self) -> None:
        self.require_positive("context_length", "horizon", "n_channels", "patch_length", "stride")
        self.require_positive("d_model", "n_heads", "d_ff", "n_layers")
        self.require_share("dropout", "embedding_dropout", "attention_dropout", "activation_dropout", "head_dropout")
        self.require_divisible("d_model", "n_heads")
        self.require(
            self.context_length > self.patch_length,
            f"context_length={self.context_length} must be longer than patch_length={self.patch_length}",
        )

    @property
    def n_patches(self) -> int:
        """P."""
        return (self.context_length - self.patch_length) // self.stride + 1


SCALES: dict[str, Callable[[], nn.Module]] = {"std": core.InstanceScale, "mean": core.MeanScale, "none": core.NoScale}
POOLS: dict[str, Callable[[int], nn.Module]] = {
    "joined": core.Joined,
    "mean": lambda n_patches: core.Mean(),
    "max": lambda n_patches: core.Largest(),
}
NORMS: dict[str, type[core.BatchNorm | core.LayerNorm]] = {"batch": core.BatchNorm, "layer": core.LayerNorm}


def build(config: PatchTSTConfig) -> core.Forecaster:
    """Put the parts together."""
    d_model = config.d_model
    residual = core.PreNorm if config.pre_norm else core.PostNorm

    def wrap(part: nn.Module) -> nn.Module:
        return residual(part, NORMS[config.norm](d_model, eps=config.norm_eps), config.dropout)

    def layer() -> nn.Module:
        attention = core.MultiHeadAttention(d_model, config.n_heads, dropout=config.attention_dropout)
        feed_forward = core.FeedForward(
            d_model, config.d_ff, activation=config.activation, bias=config.bias, dropout=config.activation_dropout
        )
        return core.EncoderLayer(wrap(attention), wrap(feed_forward))

    together = config.n_channels if config.channels == "mixed" else 1
    return core.Forecaster(
        context_length=config.context_length,
        scale=SCALES[config.scale](),
        embedding=core.SeriesEmbedding(
            d_model, patch_length=config.patch_length, stride=config.stride, n_channels=together
        ),
        encoder=core.Encoder(
            [layer() for _ in range(config.n_layers)], positions=_positions(config), dropout=config.embedding_dropout
        ),
        head=_head(config, together),
        direct=core.DirectForecast(config.context_length, config.horizon) if config.direct else None,
    )


def _head(config: PatchTSTConfig, n_channels: int) -> core.ForecastHead:
    pool = POOLS[config.pool](config.n_patches)
    width = config.d_model * (config.n_patches if config.pool == "joined" else 1)
    return core.ForecastHead(pool, width, horizon=config.horizon, n_channels=n_channels, dropout=config.head_dropout)


@torch.no_grad()
def _positions(config: PatchTSTConfig) -> core.Learned:
    """Small beside the patches at first: sinusoids with mean 0 and deviation 0.1, or normal with deviation 0.02."""
    positions = core.Learned(config.n_patches, config.d_model)
    if config.positions == "sinusoidal":
        waves = core.Sinusoidal(config.d_model).table(config.n_patches)
        positions.weight.copy_((waves - waves.mean()) / (10 * waves.std()))
    else:
        nn.init.normal_(positions.weight, std=0.02)
    return positions


def names(config: PatchTSTConfig) -> WeightMap:
    """A batch norm is wrapped there, and counts its batches, which nothing reads."""
    ours, theirs = "encoder.layers.*", "model.encoder.layers.*"
    inner = ".batchnorm" if config.norm == "batch" else ""
    attention = f"{ours}.attention.part"
    return WeightMap(
        (
            link("embedding.project.*", "model.encoder.embedder.input_embedding.*"),
            link("encoder.positions.weight", "model.encoder.positional_encoder.position_enc"),
            link(f"{attention}.query.*", f"{theirs}.self_attn.q_proj.*"),
            link(f"{attention}.key_value.*", (f"{theirs}.self_attn.k_proj.*", f"{theirs}.self_attn.v_proj.*")),
            link(f"{attention}.out.*", f"{theirs}.self_attn.out_proj.*"),
            link(f"{ours}.attention.norm.*", f"{theirs}.norm_sublayer1{inner}.*"),
            link(f"{ours}.feed_forward.part.wide.*", f"{theirs}.ff.0.*"),
            link(f"{ours}.feed_forward.part.narrow.*", f"{theirs}.ff.3.*"),
            link(f"{ours}.feed_forward.norm.*", f"{theirs}.norm_sublayer3{inner}.*"),
            link("head.out.*", "head.projection.*"),
        ),
        ignored={f"{theirs}.*.batchnorm.num_batches_tracked": "counts the batches of training"},
    )


PUBLISHED_SCALES = {"std": "std", "mean": "mean", True: "mean", None: "none", False: "none"}


def _read_scale(given: Given) -> str:
    """Where nothing is said, "std"; a word of None says that there is none."""
    for key in ("scaling_dim", "keepdim", "minimum_scale", "default_scale"):
        if given.get(key) is not None:
            raise ConfigError(f"patchtst: {key}={given[key]!r} is not supported; leave it out")
    word = given.get("scaling", "std")
    if not isinstance(word, str | bool | None) or word not in PUBLISHED_SCALES:
        raise ConfigError(f"patchtst: {unknown('or unsupported scaling', word, map(str, PUBLISHED_SCALES))}")
    return PUBLISHED_SCALES[word]


PUBLISHED_POOLS = {"joined": None, "mean": "mean", "max": "max"}


def _read_pool(given: Given) -> str:
    """A word of None says that there is none."""
    word = given.get("pooling_type")
    found = [ours for ours, theirs in PUBLISHED_POOLS.items() if theirs == word]
    if not found:
        raise ConfigError(f"patchtst: {unknown('or unsupported pooling_type', word, ['mean', 'max', 'None'])}")
    return found[0]


USUAL = {
    "context_length": 32,
    "prediction_length": 24,
    "patch_length": 1,
    "patch_stride": 1,
    "num_attention_heads": 4,
    "ffn_dim": 512,
    "pre_norm": True,
    "positional_encoding_type": "sincos",
    "pooling_type": "mean",
    "path_dropout": 0.0,
    "positional_dropout": 0.0,
    "ff_dropout": 0.0,
}


def _paper(context_length: int) -> PatchTSTConfig:
    """The paper's, over hours. It repeats the last value to make one patch more, whence its 42 and 64 patches."""
    return PatchTSTConfig(context_length=context_length, patch_length=16, stride=8, horizon=96)


patchtst = register(
    PatchTSTConfig,
    build,
    presets={
        "patchtst-tiny": PatchTSTConfig(d_model=64, n_heads=4, d_ff=128, n_layers=2),
        "patchtst-small": PatchTSTConfig(),
        "patchtst-base": PatchTSTConfig(d_model=256, d_ff=512, n_layers=4),
        "patchtst-42": _paper(336),
        "patchtst-64": _paper(512),
    },
    published=Published(
        model_type="patchtst",
        architectures=(("PatchTSTForPrediction", {}),),
        settings={
            "context_length": setting("context_length"),
            "horizon": setting("prediction_length"),
            "n_channels": setting("num_input_channels"),
            "patch_length": setting("patch_length"),
            "stride": setting("patch_stride"),
            "channels": unpublished(
                "independent", "patchtst: channels={value!r} has no published form; only 'independent' has one"
            ),
            "scale": Setting(("scaling",), _read_scale, lambda scale: {"scaling": None if scale == "none" else scale}),
            "d_model": setting("d_model"),
            "n_heads": setting("num_attention_heads"),
            "d_ff": setting("ffn_dim"),
            "n_layers": setting("num_hidden_layers"),
            "norm": enum("norm_type", {"batchnorm": "batch", "layernorm": "layer"}),
            "pre_norm": setting("pre_norm"),
            "positions": enum("positional_encoding_type", {"random": "learned", "sincos": "sinusoidal"}),
            "activation": enum("activation_function", ACTIVATIONS),
            "bias": setting("bias"),
            "pool": Setting(("pooling_type",), _read_pool, lambda pool: {"pooling_type": PUBLISHED_POOLS[pool]}),
            "direct": unpublished(False, "patchtst: direct=True has no published form"),
            "norm_eps": setting("norm_eps"),
            "dropout": setting("path_dropout"),
            "embedding_dropout": setting("positional_dropout"),
            "attention_dropout": setting("attention_dropout"),
            "activation_dropout": setting("ff_dropout"),
            "head_dropout": setting("head_dropout"),
        },
        fixed={
            "share_embedding": True,
            "share_projection": True,
            "channel_attention": False,
            "use_cls_token": False,
            "is_encoder_decoder": False,
            "loss": "mse",
        },
        names=names,
        usual=USUAL,
    ),
)
