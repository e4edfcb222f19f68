"""ViT and DeiT: patches of an image after a class token, and a pre-norm encoder with learned positions."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal

from torch import nn

from .. import core
from ..core.init import linear
from ..errors import ConfigError
from .hf_config import HFConfig, Published, Setting, setting, settings_of
from .layers import LayersConfig, initialize_normal, residual_layer
from .registry import register
from .weight_map import ONE_ROW, Layout, WeightMap, layer_links, link


@dataclass(frozen=True, kw_only=True)
class ImageConfig(LayersConfig):
    """The fields of ViT and DeiT, whose images and patches are square."""

    tokens: ClassVar[tuple[str, ...]]  # Published names of the learned tokens before the patches

    head: str
    image_size: int = 224  # Side of an image in pixels; training sets it, and n_channels, for its images
    patch_size: int = 16  # Side of a patch in pixels; it divides image_size
    n_channels: int = 3  # 1 for gray, 3 for color
    qkv_bias: bool = True  # Whether the projections to queries, keys and values have biases; the output's has one
    n_classes: int = 2  # Classes of the heads with logits; training takes them from the data
    norm_eps: float = 1e-12  # Added to the variance in every layer norm
    dropout: float = 0.0  # Probability of dropping a feature of the embeddings and of every sublayer's output

    def check(self) -> None:
        super().check()
        self.require_positive("image_size", "patch_size", "n_channels", "n_classes")
        self.require_share("dropout")
        self.require(
            self.image_size % self.patch_size == 0,
            f"an image of image_size={self.image_size} cannot be cut into patches of patch_size={self.patch_size}; "
            "change one",
        )
        self.require_divisible("d_model", "n_heads")


@dataclass(frozen=True, kw_only=True)
class ViTConfig(ImageConfig):
    """ViT. The defaults are the base model with patches of 16."""

    family: ClassVar[str] = "vit"
    tokens = ("cls_token",)

    # What the model returns. classes: logits from the class token; pooled: the class token's vector through a dense
    # layer; mean: the mean of all vectors; hidden: all vectors.
    head: Literal["classes", "pooled", "mean", "hidden"] = "classes"


HEADS: dict[str, Callable[[ImageConfig], nn.Module]] = {
    "classes": lambda config: core.ClassHead(core.ClsPool(), config.d_model, config.n_classes),
    "pooled": lambda config: core.PoolingHead(core.ClsPool(), linear(config.d_model, config.d_model), "tanh"),
    "mean": lambda config: core.PoolingHead(core.MeanPool()),
    "hidden": lambda config: core.Hidden(),
    "distilled": lambda config: core.EnsembleHead(
        core.ClassHead(pool, config.d_model, config.n_classes) for pool in (core.ClsPool(), core.TokenPool(1))
    ),
}


def build(config: ImageConfig) -> core.EncoderOnly:
    """Build a ViT, whose sequence starts with the class token, or a DeiT, which adds the distillation token."""
    n_prefix = len(config.tokens)
    d_model, norm = config.d_model, partial(core.LayerNorm, eps=config.norm_eps)
    attention = partial(core.MultiHeadAttention, bias=config.qkv_bias, out_bias=True)
    embedding = core.PatchEmbedding(
        d_model,
        image_size=config.image_size,
        patch_size=config.patch_size,
        n_channels=config.n_channels,
        n_prefix=n_prefix,
    )
    encoder = core.Encoder(
        [residual_layer(config, core.PreNorm, norm, attention=attention) for _ in range(config.n_layers)],
        positions=core.Learned(n_prefix + embedding.n_patches, d_model),
        norm=norm(d_model),
        dropout=config.dropout,
    )
    head = HEADS[config.head](config)
    return initialize_normal(core.EncoderOnly(embedding=embedding, encoder=encoder, head=head), 0.02)


TOPS = {
    "classes": (link("head.out_proj.*", "classifier.*"),),
    "pooled": (link("head.dense.*", "pooler.dense.*"),),
    "distilled": (
        link("head.heads.0.out_proj.*", "cls_classifier.*"),
        link("head.heads.1.out_proj.*", "distillation_classifier.*"),
    ),
}


def names(config: ImageConfig) -> WeightMap:
    """Return the published names; only those of a model that classifies have a prefix."""
    base = "" if config.head in ("pooled", "mean", "hidden") else f"{config.family}."
    heads = [f"attention.attention.{name}" for name in ("query", "key", "value")]
    shape = config.n_channels, config.patch_size, config.patch_size
    convolution = Layout(lambda weight: weight.unflatten(1, shape), lambda weight: weight.flatten(1))
    others = [line for head, lines in TOPS.items() if head != config.head for line in lines]
    return WeightMap(
        (
            link("embedding.prefix", tuple(f"{base}embeddings.{token}" for token in config.tokens), ONE_ROW),
            link("embedding.project.weight", f"{base}embeddings.patch_embeddings.projection.weight", convolution),
            link("embedding.project.bias", f"{base}embeddings.patch_embeddings.projection.bias"),
            link("encoder.positions.weight", f"{base}embeddings.position_embeddings", ONE_ROW),
            *layer_links(
                "encoder.layers.*",
                f"{base}encoder.layer.*",
                self_attention=(*heads, "attention.output.dense", "layernorm_before"),
                feed_forward=("intermediate.dense", "output.dense", "layernorm_after"),
            ),
            link("encoder.norm.*", f"{base}layernorm.*"),
            *TOPS.get(config.head, ()),
        ),
        ignored={name: "belongs to another head" for line in others for name in line.hf},
        prefix=f"{config.family}.",
    )


def _square(key: str) -> Setting:
    """Read a size that is one number, or the same number twice, as height and width."""

    def read(hf: HFConfig) -> Any:
        size = hf.get(key)
        if not isinstance(size, list | tuple):
            return size
        if len(size) != 2 or size[0] != size[1]:
            raise ConfigError(f"{key}={size!r} is not supported; only squares are: one number, or the same twice")
        return size[0]

    return Setting((key,), read, lambda size: {key: size})


SETTINGS = settings_of(
    ImageConfig,
    "qkv_bias",
    image_size=_square("image_size"),
    patch_size=_square("patch_size"),
    n_channels="num_channels",
    d_model=setting("hidden_size", "pooler_output_size"),
    norm_eps="layer_norm_eps",
    dropout="hidden_dropout_prob",
    attention_dropout="attention_probs_dropout_prob",
)
FIXED = {"is_encoder_decoder": False, "pooler_act": "tanh"}

BASE = ViTConfig(n_classes=1000)
LARGE = BASE.changed(d_model=1024, n_heads=16, d_ff=4096, n_layers=24)
vit = register(
    ViTConfig,
    build,
    presets={
        "vit-tiny": ViTConfig(
            image_size=28, patch_size=7, n_channels=1, d_model=64, n_heads=4, d_ff=256, n_layers=4, n_classes=10
        ),
        "vit-small-16": BASE.changed(d_model=384, n_heads=6, d_ff=1536),
        "vit-base-16": BASE,
        "vit-base-32": BASE.changed(patch_size=32),
        "vit-large-16": LARGE,
        "vit-huge-14": LARGE.changed(patch_size=14, d_model=1280, d_ff=5120, n_layers=32),
    },
    published=Published(
        model_type="vit",
        architectures=(
            ("ViTForImageClassification", {"head": "classes"}),
            *(("ViTModel", {"head": head}) for head in ("hidden", "mean", "pooled")),
        ),
        settings=SETTINGS,
        fixed=FIXED,
        names=names,
    ),
)


@dataclass(frozen=True, kw_only=True)
class DeiTConfig(ImageConfig):
    """DeiT, distilled ViT. The defaults are the base model."""

    family: ClassVar[str] = "deit"
    tokens = ("cls_token", "distillation_token")

    # "distilled" is the mean of the logits from the class token and from the distillation token. The others are as for
    # ViT; classes and pooled read only the class token.
    head: Literal["distilled", "classes", "pooled", "mean", "hidden"] = "distilled"


DEIT_BASE = DeiTConfig(n_classes=1000)
deit = register(
    DeiTConfig,
    build,
    presets={
        "deit-tiny": DEIT_BASE.changed(d_model=192, n_heads=3, d_ff=768),
        "deit-small": DEIT_BASE.changed(d_model=384, n_heads=6, d_ff=1536),
        "deit-base": DEIT_BASE,
    },
    published=Published(
        model_type="deit",
        architectures=(
            ("DeiTForImageClassificationWithTeacher", {"head": "distilled"}),
            ("DeiTForImageClassification", {"head": "classes"}),
            *(("DeiTModel", {"head": head}) for head in ("hidden", "mean", "pooled")),
        ),
        settings=SETTINGS,
        fixed=FIXED,
        names=names,
    ),
)
