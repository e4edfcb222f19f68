"""Training loops that are timed step by step: Heedful's own, and the one that users of transformers write."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import cycle, islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from heedful.data.loader import WHOLE, Shard
from heedful.data.store import TokenStore
from heedful.families import config_of
from heedful.tasks.language_model.data import CorpusSizes, LanguageModelConfig
from heedful.tasks.language_model.task import LanguageModelTask
from heedful.tasks.run import TrainingData
from heedful.training import RunFolder, TrainingConfig
from heedful.training.metrics import Observer
from heedful.training.signals import Signals
from heedful.training.trainer import Trainer

FOREVER = 1_000_000  # steps: more than are ever taken


class Loop(Protocol):
    """Something that trains."""

    def steps(self, n: int) -> None:
        """Take n steps and wait until the device has done them."""

    def close(self) -> None:
        """Let go of everything."""


class HeedfulLoop:
    """The loop that every `heedful train` runs, without its validations and checkpoints."""

    def __init__(self, job: Any, config: TrainingConfig, folder: Path, observers: Sequence[Observer] = ()) -> None:
        self._stack = ExitStack()
        run = RunFolder(folder)
        self._stack.enter_context(run.locked())
        self.training = Trainer(job, config, run, Signals())
        self._stack.callback(self.training.close)
        self.training.observers += observers

    def steps(self, n: int) -> None:
        """Logging included."""
        for _ in range(n):
            self.training.step()
        self.training.read_metrics(wait=True)
        _wait(self.training.device)

    def close(self) -> None:
        """The weights and what was captured with them."""
        self._stack.close()
        del self.training
        free()


class PlainLoop:
    """Eager, fused AdamW, clipping, autocast to bf16 or not; the batches are made and moved beforehand."""

    def __init__(
        self,
        module: nn.Module,
        batches: Sequence[Any],
        loss: Callable[[Any, Any], Tensor],
        device: torch.device,
        *,
        bf16: bool,
    ) -> None:
        self.module = module.to(device).train()
        self.loss, self.device, self.bf16 = loss, device, bf16
        self.optimizer = torch.optim.AdamW(self.module.parameters(), lr=1e-4, fused=True)
        self.batches = cycle([batch.to(device) for batch in batches])

    def steps(self, n: int) -> None:
        """No value is read in between."""
        for batch in islice(self.batches, n):
            self.optimizer.zero_grad()
            with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.bf16):
                loss = self.loss(self.module, batch)
            loss.backward()
            nn.utils.clip_grad_norm_(self.module.parameters(), 1.0)
            self.optimizer.step()
        _wait(self.device)

    def close(self) -> None:
        """The weights, and Adam's moments."""
        del self.module, self.optimizer
        free()


class First:
    """The first few batches of an epoch, as an epoch of their own; the same every time."""

    def __init__(self, batches: Any, n: int) -> None:
        self.batches, self.n = batches, min(n, batches.steps_per_epoch(0))

    def epoch(self, epoch: int, start: int = 0, share: Shard = WHOLE) -> Iterator[Any]:
        """From the one numbered `start`."""
        return islice(self.batches.epoch(0, 0, share), start, self.n)

    def steps_per_epoch(self, epoch: int) -> int:
        """However long the text is."""
        return self.n


def random_text(
    model: Mapping[str, Any], batch: int, folder: Path, training: Mapping[str, Any]
) -> tuple[LanguageModelTask, TrainingConfig]:
    """A language model's task over random ids, `batch` windows a step, as long as the model reads; and its settings."""
    shape = config_of(model)
    vocabulary, context = int(model["vocab_size"]), int(model["max_length"])
    ids = np.random.default_rng(0).integers(vocabulary, size=max(200_000, 4 * context)).tolist()
    store = TokenStore.write(folder / "ids", [(ids, [], ("random", 1))], vocab_size=vocabulary)
    tokenizer: Any = SimpleNamespace(vocab_size=vocabulary, fingerprint="random")  # nothing is ever decoded
    config = LanguageModelConfig(
        model=shape,
        training=TrainingConfig(
            steps=FOREVER,
            batch_tokens=batch * context,
            label_smoothing=0.0,
            learning_rate=1e-4,
            schedule="constant",
            warmup_steps=0,
            ema_decay=0.0,
        ).changed(**training),
    )
    torch.manual_seed(0)
    job = LanguageModelTask().bind(
        config, TrainingData(folder, store, store, tokenizer, CorpusSizes(len(ids), len(ids), 0, None))
    )
    return job, config.training


def free() -> None:
    """Give memory back, on the GPU too, and forget what was compiled for a model that is gone."""
    if "torch._dynamo" in sys.modules:
        torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
