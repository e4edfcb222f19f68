"""What one of several processes does in test_parallel: all runs in a row, since starting takes longer than any."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from copying import Copying, Numbers, config, tiny
from torch import nn

import heedful
from heedful.core import EncoderDecoder
from heedful.training import Interrupted, Loss, Outcome, cross_entropy, fit
from heedful.training.parallel import ProcessGroup, world
from heedful.training.parallel.heartbeat import Heartbeat

SMALL = {"d_model": 8, "n_heads": 2, "d_ff": 12, "dropout": 0.0, "vocab_size": 13}
TIED: dict[str, dict[str, Any]] = {
    "tiny": {"n_encoder_layers": 2, "n_decoder_layers": 2, "tied": "all"},
    "gpt2-tiny": {"n_layers": 2, "max_length": 8, "attention_dropout": 0.0, "embedding_dropout": 0.0},
    "t5-tiny": {"n_encoder_layers": 2, "n_decoder_layers": 2, "d_head": 4},
    "albert-tiny": {"n_layers": 3, "max_length": 8, "d_embedding": 6},
}
MODES = ("replicate", "shard")
ACCUMULATE = (1, 2)
STOP = 6  # a batch of one step, between two checkpoints


class Echo(Copying):
    """What goes in shall come out, whatever the wiring."""

    @staticmethod
    def losses(module: nn.Module, batch: Numbers, smoothing: float) -> Loss:
        if isinstance(module, EncoderDecoder):
            return Copying.losses(module, batch, smoothing)
        return cross_entropy(module(batch.source, batch.real), batch.source, batch.real, smoothing=smoothing)


def runs() -> Iterator[tuple[str, Copying, dict[str, Any]]]:
    """A name, a job in float64 without dropout, and settings under which gradients are clipped."""
    for accumulate in ACCUMULATE:
        job = Copying(tiny(dropout=0.0).double())
        yield (
            f"accumulate-{accumulate}",
            job,
            {"steps": 50, "max_grad_norm": 0.3, "gradient_accumulation_steps": accumulate},
        )
    for preset, changes in TIED.items():
        torch.manual_seed(3)
        module = heedful.build(preset, **(SMALL | changes)).double()
        yield preset, Echo(module), {"steps": 10, "ema_decay": 0.0}


def learn(out: Path, mode: str) -> None:
    """Each in a folder of its own."""
    for name, job, settings in runs():
        fit(job, config(parallel=mode, log_every=1, validate_every=0, save_every=0, **settings), out / mode / name)


def go_on(
    folder: Path,
    mode: str = "replicate",
    *,
    dropout: float = 0.0,
    stop: int = 0,
    by: signal.Signals = signal.SIGTERM,
    rank: int = -1,
) -> Outcome | None:
    """Begin or resume a run; at batch `stop`, one process gets a signal, as if it came from outside."""

    def on_batch(number: int) -> None:
        if number == stop and world().rank == rank % world().size:
            os.kill(os.getpid(), by)

    job = Copying(tiny(dropout=dropout).double(), on_batch=on_batch)
    with suppress(Interrupted):
        return fit(job, config(parallel=mode), folder, resume=True)
    return None


def everything(out: Path) -> None:
    """What two processes do; in `one-MODE` lie runs that one process began, in `killed` one that two did not end."""
    for mode in MODES:
        learn(out, mode)
        rounded = config(parallel=mode, precision="bf16-weights", log_every=1, save_every=0)
        fit(Copying(tiny(dropout=0.0)), rounded, out / mode / "rounded")
        assert go_on(out / f"two-{mode}", mode, stop=STOP) is None
        assert go_on(out / f"one-{mode}", mode) is not None
    assert go_on(out / "undisturbed", dropout=0.1) is not None
    assert go_on(out / "disturbed", dropout=0.1, stop=STOP) is None
    assert go_on(out / "disturbed", dropout=0.1) is not None
    assert go_on(out / "killed", dropout=0.1) is not None


if __name__ == "__main__":
    quick = partial(Heartbeat, interval=0.1, limit=2.0)
    setattr(sys.modules[ProcessGroup.__module__], "Heartbeat", quick)  # noqa: B010  (a module is no such type)
    if sys.argv[1] == "everything":
        everything(Path(sys.argv[2]))
    else:
        world().advice = "; resume it"
        go_on(Path(sys.argv[2]), dropout=0.1, stop=STOP, by=signal.SIGKILL, rank=int(sys.argv[1]))
