"""The settings of a run. The defaults suit a small translation model."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..config import Config

DEFAULT_STEPS = 10_000


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """How a module is trained. A step is one update of the weights; 0 turns off what can be turned off.

    A run ends after `steps` or `epochs`, whichever comes first (10 000 steps if neither is set), after `max_minutes`,
    or after `patience` validations in a row without improvement.
    """

    title: ClassVar[str] = "training"
    renamed: ClassVar[Mapping[str, str]] = {
        "optimiser": "optimizer",
        "clip": "max_grad_norm",
        "accumulate": "gradient_accumulation_steps",
        "recompute": "activation_checkpointing",
        "final_share": "min_lr_ratio",
        "muon_rate": "muon_learning_rate",
        "ema": "ema_decay",
    }

    steps: int | None = None
    epochs: int | None = None
    max_minutes: float = 0.0
    patience: int = 0

    batch_tokens: int = 4096  # of one batch; an update uses `gradient_accumulation_steps` batches
    gradient_accumulation_steps: int = 1
    label_smoothing: float = 0.1

    r_drop: float = 0.0  # the weight of the divergence of two passes with different dropout (alpha of R-Drop)

    optimizer: Literal["adamw", "muon"] = "adamw"  # muon: for the matrices inside the layers; adamw for the rest
    learning_rate: float = 1e-3  # the peak
    muon_learning_rate: float = 0.02  # the peak for the matrices that muon updates
    schedule: Literal["inverse_sqrt", "cosine", "constant"] = "inverse_sqrt"
    warmup_steps: int = 1000
    min_lr_ratio: float = 0.02  # of the peak, where a cosine ends
    weight_decay: float = 0.0
    betas: tuple[float, ...] = (0.9, 0.98)
    epsilon: float = 1e-9
    max_grad_norm: float = 1.0  # gradients are clipped to this norm

    ema_decay: float = 0.999  # the share of the running average of the weights that remains after a step
    average: Literal["none", "best", "last"] = "none"  # final weights: the best, or a mean over `keep_…` validations
    keep_best: int = 1
    keep_last: int = 2

    validate_every: int = 1000  # 0: only at the end
    save_every: int = 1000  # beside every validation; 0: only then
    log_every: int = 50

    precision: Literal["float32", "bf16", "bf16-weights"] = "float32"  # bf16: autocast; weights: copies of float32 ones
    engine: Literal["auto", "eager", "graph", "compile"] = "auto"  # how a step is run
    parallel: Literal["replicate", "shard"] = "replicate"  # of several processes: each has the whole module, or a part
    activation_checkpointing: bool = False  # recompute activations in the backward pass instead of keeping them
    device: str = "auto"
    seed: int = 0
    tensorboard: bool = False

    def check(self) -> None:
        self.require_positive(
            "steps", "epochs", "batch_tokens", "gradient_accumulation_steps", "keep_best", "keep_last", "log_every"
        )
        self.require_share("label_smoothing", "ema_decay")
        regular = ("weight_decay", "max_grad_norm", "r_drop")
        for name in ("max_minutes", "patience", "warmup_steps", *regular, "validate_every", "save_every"):
            self.require(getattr(self, name) >= 0, f"{name} must be 0 (off) or more, not {getattr(self, name)}")
        for name in ("learning_rate", "muon_learning_rate", "epsilon"):
            self.require(getattr(self, name) > 0, f"{name} must be above 0, not {getattr(self, name)}")
        self.require(0 <= self.min_lr_ratio <= 1, f"min_lr_ratio must be from 0 to 1, not {self.min_lr_ratio}")
        self.require(
            len(self.betas) == 2 and all(0 <= beta < 1 for beta in self.betas),
            f"betas are two numbers from 0 to below 1, not {list(self.betas)}",
        )
        self.require(
            self.schedule != "inverse_sqrt" or self.warmup_steps >= 1,
            'schedule="inverse_sqrt" falls from the end of its warm-up: give warmup_steps of at least 1',
        )
        self.require(
            self.patience == 0 or self.validate_every > 0,
            f"patience={self.patience} counts validations, but validate_every=0 has only the last one",
        )
        self.require(0 <= self.seed < 2**63, f"seed must be from 0 to 2^63 − 1, not {self.seed}")

    def total_steps(self, batches_of: Callable[[int], int]) -> int:
        """Return the number of updates, at least one. `batches_of` returns the number of batches of an epoch."""
        if self.epochs is None:
            return DEFAULT_STEPS if self.steps is None else self.steps
        total = sum(math.ceil(batches_of(epoch) / self.gradient_accumulation_steps) for epoch in range(self.epochs))
        return max(1, total if self.steps is None else min(total, self.steps))
