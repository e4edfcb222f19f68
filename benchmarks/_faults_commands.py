"""Runs `heedful` commands as forks of one process that has loaded everything, so that each takes little time.

python benchmarks/_faults_commands.py     reads commands as lines of JSON, and writes how each ended
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import subprocess
import sys
import time
import traceback
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NoReturn

LOADED = (
    *("heedful.cli.app", "heedful.cli.train_command", "heedful.lens.report", "heedful.tasks.ctranslate2_export"),
    *("heedful.tasks.hf_export", "heedful.tasks.inspection", "heedful.tasks.model_import", "heedful.tasks.run"),
    "torch._subclasses.fake_tensor",
)
POLL = 0.02  # seconds


@dataclass(frozen=True)
class Command:
    """One command: its arguments and its limits. The folder takes its streams `.stdin`, `.stdout` and `.stderr`."""

    arguments: list[str]
    folder: str
    streams: str
    seconds: float
    max_mib: float
    file_bytes: int | None = None


@dataclass(frozen=True)
class Usage:
    """How a command ended; the code is below 0 for the signal that ended it."""

    code: int
    peak_mib: float
    seconds: float
    too_large: bool


class Commands:
    """The process that runs the commands, one at a time."""

    def __init__(self, cores: list[int]) -> None:
        from _serving_processes import pin

        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, "HEEDFUL_LANGUAGE": "en", "COLUMNS": "1000", "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: pin(cores),
        )

    def run(self, command: Command) -> Usage:
        """Run a command to its end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asdict(command)) + "\n")
        self._process.stdin.flush()
        return Usage(**json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def live(command: Command) -> NoReturn:
    """Be a command, in a fork."""
    for number, (name, flags) in enumerate((("stdin", os.O_RDONLY), ("stdout", os.O_WRONLY), ("stderr", os.O_WRONLY))):
        os.dup2(os.open(f"{command.streams}.{name}", flags | os.O_CREAT, 0o644), number)
    code = 1
    try:
        os.chdir(command.folder)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
        sys.argv = ["heedful", *command.arguments]
        if command.file_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (command.file_bytes, command.file_bytes))
        importlib.import_module("heedful.cli").main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except BaseException:
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(code)


def watched(command: Command) -> Usage:
    """Run a command in a fork; kill it when its time or its memory is used up."""
    began, too_large = time.monotonic(), False
    pid = os.fork()
    if not pid:
        live(command)
    status_file = Path(f"/proc/{pid}/status")
    while True:
        done, status, usage = os.wait4(pid, os.WNOHANG)
        if done:
            return Usage(os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024, time.monotonic() - began, too_large)
        lines = status_file.read_text(encoding="utf-8").splitlines()
        resident = next((int(line.split()[1]) for line in lines if line.startswith("VmRSS")), 0)
        too_large = too_large or resident > 1024 * command.max_mib
        if too_large or time.monotonic() - began > command.seconds:
            os.kill(pid, 9)
        time.sleep(POLL)


def main() -> None:
    """Load everything, then run the commands that come."""
    for name in LOADED:
        importlib.import_module(name)
    for line in sys.stdin:
        values: dict[str, Any] = json.loads(line)
        print(json.dumps(asdict(watched(Command(**values)))), flush=True)


if __name__ == "__main__":
    main()
