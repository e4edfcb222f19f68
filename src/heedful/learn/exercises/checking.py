"""Checks the files of a folder: runs their functions, and says in words what is wrong."""

import _thread
import importlib.util
import traceback
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Timer
from types import ModuleType
from typing import Any, Literal

from ...lab.models import seeded
from .answers import AnswerError, check_case
from .cases import CASES
from .layout import NAMES, message

SECONDS = 60.0


@dataclass(frozen=True)
class ExerciseResult:
    """What the check of an exercise says: the key of a message and its values."""

    number: int
    key: str
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def state(self) -> Literal["right", "unfinished", "wrong"]:
        """Whether the answer is right, not yet written, or wrong."""
        return "right" if self.key == "right" else "unfinished" if self.key in ("unfinished", "no-file") else "wrong"

    def text(self, language: str) -> str:
        """Return the explanation in a language."""
        return message(language, self.number, self.key).format_map(defaultdict(lambda: "–", self.values))


def check(folder: Path, numbers: Sequence[int] = (), *, seconds: float = SECONDS) -> Iterator[ExerciseResult]:
    """Check the exercises with these numbers, or all.

    Args:
        folder: The folder that `start` has written.
        numbers: The exercises; all of them by default.
        seconds: The time that an exercise may take.
    """
    for number in numbers or NAMES:
        path = folder / f"{NAMES[number]}.py"
        missing = ExerciseResult(number, "no-file", {"file": path.name, "folder": str(folder)})
        yield examine(number, path, seconds) if path.is_file() else missing


def examine(number: int, path: Path, seconds: float = SECONDS) -> ExerciseResult:
    """Check the functions of a file; what runs for too long is interrupted, as by Ctrl-C."""
    module, is_late = ModuleType(path.stem), Event()

    def interrupt() -> None:
        is_late.set()
        _thread.interrupt_main()

    timer = Timer(seconds, interrupt)
    timer.daemon = True
    timer.start()
    try:
        with seeded():
            module = _load(path)
            for case in CASES[number]():
                check_case(number, case, module)
    except AnswerError as error:
        return ExerciseResult(number, error.key, error.values)
    except KeyboardInterrupt as error:
        if not is_late.is_set():
            raise
        return ExerciseResult(number, "timeout", _place(error, path) | {"seconds": f"{seconds:g}"})
    except (Exception, SystemExit) as error:
        return _explain(number, path, module, error)
    finally:
        timer.cancel()
    return ExerciseResult(number, "right")


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"exercise_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _explain(number: int, path: Path, module: ModuleType, error: BaseException) -> ExerciseResult:
    if isinstance(error, AttributeError) and error.obj is module:
        return ExerciseResult(number, "missing", {"function": error.name})
    text = " ".join(str(error).split())[:300].rstrip(".")  # the message ends the sentence
    values = _place(error, path) | {"error": type(error).__name__, "text": text}
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return ExerciseResult(number, "syntax", values | {"line": error.lineno})
    return ExerciseResult(number, "exception" if "line" in values else "call", values)


def _place(error: BaseException, path: Path) -> dict[str, Any]:
    """Return the name of the file, and the line of it that an exception comes from, if it has one."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return {"file": path.name} | ({"line": lines[-1]} if lines else {})
