"""Runs the checks of exercises in a process of their own, since a file to check may crash or never end.

The process appends each result to a file of JSON lines. If an exercise takes too long, it ends with that result.
"""

import contextlib
import importlib.util
import json
import os
import sys
import threading
import time
import traceback
from dataclasses import asdict
from pathlib import Path
from types import FrameType, ModuleType

import torch

from . import choice_cases, model_cases, part_cases  # noqa: F401  (they register the cases)
from .cases import CASES, AnswerError, check_case
from .layout import NAMES
from .result import ExerciseResult


def examine(number: int, path: Path) -> ExerciseResult:
    """Check the answers of a file, in this process."""
    torch.manual_seed(0)
    module = ModuleType(path.stem)
    try:
        module = _load(path)
        for case in CASES[number]():
            check_case(number, case, module)
    except AnswerError as error:
        return ExerciseResult(number, error.key, error.values)
    except (Exception, SystemExit) as error:
        return _explain(number, path, module, error)
    return ExerciseResult(number, "right")


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"exercise_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _explain(number: int, path: Path, module: ModuleType, error: BaseException) -> ExerciseResult:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    if isinstance(error, AttributeError) and error.obj is module:
        return ExerciseResult(number, "missing", {"function": error.name})
    text = " ".join(str(error).split())[:300].rstrip(".")  # the message ends the sentence
    values = {"error": type(error).__name__, "text": text, "file": path.name}
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return ExerciseResult(number, "syntax", values | {"line": error.lineno})
    if lines:
        return ExerciseResult(number, "exception", values | {"line": lines[-1]})
    return ExerciseResult(number, "call", values)


def _line(frame: FrameType | None, path: Path) -> int:
    """Return the line of a file that a frame, or the nearest frame that called it, is at; 0 if there is none."""
    while frame is not None and frame.f_code.co_filename != str(path):
        frame = frame.f_back
    return 0 if frame is None else frame.f_lineno


def main(folder: Path, report: Path, seconds: float, numbers: list[int]) -> None:
    """Check the files of these exercises and append the results to the report."""

    def write(result: ExerciseResult) -> None:
        with report.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result), default=str) + "\n")

    def watch(number: int, path: Path, done: threading.Event) -> None:
        start, limit = time.monotonic(), time.process_time() + seconds
        while not done.wait(0.05):  # computing time, since other programs may slow this one; sleeping counts a tenth
            if time.process_time() > limit or time.monotonic() > start + 10 * seconds:
                line = _line(sys._current_frames().get(threading.main_thread().ident or 0), path)
                write(ExerciseResult(number, "timeout", {"seconds": f"{seconds:g}", "line": line, "file": path.name}))
                os._exit(0)

    torch.set_num_threads(1)
    for number in numbers:
        path, done = folder / f"{NAMES[number]}.py", threading.Event()
        threading.Thread(target=watch, args=(number, path, done), daemon=True).start()
        result = examine(number, path)
        done.set()
        write(result)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]), [int(number) for number in sys.argv[4:]])
