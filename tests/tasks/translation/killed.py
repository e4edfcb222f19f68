"""Runs of the shell that are killed or stopped at many moments, resumed, and compared with one that was not.

Every command is a fork of this process, which has loaded everything. The answers are printed as JSON.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from small_runs import write_rows

from heedful.data.report import PairReport
from heedful.tasks.translation.task import TranslationTask
from shell import heedful, quick_train

JOB = import_module("heedful.tasks.translation.task")
TRAIN = import_module("heedful.tasks.run.train")  # the module: the package has a function of that name
CALLS = ("mkdir", "fsync", "rename", "replace", "unlink", "rmdir")  # what changes the disk
KILLS = 10
SHORT = ("generation.max_new_tokens=6",)  # an untrained model would write on and on

Act = Callable[[], None]


def send(number: signal.Signals) -> Act:
    return lambda: os.kill(os.getpid(), number)


def before(owner: Any, name: str, hook: Act) -> None:
    """Call the hook before every call of a function."""
    original = getattr(owner, name)

    def hooked(*args: Any, **words: Any) -> Any:
        hook()
        return original(*args, **words)

    setattr(owner, name, hooked)


def at(number: int, act: Act) -> Act:
    """A hook that acts the given time it is called."""
    count = 0

    def hook() -> None:
        nonlocal count
        count += 1
        if count == number:
            act()

    return hook


def on(owner: Any, *names: str, hook: Act) -> Act:
    """Hook each of these functions."""

    def hook_all() -> None:
        for name in names:
            before(owner, name, hook)

    return hook_all


class Lab:
    """One set of data; runs in folders of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = write_rows(folder / "train.tsv", 300, lambda row: row[::-1], seed=1)
        quick_train(folder / "warm", [self.data], setting=SHORT)  # what is loaded late is loaded once, for all forks
        self.life(folder / "whole")
        self.whole = self.state(folder / "whole")

    def life(self, run: Path, prepare: Act = lambda: None, *more: str) -> tuple[int, str]:
        """A command in a process of its own: its code, below 0 the signal that killed it, and its errors."""
        said = self.folder / "said"
        said.write_text("")
        pid = os.fork()
        if not pid:
            code = 99
            try:
                prepare()
                if more:
                    done = heedful("train", "translation", "--out", run, *more)
                else:
                    done = quick_train(run, [self.data], setting=SHORT)
                said.write_text(done.err)
                code = done.code
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), said.read_text()

    def state(self, run: Path) -> Any:
        """The model's bytes and the names of all files."""
        names = sorted(str(path.relative_to(run)) for path in run.rglob("*"))
        return (run / "model.safetensors").read_bytes(), names

    def hurt(self, name: str, prepare: Act, code: int) -> tuple[list[str], str]:
        """Let a run end so, resume it, and say what is not as it should be."""
        run = self.folder / name
        found, said = self.life(run, prepare)
        faults = [] if found == code else [f"{name}: ended with {found}, not {code}: {said}"]
        if (run / "run.yaml").exists():
            again, error = self.life(run, lambda: None, "--resume")
        else:
            again, error = self.life(run)
        if again or error or self.state(run) != self.whole:
            faults.append(f"{name}: the resumed run is another: {again} {error}")
        shutil.rmtree(run)
        return faults, said


def answers(lab: Lab) -> dict[str, Any]:
    count = lab.folder / "count"
    count.write_text("")

    def tick() -> None:
        with count.open("a") as file:
            file.write(".")

    lab.life(lab.folder / "counted", on(os, *CALLS, hook=tick))
    calls = count.stat().st_size
    faults, said = [], {}
    kill = send(signal.SIGKILL)
    for n in range(1, calls + 1, max(1, calls // KILLS)):
        faults += lab.hurt(f"killed at call {n}", on(os, *CALLS, hook=at(n, kill)), -signal.SIGKILL)[0]
    moments: dict[str, tuple[Any, str, int]] = {
        "reading": (PairReport, "keep", 150),
        "training": (TranslationTask, "loss", 6),
        "validation": (TranslationTask, "validate", 1),
        "scoring": (JOB, "evaluate", 1),
        "report": (TRAIN, "write_report", 1),
    }
    for moment, (owner, name, number) in moments.items():
        for sent, code in ((signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)):
            title = f"{sent.name} while {moment}"
            found, said[title] = lab.hurt(title, on(owner, name, hook=at(number, send(sent))), code)
            faults += found
    return {"calls": calls, "faults": faults, "said": said}


if __name__ == "__main__":
    torch.set_num_threads(1)
    memory = Path("/dev/shm")  # a process that dies leaves the same on any disk, and this one is fast
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        json.dump(answers(Lab(Path(name))), sys.stdout)
