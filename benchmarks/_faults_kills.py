"""Runs of `heedful train` that are killed before a call that changes the disk, resumed, and compared with a whole one.

python benchmarks/_faults_kills.py FOLDER PAIRS     prints what was seen, as JSON

Every run is a fork of this process, which has loaded everything, so that a kill at each call takes little time.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import torch

from _faults import train_command
from heedful.cli.app import app
from heedful.training import checkpoint

CALLS = ("mkdir", "fsync", "rename", "replace", "unlink", "rmdir")  # of os; they change the disk
SPARSE = 10  # one of so many calls outside of saving
Hook = Callable[[int, bool], None]


class Counter:
    """Calls a hook before every call that changes the disk, with its number and whether a checkpoint is being saved."""

    def __init__(self, hook: Hook) -> None:
        self._hook, self._count, self._saving = hook, 0, False
        for name in CALLS:
            setattr(os, name, self._watched(getattr(os, name)))
        for name in ("save", "prune"):
            setattr(checkpoint, name, self._marked(getattr(checkpoint, name)))
        checkpoint.save_file = self._watched(checkpoint.save_file)  # type: ignore[attr-defined]

    def _watched(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            self._count += 1
            self._hook(self._count, self._saving)
            return call(*arguments, **options)

        return wrapper

    def _marked(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def wrapper(*arguments: Any, **options: Any) -> Any:
            self._saving = True
            try:
                return call(*arguments, **options)
            finally:
                self._saving = False

        return wrapper


def live(arguments: list[str], hook: Hook | None = None) -> int:
    """Run a command in a fork; return its exit code, below 0 the signal that killed it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 1
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if hook is not None:
            Counter(hook)
        app(arguments, standalone_mode=False)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
    finally:
        os._exit(code)


def main() -> None:
    """Count the calls of a whole run, then kill a run before each, resume it and compare."""
    folder, data = Path(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    whole, calls = folder / "whole", folder / "calls"

    def command(run: Path) -> list[str]:
        return [*train_command(str(run)), "--data", data]

    def note(number: int, saving: bool) -> None:
        with calls.open("a") as file:
            file.write(f"{number} {int(saving)}\n")

    with open(os.devnull, "w") as nowhere, redirect_stdout(nowhere):
        app(command(folder / "warm"), standalone_mode=False)  # what is imported late is imported once, for all forks
    if live(command(whole), note):
        raise RuntimeError("the undisturbed run failed")
    expected = (whole / "model.safetensors").read_bytes()
    rows = [[int(word) for word in line.split()] for line in calls.read_text().splitlines()]
    points = [number for number, saving in rows if saving or not number % SPARSE]
    problems = []
    for point in points:
        run = folder / "run"
        problems += [f"call {point}: {problem}" for problem in killed(run, command(run), point, expected)]
        shutil.rmtree(run, ignore_errors=True)
    print(json.dumps({"calls": len(rows), "kills": len(points), "problems": problems}))


def killed(run: Path, command: list[str], point: int, expected: bytes) -> list[str]:
    """Kill a run before a call, and return what is wrong with what it leaves."""

    def kill(number: int, saving: bool) -> None:
        if number == point:
            os.kill(os.getpid(), signal.SIGKILL)

    problems = []
    if live(command, kill) != -signal.SIGKILL:
        problems.append("was not killed")
    for step in checkpoint.steps_in(run / "checkpoints"):
        try:
            checkpoint.load(checkpoint.path_of(run / "checkpoints", step))
        except Exception as error:
            problems.append(str(error))
    again = ["train", "translation", "--out", str(run), "--resume"] if (run / "run.yaml").exists() else command
    if live(again):
        problems.append("cannot be resumed")
    elif (run / "model.safetensors").read_bytes() != expected:
        problems.append("the resumed model is another")
    return problems


if __name__ == "__main__":
    main()
