"""PatchTST: an encoder over the patches of a time series, which forecasts the next steps."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from torch import nn

from .. import core
from .hf_config import ACTIVATIONS, Published, enum, settings_of, unpublished
from .layers import LayersConfig, residual_layer
from .registry import register
from .weight_map import WeightMap, layer_links, link


@dataclass(frozen=True, kw_only=True)
class PatchTSTConfig(LayersConfig):
    """PatchTST. The defaults are the paper's sizes over 30 days of prices: 9 patches of 6 days forecast 5 days."""

    family: ClassVar[str] = "patchtst"

    context_length: int = 30  # Steps that the model reads
    horizon: int = 5  # Steps that it forecasts
    n_channels: int = 1  # Channels of a series, if they are mixed; training takes them from the data
    patch_length: int = 6  # Steps of a patch
    stride: int = 3  # Steps from one patch to the next; the oldest steps that fill no patch are left out
    channels: Literal["independent", "mixed"] = "independent"  # Read one by one with the same weights, or all together
    scale: Literal["std", "mean", "none"] = "std"  # Normalize by mean and deviation, or by mean absolute value
    d_model: int = 128
    n_heads: int = 16
    d_ff: int = 256
    n_layers: int = 3
    norm: Literal["batch", "layer"] = "batch"  # Over all tokens of a batch, or over each token's features
    pre_norm: bool = False  # Norms before the sublayers, without a final one, instead of after the additions
    positions: Literal["learned", "sinusoidal"] = "learned"  # How the learned positions are initialized
    bias: bool = True  # Whether the feed-forward sublayers have biases
    pool: Literal["joined", "mean", "max"] = "joined"  # The head reads all patches, or their mean or maximum
    direct: bool = False  # Add a linear map from the input steps to the forecast; no published model has it
    norm_eps: float = 1e-5  # Added to the variance in every norm
    dropout: float = 0.2  # Probability of dropping a feature of every sublayer's output
    embedding_dropout: float = 0.2  # Probability of dropping a feature of the patches with their positions
    activation_dropout: float = 0.2  # Probability of dropping a feature between the feed-forward matrices
    head_dropout: float = 0.0  # Probability of dropping a feature that the head reads

    def check(self) -> None:
        super().check()
        self.require_positive("context_length", "horizon", "n_channels", "patch_length", "stride")
        self.require_share("dropout", "embedding_dropout", "activation_dropout", "head_dropout")
        self.require_divisible("d_model", "n_heads")
        self.require(
            self.context_length > self.patch_length,
            f"context_length={self.context_length} must be longer than patch_length={self.patch_length}",
        )

    @property
    def n_patches(self) -> int:
        """P, the number of patches of one series."""
        return (self.context_length - self.patch_length) // self.stride + 1


SCALES: dict[str, Callable[[], nn.Module]] = {"std": core.InstanceScale, "mean": core.MeanScale, "none": core.NoScale}
POOLS: dict[str, Callable[[int], nn.Module]] = {
    "joined": core.ConcatPool,
    "mean": lambda n_patches: core.MeanPool(),
    "max": lambda n_patches: core.MaxPool(),
}
NORMS: dict[str, type[core.BatchNorm | core.LayerNorm]] = {"batch": core.BatchNorm, "layer": core.LayerNorm}


def build(config: PatchTSTConfig) -> core.Forecaster:
    """Build PatchTST with the config's scale, norm and head."""
    d_model = config.d_model
    residual = core.PreNorm if config.pre_norm else core.PostNorm
    norm = partial(NORMS[config.norm], eps=config.norm_eps)
    feed_forward = partial(core.FeedForward, bias=config.bias, dropout=config.activation_dropout)
    layers = [residual_layer(config, residual, norm, feed_forward=feed_forward) for _ in range(config.n_layers)]
    n_channels = config.n_channels if config.channels == "mixed" else 1
    width = config.d_model * (config.n_patches if config.pool == "joined" else 1)
    return core.Forecaster(
        context_length=config.context_length,
        scale=SCALES[config.scale](),
        embedding=core.SeriesEmbedding(
            d_model, patch_length=config.patch_length, stride=config.stride, n_channels=n_channels
        ),
        encoder=core.Encoder(layers, positions=_positions(config), dropout=config.embedding_dropout),
        head=core.ForecastHead(
            POOLS[config.pool](config.n_patches),
            width,
            horizon=config.horizon,
            n_channels=n_channels,
            dropout=config.head_dropout,
        ),
        direct=core.DirectForecast(config.context_length, config.horizon) if config.direct else None,
    )


@torch.no_grad()
def _positions(config: PatchTSTConfig) -> core.Learned:
    """Initialize learned positions: sinusoids with mean 0 and deviation 0.1, or normal with deviation 0.02."""
    positions = core.Learned(config.n_patches, config.d_model)
    if config.positions == "sinusoidal":
        waves = core.Sinusoidal(config.d_model).table(config.n_patches)
        positions.weight.copy_((waves - waves.mean()) / (10 * waves.std()))
    else:
        nn.init.normal_(positions.weight, std=0.02)
    return positions


def names(config: PatchTSTConfig) -> WeightMap:
    """Return the published names; a batch norm is wrapped in a module and has an unused count of batches."""
    hf = "model.encoder.layers.*"
    inner = ".batchnorm" if config.norm == "batch" else ""
    return WeightMap(
        (
            link("embedding.project.*", "model.encoder.embedder.input_embedding.*"),
            link("encoder.positions.weight", "model.encoder.positional_encoder.position_enc"),
            *layer_links(
                "encoder.layers.*",
                hf,
                self_attention=(
                    *(f"self_attn.{name}_proj" for name in ("q", "k", "v", "out")),
                    f"norm_sublayer1{inner}",
                ),
                feed_forward=("ff.0", "ff.3", f"norm_sublayer3{inner}"),
            ),
            link("head.out_proj.*", "head.projection.*"),
        ),
        ignored={f"{hf}.*.batchnorm.num_batches_tracked": "counts the batches of training"},
    )


HF_DEFAULTS = {
    "scaling": "std",
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
    """Return the paper's config for hourly data. The paper pads one patch, hence its 42 and 64 patches."""
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
        settings=settings_of(
            PatchTSTConfig,
            *("context_length", "patch_length", "d_model", "pre_norm", "bias", "norm_eps", "head_dropout"),
            horizon="prediction_length",
            n_channels="num_input_channels",
            stride="patch_stride",
            channels=unpublished(
                "independent", "patchtst: channels={value!r} has no published form; only 'independent' has one"
            ),
            scale=enum("scaling", {"std": "std", "mean": "mean", True: "mean", None: "none", False: "none"}),
            d_ff="ffn_dim",
            norm=enum("norm_type", {"batchnorm": "batch", "layernorm": "layer"}),
            positions=enum("positional_encoding_type", {"random": "learned", "sincos": "sinusoidal"}),
            activation=enum("activation_function", ACTIVATIONS),
            pool=enum("pooling_type", {None: "joined", "mean": "mean", "max": "max"}),
            direct=unpublished(False, "patchtst: direct=True has no published form"),
            dropout="path_dropout",
            embedding_dropout="positional_dropout",
            activation_dropout="ff_dropout",
        ),
        fixed={
            "share_embedding": True,
            "share_projection": True,
            "channel_attention": False,
            "use_cls_token": False,
            "is_encoder_decoder": False,
            "loss": "mse",
            **dict.fromkeys(("scaling_dim", "keepdim", "minimum_scale", "default_scale")),
        },
        names=names,
        hf_defaults=HF_DEFAULTS,
    ),
)
