"""Everything a run that trains an image classifier is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from ...config import Config, FamilyConfig
from ...errors import ConfigError
from ...families import config_of
from ...families.vit import ImageConfig
from ...training.config import TrainingConfig
from ..run import RunConfig

PRESET = "vit-tiny"


@dataclass(frozen=True, kw_only=True)
class ImageDataConfig(Config):
    """What is made of the images. All become squares of `image_size` pixels; others are stretched to it.

    Without a size it is that of the images, where all have the same and it is small; else the model's, 64 at least.
    `n_channels` is 1 for grey and 3 for colour; unless it is given, colour where any image has some. Without
    validation files, `holdout` images (at most a tenth, and of every class its share) are set apart.
    """

    title: ClassVar[str] = "data"

    image_size: int | None = None
    n_channels: Literal[1, 3] | None = None
    holdout: int = 5000

    def check(self) -> None:
        self.require_positive("image_size", "holdout")


@dataclass(frozen=True, kw_only=True)
class AugmentConfig(Config):
    """How a training image may be changed each time it is seen.

    `shift`: moved by up to this share of its side each way, in whole pixels, its edge drawn out; `rotate`: turned by up
    to so many degrees; `flip`: left and right swapped half of the time, which letters and digits do not bear.
    """

    title: ClassVar[str] = "augment"

    shift: float = 0.07
    rotate: float = 0.0
    flip: bool = False

    def check(self) -> None:
        self.require_share("shift")
        self.require(0 <= self.rotate <= 180, f"rotate is from 0 to 180 degrees, not {self.rotate}")


@dataclass(frozen=True, kw_only=True)
class ImagesConfig(RunConfig):
    """Which images, how they are changed in training, which model. A token of `training.batch_tokens` is a patch."""

    preset: ClassVar[str] = PRESET

    data: ImageDataConfig = field(default_factory=ImageDataConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=5000,
            schedule="cosine",
            warmup_steps=200,
            weight_decay=0.05,
            betas=(0.9, 0.99),
            epsilon=1e-8,
            validate_every=500,
            save_every=500,
        )
    )

    def check(self) -> None:
        model: Any = self.model
        self.require(
            isinstance(self.model, ImageConfig) and model.head in ("classes", "distilled"),
            f"a model of the family {model.family!r} with the head {getattr(model, 'head', None)!r} does not tell "
            "classes of images apart; vit and deit with a head of classes do",
        )

    @property
    def largest_size(self) -> int:
        """Up to which images keep their own size, and what others become, where no size is given."""
        model: Any = self.model
        return max(64, int(model.image_size))

    def model_for(self, size: int, n_channels: int, n_classes: int) -> FamilyConfig:
        """The model's config once the images are known. Its patches stay where they fit, else there are as many."""
        model: Any = self.model
        patch = model.patch_size if size % model.patch_size == 0 else _patch_size(size, model)
        return self.model.changed(image_size=size, patch_size=patch, n_channels=n_channels, n_classes=n_classes)


def _patch_size(size: int, model: ImageConfig) -> int:
    wanted = max(1.0, size * model.patch_size / model.image_size)
    fitting = [side for side in range(1, size + 1) if size % side == 0 and wanted / 2 <= side <= wanted * 2]
    if not fitting:
        raise ConfigError(
            f"images of {size} x {size} cannot be cut into patches of about {wanted:.0f} pixels; choose what fits: "
            "data.image_size, or model.patch_size"
        )
    return min(fitting, key=lambda side: abs(side - wanted))
