"""Runs that really die, each in a process of its own, and what becomes of them.

The answers of all scenarios are printed as JSON. torch is imported once and every run is a fork, so that a process
can be killed at every single step of writing a checkpoint.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import tempfile
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from copying import Copying, config, digest
from safetensors.torch import save_file

from heedful.errors import HeedfulError
from heedful.training import Event, Interrupted, Saved, checkpoint, fit

Hook = Callable[[int], None]
CALLS = ("mkdir", "fsync", "rename", "replace", "unlink", "rmdir")


def nothing(number: int) -> None:
    """No harm done."""


def note(file: Path, number: int) -> None:
    """For the parent to read; it outlives a kill."""
    file.write_text(str(number))


def at(number: int, act: Callable[[], object]) -> Hook:
    """A hook that acts at one number."""

    def hook(found: int) -> None:
        if found == number:
            act()

    return hook


def send(number: signal.Signals) -> Callable[[], None]:
    return lambda: os.kill(os.getpid(), number)


die = send(signal.SIGKILL)


def start(work: Callable[[], object], errors: Path) -> int:
    """A process that does this work; what it says of an error goes to a file."""
    pid = os.fork()
    if pid:
        return pid
    code = 2
    try:
        work()
        code = 0
    except Interrupted as error:
        code = error.code
    except HeedfulError as error:
        errors.write_text(str(error))
        code = 1
    except BaseException:
        traceback.print_exc()
    os._exit(code)


def end(pid: int) -> int:
    """The exit code of a process; below 0, the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def watch_the_disk(hook: Hook) -> None:
    """Call the hook before every call that changes the disk while a checkpoint is written or removed."""
    count = 0

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            hook(count)
            return call(*args, **kwargs)

        return wrapper

    for name in CALLS:
        setattr(os, name, watched(getattr(os, name)))
    setattr(checkpoint, "save_file", watched(save_file))  # noqa: B010  (the module does not export it)


class Lab:
    """Runs of one kind in folders of their own, beside one that nothing happened to."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        self.folder, self.config = folder, config(**changes)
        fit(Copying(), self.config, folder / "warm")  # what torch loads at its first step is loaded once, for all forks
        self.run(folder / "whole")
        self.whole = self.state(folder / "whole")

    def start(
        self, run: Path, *, on_batch: Hook = nothing, on_validation: Hook = nothing, on_disk: Hook = nothing
    ) -> int:
        """A process's life in a run folder. What it saved, said and ended with is written beside the folder."""

        def observe(event: Event) -> None:
            if isinstance(event, Saved):
                note(Path(f"{run}.saved"), event.step)

        def work() -> None:
            warnings.simplefilter("error")
            watch_the_disk(on_disk)
            job = Copying(on_batch=on_batch, on_validation=on_validation)
            outcome = fit(job, self.config, run, resume=True, observers=[observe])
            Path(f"{run}.weights").write_text(digest(outcome.module))

        return start(work, Path(f"{run}.error"))

    def run(self, run: Path, **hooks: Hook) -> int:
        """A whole life, and how it ended."""
        return end(self.start(run, **hooks))

    def state(self, run: Path) -> Any:
        """All that a finished run leaves, but for the time it took."""
        rows = [json.loads(row) for row in (run / "log.jsonl").read_text().splitlines()]
        kept = [{key: row[key] for key in row if key not in ("time", "tokens_per_second")} for row in rows]
        names = sorted(entry.name for entry in (run / "checkpoints").iterdir())
        return Path(f"{run}.weights").read_text(), kept, names

    def hurt(self, name: str, code: int, **hooks: Hook) -> list[str]:
        """Let a run end with this code, resume it, and say what is not as it should be."""
        run = self.folder / name
        found = self.run(run, **hooks)
        faults = [] if found == code else [f"{name}: ended with {found}, not {code}"]
        saved = Path(f"{run}.saved")
        last = int(saved.read_text()) if saved.exists() else 0
        for step in checkpoint.steps_in(run / "checkpoints"):
            checkpoint.load(checkpoint.path_of(run / "checkpoints", step))  # whole, or not there
        if max(checkpoint.steps_in(run / "checkpoints"), default=0) < last:
            faults.append(f"{name}: step {last} was saved and is gone")
        if self.run(run) != 0 or self.state(run) != self.whole:
            faults.append(f"{name}: the resumed run is another")
        shutil.rmtree(run)
        return faults


def killed_while_saving(folder: Path) -> Any:
    """At every call that changes the disk, over two checkpoints of which the second removes the first."""
    lab = Lab(folder, steps=2, validate_every=0, save_every=1, keep_last=1)
    count = folder / "count"
    lab.run(folder / "counted", on_disk=lambda number: note(count, number))
    calls = int(count.read_text())
    faults = []
    for n in range(1, calls + 1):
        faults += lab.hurt(f"call {n}", -signal.SIGKILL, on_disk=at(n, die))
    return {"calls": calls, "faults": faults}


def killed_while_training(folder: Path) -> Any:
    """At every batch and every validation, and again and again in one run."""
    lab = Lab(folder)
    faults = []
    for n in range(1, 13):
        faults += lab.hurt(f"batch {n}", -signal.SIGKILL, on_batch=at(n, die))
    for n in range(1, 4):
        faults += lab.hurt(f"validation {n}", -signal.SIGKILL, on_validation=at(n, die))
    lives = 1
    while lab.run(folder / "often", on_batch=at(5, die)) != 0:
        lives += 1
    if lab.state(folder / "often") != lab.whole:
        faults.append("a run killed often is another")
    return {"lives": lives, "faults": faults}


def told_to_stop(folder: Path) -> Any:
    """By both signals: in steps, while saving, in a validation."""
    lab = Lab(folder)
    faults = []
    for number, code in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
        stop = send(number)
        for n in (1, 4, 5, 12):
            faults += lab.hurt(f"{code} batch {n}", code, on_batch=at(n, stop))
        faults += lab.hurt(f"{code} saving", code, on_disk=at(5, stop))
        faults += lab.hurt(f"{code} validation", code, on_validation=at(1, stop))
    lab.run(folder / "step 4", on_batch=at(4, send(signal.SIGTERM)))
    return {"faults": faults, "saved at": checkpoint.steps_in(folder / "step 4" / "checkpoints")}


def told_twice(folder: Path) -> Any:
    """The second signal comes while the first one's checkpoint is written."""
    lab = Lab(folder)
    run, told = folder / "twice", []

    def tell() -> None:
        told.append(True)
        os.kill(os.getpid(), signal.SIGTERM)

    code = lab.run(
        run, on_batch=at(4, tell), on_disk=lambda number: os.kill(os.getpid(), signal.SIGINT) if told else None
    )
    saved = checkpoint.steps_in(run / "checkpoints")
    return {"code": code, "saved at": saved, "resumed": lab.run(run), "same": lab.state(run) == lab.whole}


def two_in_one_folder(folder: Path) -> Any:
    """The second is refused while the first lives, and comes in at once when it was killed."""
    lab = Lab(folder)
    run, (reads, writes) = folder / "shared", os.pipe()

    def hold(number: int) -> None:
        os.write(writes, b"!")
        signal.pause()

    first = lab.start(run, on_batch=hold)
    os.read(reads, 1)
    second = lab.run(run)
    words = Path(f"{run}.error").read_text()
    os.kill(first, signal.SIGKILL)
    end(first)
    return {"first": first, "second": second, "words": words, "third": lab.run(run)}


def full_disk(folder: Path) -> Any:
    """From the fourth batch on, no file may become larger than the weights: the checkpoint of step 5 does not fit."""
    lab = Lab(folder)
    run = folder / "full"
    code = lab.run(run, on_batch=at(4, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (12_000, -1))))
    left = sorted(entry.name for entry in (run / "checkpoints").iterdir())
    words = Path(f"{run}.error").read_text()
    return {"code": code, "words": words, "left": left, "resumed": lab.run(run), "same": lab.state(run) == lab.whole}


SCENARIOS = (killed_while_saving, killed_while_training, told_to_stop, told_twice, two_in_one_folder, full_disk)

if __name__ == "__main__":
    torch.set_num_threads(1)
    memory = Path("/dev/shm")  # a process that dies leaves the same on any disk, and this one is fast
    answers = {}
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
            answers[scenario.__name__] = scenario(Path(name))
    print(json.dumps(answers))
