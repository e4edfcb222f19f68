"""Runs one case of fuzzing, and says what is wrong with how a reader behaved.

A reader of untrusted input returns, or raises a HeedfulError whose message names the file. Everything else is a
finding: another exception, a panic, a message without the file, much memory, or much time on a processor.
"""

from __future__ import annotations

import os
import re
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from types import FrameType

from mutations import Mutate

from heedful.errors import HeedfulError, MissingDependencyError

MAX_SECONDS = 5.0  # on a processor, for an input of at most a few hundred kilobytes
MAX_MEMORY = 256 << 20  # bytes that one case may add to the most that this process has held
STUCK = 20.0  # seconds on a processor after which a case is stopped
MAX_BYTES = 1 << 20
MUTATIONS = (1, 1, 1, 2, 4)


@dataclass(frozen=True)
class Target:
    """A reader, valid inputs, and how they are changed.

    Attributes:
        name: What it reads.
        seeds: Returns the valid inputs.
        mutate: Changes an input.
        check: Writes an input into a folder and reads it; raises what the reader must not raise.
        cases: How many cases the tests run.
    """

    name: str
    seeds: Callable[[], Sequence[bytes]]
    mutate: Mutate
    check: Callable[[bytes, Path], None]
    cases: int = 300

    def content(self, case: int) -> bytes:
        """Return the input of a case, which depends on its number alone."""
        random = Random(f"{self.name} {case}")
        content = random.choice(self.seeds())
        for _ in range(random.choice(MUTATIONS)):
            content = self.mutate(random, content)[:MAX_BYTES]
        return content


@dataclass(frozen=True)
class Finding:
    """What was wrong with a case: the kind, where it happened, and the traceback."""

    target: str
    case: int
    kind: str
    place: str
    details: str = ""

    @property
    def signature(self) -> str:
        """Equal for findings that probably have one cause."""
        return f"{self.target}: {self.kind}, {self.place}"


class StuckError(BaseException):
    """A case that did not end; no reader catches it."""


def run_case(target: Target, case: int, folder: Path) -> Finding | None:
    """Run a case; return what was wrong, or None."""
    content = target.content(case)
    before, began = peak_memory(), time.process_time()
    try:
        with warnings.catch_warnings(), _stopped_after(STUCK):
            warnings.simplefilter("ignore")
            target.check(content, folder)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        details = "".join(traceback.format_exception(error))[-6000:]
        return Finding(target.name, case, type(error).__name__, _place(error), details)
    if (seconds := time.process_time() - began) > MAX_SECONDS:
        return Finding(target.name, case, "time", "", f"{seconds:.1f} s for {len(content):,} bytes")
    if (added := peak_memory() - before) > MAX_MEMORY:
        reset_peak_memory()
        return Finding(target.name, case, "memory", "", f"{added >> 20:,} MiB more for {len(content):,} bytes")
    return None


def reading(
    name: str, read: Callable[[Path], object], *, beside: Callable[[Path], None] | None = None
) -> Callable[[bytes, Path], None]:
    """Return the check of a reader of one file.

    Args:
        name: The name of the file.
        read: Reads it completely; gets the path of the file.
        beside: Writes other files into the folder, once.
    """

    def check(content: bytes, folder: Path) -> None:
        path = folder / name
        if not folder.is_dir():
            folder.mkdir(parents=True)
            if beside is not None:
                beside(folder)
        path.write_bytes(content)
        expect_error_of(folder, lambda: read(path))

    return check


def expect_error_of(folder: Path, run: Callable[[], object]) -> None:
    """Run a reader; fail if it raises a HeedfulError whose message names no file of the folder."""
    try:
        run()
    except MissingDependencyError:
        raise
    except HeedfulError as error:
        if str(folder) not in str(error):
            raise AssertionError(f"the message names no file: {error}") from error


def _place(error: BaseException) -> str:
    """Return the innermost line of the package, or of the harness, and for assertions also their text."""
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if "/heedful/" in frame.filename] or frames[-1:]
    cause = error.__cause__
    if cause is not None and isinstance(error, AssertionError):
        return _place(cause)
    frame = inside[-1]
    return f"{Path(frame.filename).name}:{frame.name}: {re.sub(r'[0-9]+', '0', frame.line or '')[:80]}"


@contextmanager
def _stopped_after(seconds: float) -> Iterator[None]:
    """Raise StuckError after this time on a processor, if Python code runs by then."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise StuckError(f"no end after {seconds:g} seconds")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def peak_memory() -> int:
    """Return the most bytes that this process has held in memory; 0 where the system does not say."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def reset_peak_memory() -> None:
    """Let the peak begin at what is held now."""
    with suppress(OSError), os.fdopen(os.open("/proc/self/clear_refs", os.O_WRONLY), "w") as file:
        file.write("5")
