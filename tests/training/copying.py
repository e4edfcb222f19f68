"""The smallest job worth training: copy a sequence of numbers, with a real model and its dropout.

Everything about it can be turned, so that a test can kill, poison or change a run where it likes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import torch
from torch import Tensor, nn

import heedful
from heedful.core import padding
from heedful.data.batch import moved
from heedful.data.loader import WHOLE, Shard
from heedful.families.weights import weights_of
from heedful.training import Loss, Monitor, TrainingConfig, cross_entropy

V, T = 13, 5
START = 1
SMALL = {"vocab_size": V, "d_model": 8, "n_heads": 2, "d_ff": 8, "n_encoder_layers": 1, "n_decoder_layers": 1}


def tiny(**changes: Any) -> nn.Module:
    torch.manual_seed(7)
    return heedful.build("tiny", **(SMALL | {"dropout": 0.1} | changes))


@dataclass(frozen=True)
class Numbers:
    """Rows of 3 to T numbers: what to read, what to write, and what of it is real."""

    source: Tensor
    real: Tensor
    lengths: tuple[int, ...] | None
    rows: tuple[int, ...]

    @classmethod
    def of(cls, source: Tensor, lengths: Sequence[int], rows: Sequence[int]) -> Self:
        real = torch.arange(source.shape[1]) < torch.tensor(lengths)[:, None]
        return cls(source, real, tuple(lengths), tuple(rows))

    def to(self, device: torch.device) -> Self:
        return moved(self, device)

    def fixed(self) -> Self:
        return replace(self, lengths=None, rows=())


class Data:
    """`n` batches an epoch, each a function of its epoch and number."""

    def __init__(self, n: int = 5, rows: int = 4) -> None:
        self.n, self.rows = n, rows

    def steps_per_epoch(self, epoch: int) -> int:
        return self.n

    def epoch(self, epoch: int, start: int = 0, shard: Shard = WHOLE) -> Iterator[Numbers]:
        for index in range(start, self.n):
            generator = torch.Generator().manual_seed(1000 * epoch + index)
            source = torch.randint(3, V, (self.rows, T), generator=generator)
            lengths = torch.randint(3, T + 1, (self.rows,), generator=generator).tolist()
            first = (epoch * self.n + index) * self.rows
            rows = range(first, first + self.rows)
            yield Numbers.of(shard.rows(source), shard.rows(lengths), shard.rows(rows))


class Copying:
    """`on_batch` and `on_validation` are called with the number of the call, before anything is done."""

    def __init__(
        self,
        module: nn.Module | None = None,
        *,
        data: Data | None = None,
        smoothing: float = 0.1,
        monitor: Monitor | None = None,
        scores: list[float] | None = None,
        data_fingerprint: str = "numbers",
        on_batch: Callable[[int], None] = lambda number: None,
        on_validation: Callable[[int], None] = lambda number: None,
        poison: int | None = None,
    ) -> None:
        self.module = tiny() if module is None else module
        self.batches = Data() if data is None else data
        self.smoothing = smoothing
        self.monitor = Monitor("loss", higher_is_better=False) if monitor is None else monitor
        self.scores = scores
        self.data_fingerprint = data_fingerprint
        self.on_batch, self.on_validation, self.poison = on_batch, on_validation, poison
        self.n_batches = self.n_validations = 0

    def loss(self, module: nn.Module, batch: Numbers) -> Loss:
        self.n_batches += 1
        self.on_batch(self.n_batches)
        loss = self.losses(module, batch, self.smoothing)
        return loss._replace(total=loss.total * float("nan")) if self.n_batches == self.poison else loss

    @staticmethod
    def losses(module: nn.Module, batch: Numbers, smoothing: float) -> Loss:
        source, keep = batch.source, padding(batch.real, lengths=batch.lengths, at_the_end=True)
        target_in = torch.cat([torch.full_like(source[:, :1], START), source[:, :-1]], dim=1)
        return cross_entropy(module(source, target_in, keep, keep), source, batch.real, smoothing=smoothing)

    def validate(self, module: nn.Module) -> dict[str, float]:
        """The loss on other numbers, or what the test has written down. It draws random numbers, as sampling would."""
        assert not module.training
        assert not torch.is_grad_enabled()
        self.n_validations += 1
        self.on_validation(self.n_validations)
        torch.rand(3)
        losses = [self.losses(module, batch, 0.0) for batch in self.held_out(module)]
        scores = {"loss": sum(float(loss.plain) for loss in losses) / sum(int(loss.n) for loss in losses)}
        return scores if self.scores is None else scores | {self.monitor.name: self.scores[self.n_validations - 1]}

    @staticmethod
    def held_out(module: nn.Module) -> list[Numbers]:
        device = next(module.parameters()).device
        return [batch.to(device) for batch in Data(2).epoch(99)]

    def describe(self, batch: Numbers) -> list[str]:
        return [f"numbers.txt:{row}" for row in batch.rows]

    def identity(self) -> dict[str, str]:
        return {"data": self.data_fingerprint}


def config(**changes: Any) -> TrainingConfig:
    """Two and a bit epochs of five batches, validated and saved in the middle of epochs and at their ends."""
    defaults: dict[str, Any] = {
        "steps": 12,
        "learning_rate": 0.01,
        "warmup_steps": 4,
        "ema_decay": 0.9,
        "weight_decay": 0.01,
        "validate_every": 5,
        "save_every": 3,
        "log_every": 2,
        "device": "cpu",
    }
    return TrainingConfig(**(defaults | changes))


def digest(module: nn.Module) -> str:
    """All weights, to the bit."""
    found = hashlib.sha256()
    for name, tensor in weights_of(module).items():
        found.update(name.encode() + tensor.cpu().numpy().tobytes())
    return found.hexdigest()
