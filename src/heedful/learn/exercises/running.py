"""Checks the files of a folder, in processes that may crash or be stopped."""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from .layout import NAMES
from .result import ExerciseResult

SECONDS = 30.0


def check(folder: Path, numbers: Sequence[int] = (), *, seconds: float = SECONDS) -> Iterator[ExerciseResult]:
    """Check the exercises with these numbers, or all.

    Args:
        folder: The folder that `start` has written.
        numbers: The exercises; all of them by default.
        seconds: The computing time that an exercise may take.
    """
    pending = []
    for number in numbers or list(NAMES):
        if (folder / f"{NAMES[number]}.py").is_file():
            pending.append(number)
        else:
            yield ExerciseResult(number, "no-file", {"file": f"{NAMES[number]}.py", "folder": str(folder)})
    while pending:
        results, code = _run(folder.resolve(), pending, seconds)
        if not results:
            file = f"{NAMES[pending[0]]}.py"
            results = [ExerciseResult(pending[0], "stopped", {"code": code, "file": file})]
        yield from results
        del pending[: len(results)]


def _run(folder: Path, numbers: list[int], seconds: float) -> tuple[list[ExerciseResult], int]:
    """Return the results until the process ended, and its exit code."""
    with tempfile.TemporaryDirectory() as temporary:
        report = Path(temporary) / "results.jsonl"
        report.touch()
        arguments = [str(folder), str(report), str(seconds), *map(str, numbers)]
        command = [sys.executable, "-P", "-m", f"{__package__}.runner", *arguments]
        code = -1
        with contextlib.suppress(subprocess.TimeoutExpired):  # a thread that never releases the interpreter
            limit = 600 + 10 * seconds * len(numbers)
            code = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=limit, check=False).returncode
        lines = report.read_text(encoding="utf-8").splitlines()
    return [ExerciseResult(**json.loads(line)) for line in lines], code
