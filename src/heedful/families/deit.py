"""DeiT: a ViT with a second token before the patches, which learned from a teacher's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import nn

from ..core import Average, ClassHead, EncoderOnly, FirstToken, Token
from .names import link
from .published import Published
from .registry import Family, register
from .vit import FIXED, HEADS, SETTINGS, TOPS, ImageConfig, assemble, table


@dataclass(frozen=True, kw_only=True)
class DeiTConfig(ImageConfig):
    """The defaults are the base model.

    `head`: "distilled" gives the mean of the logits that the class token and the distillation token have, each from
    an output of its own; the others are ViT's, and "classes" and "pooled" read the class token alone.
    """

    family: ClassVar[str] = "deit"

    head: Literal["distilled", "classes", "pooled", "mean", "hidden"] = "distilled"


def _distilled(config: ImageConfig) -> nn.Module:
    return Average(ClassHead(pool, config.d_model, config.n_classes) for pool in (FirstToken(), Token(1)))


def build(config: DeiTConfig) -> EncoderOnly:
    """The class token stands first, the distillation token second."""
    head = (HEADS | {"distilled": _distilled})[config.head]
    return assemble(config, head(config), n_prefix=2)


TOKENS = ("cls_token", "distillation_token")
DISTILLED = (
    link("head.heads.0.out.*", "cls_classifier.*"),
    link("head.heads.1.out.*", "distillation_classifier.*"),
)

PUBLISHED = Published(
    model_type="deit",
    architectures=(
        ("DeiTForImageClassificationWithTeacher", {"head": "distilled"}),
        ("DeiTForImageClassification", {"head": "classes"}),
        ("DeiTModel", {"head": "hidden"}),
        ("DeiTModel", {"head": "mean"}),
        ("DeiTModel", {"head": "pooled"}),
    ),
    settings=SETTINGS,
    fixed=FIXED,
    names=lambda config: table(config, config.head, model="deit", tokens=TOKENS, tops=TOPS | {"distilled": DISTILLED}),
)

BASE = DeiTConfig(n_classes=1000)
deit = register(
    Family(
        DeiTConfig,
        build,
        presets={
            "deit-tiny": BASE.changed(d_model=192, n_heads=3, d_ff=768),
            "deit-small": BASE.changed(d_model=384, n_heads=6, d_ff=1536),
            "deit-base": BASE,
        },
        published=PUBLISHED,
    )
)
