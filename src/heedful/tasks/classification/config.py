"""Everything a classification run is made of, as one file can say it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from ...config import FamilyConfig
from ...training.config import TrainingConfig
from ..reading_config import ReadingConfig

FROM_SCRATCH = TrainingConfig(
    epochs=10,
    label_smoothing=0.0,
    learning_rate=5e-4,
    schedule="cosine",
    warmup_steps=200,
    weight_decay=0.01,
    validate_every=250,
)
FINE_TUNING = FROM_SCRATCH.changed(epochs=3, learning_rate=5e-5, warmup_steps=50, betas=(0.9, 0.999), epsilon=1e-8)


@dataclass(frozen=True, kw_only=True)
class ClassificationConfig(ReadingConfig):
    """With which texts, pieces, model and training; from scratch, or from a `base`."""

    head: ClassVar[str] = "classes"
    agrees: ClassVar[bool] = True
    from_scratch: ClassVar[TrainingConfig] = FROM_SCRATCH
    fine_tuning: ClassVar[TrainingConfig] = FINE_TUNING

    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)

    def model_for(self, vocab_size: int, n_classes: int) -> FamilyConfig:
        """The model's config once the data is known; a base has its own vocabulary."""
        own = {} if self.base is not None else {"vocab_size": vocab_size}
        return self.model.changed(**own, head=self.head, n_classes=n_classes)
