"""The settings of a run. The defaults suit a small translation model."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..config import Config

DEFAULT_STEPS = 10_000
MAX_RATE = 1e9  # of rates and penalties; float32 has to hold their products with weights


@dataclass(frozen=True, kw_only=True)
class TrainingConfig(Config):
    """How a module is trained. A run ends at the first of its limits: `steps`, `epochs`, `max_minutes`, `patience`."""

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

    steps: int | None = None  # Updates of the weights; None means no limit, or 10,000 if epochs is None too
    epochs: int | None = None  # Passes over the training data; with steps, the first limit that is reached counts
    # Time limit of a run, earlier parts of a resumed one included; the schedule fits the steps that it allows. 0: none
    max_minutes: float = 0.0
    patience: int = 0  # The run ends after this many validations in a row without improvement; 0 disables it

    batch_tokens: int = 4096  # The most tokens (or patches) of a batch with padding; of pairs, the longer side counts
    gradient_accumulation_steps: int = 1  # Batches per update, which count as one large batch
    label_smoothing: float = 0.1  # Probability that is spread evenly over all classes in the targets; 0 disables it
    r_drop: float = 0.0  # R-Drop's α: makes two passes with different dropout agree, at twice the cost; 0 disables it

    optimizer: Literal["adamw", "muon"] = "adamw"  # "muon": for the matrices in the layers, AdamW for the rest
    learning_rate: float = 1e-3  # Peak learning rate of AdamW
    muon_learning_rate: float = 0.02  # Peak learning rate of Muon
    schedule: Literal["inverse_sqrt", "cosine", "constant"] = "inverse_sqrt"  # How the rate falls after the warm-up
    warmup_steps: int = (
        1000  # Updates in which the rate rises, at most a quarter of the run; 0: none (not inverse_sqrt)
    )
    min_lr_ratio: float = 0.02  # Share of the peak at which a cosine schedule ends; unused by the others
    weight_decay: float = 0.0  # Decoupled, for matrices only: not embeddings, positions, norms or biases; 0 disables it
    betas: tuple[float, ...] = (0.9, 0.98)  # AdamW's decay of the mean gradient and the mean square, as in the paper
    epsilon: float = 1e-9  # Added to AdamW's denominator, as in the paper
    max_grad_norm: float = 1.0  # Gradients are clipped to this norm; 0 disables clipping
    # A step whose loss is more than 6 standard deviations above its running mean: named, not applied, or the run's end
    loss_spikes: Literal["report", "skip", "stop"] = "report"

    ema_decay: float = 0.999  # Decay of the running average of the weights, which is validated and saved; 0 disables it
    average: Literal["none", "best", "last"] = "none"  # "none": weights of the best validation; else mean of several
    keep_best: int = 1  # Checkpoints with the best scores to keep; average="best" takes their mean
    keep_last: int = 2  # Latest checkpoints to keep; average="last" takes the mean of as many validated ones

    validate_every: int = 1000  # Updates between validations; 0 validates only at the end
    save_every: int = 1000  # Updates between checkpoints; every validation writes one too. 0 writes only those
    log_every: int = 50  # Updates between two lines of the log

    # "bf16" is autocast; "bf16-weights" uses bf16 copies of float32 weights. A CPU without bf16 takes float32.
    precision: Literal["float32", "bf16", "bf16-weights"] = "float32"
    engine: Literal["auto", "eager", "graph", "compile"] = "auto"  # "auto": graph or compile on a GPU, else eager
    parallel: Literal["replicate", "shard"] = "replicate"  # Each process has the whole model, or a shard of it
    activation_checkpointing: bool = False  # Recompute activations in the backward pass: slower, with less memory
    device: str = "auto"  # "cpu", "cuda", "cuda:1" …; "auto" is a GPU if there is one
    seed: int = 0  # Of the initial weights, dropout and the order of the data
    tensorboard: bool = False  # Write the scores for TensorBoard too, into the run's folder tensorboard

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
        for name in ("learning_rate", "muon_learning_rate", "epsilon", *regular):
            self.require(
                getattr(self, name) <= MAX_RATE, f"{name} must be at most {MAX_RATE:g}, not {getattr(self, name)}"
            )
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
