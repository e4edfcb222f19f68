"""layers.c and what it includes as a library, compiled once for this machine and kept in the user's cache; and its
functions over logits, which any model may use: in C for float32 on a CPU, through torch for the rest.

Shapes: R rows, V vocabulary.
"""

import atexit
import ctypes
import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
import threading
from functools import cache
from pathlib import Path
from threading import Lock

import torch
from torch import Tensor

SOURCE = Path(__file__).with_name("layers.c")
FLAGS = ("-O3", "-march=native", "-fno-math-errno", "-fno-trapping-math", "-fopenmp", "-shared", "-fPIC")
SECONDS = 120  # a compiler that takes longer is given up


class UnavailableError(Exception):
    """The layers in C cannot be used here; the message says why."""


def library() -> ctypes.CDLL | None:
    """The compiled layers; None where there is no compiler, or HEEDFUL_NATIVE=0 says not to use them."""
    return _tried()[0]


def unavailable_reason() -> str | None:
    """Why there is no library, for people; None where there is one."""
    return _tried()[1]


_one_at_a_time = Lock()
_results: dict[str | None, tuple[ctypes.CDLL | None, str | None]] = {}


def _tried() -> tuple[ctypes.CDLL | None, str | None]:
    """The library, or why there is none. It is tried once."""
    switch = os.environ.get("HEEDFUL_NATIVE")
    with _one_at_a_time:
        if switch not in _results:
            try:
                _results[switch] = _load(), None
            except UnavailableError as reason:
                _results[switch] = None, str(reason)
        return _results[switch]


def _load() -> ctypes.CDLL:
    if os.environ.get("HEEDFUL_NATIVE") == "0":
        raise UnavailableError("HEEDFUL_NATIVE=0 switches it off")
    compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise UnavailableError("there is no C compiler (cc, gcc or clang); install one for faster generation")
    made = _folder() / f"layers-{_key(compiler)}.so"
    if not _is_ours(made):
        _compile(compiler, made)
    try:
        return _declared(ctypes.CDLL(str(made)))
    except OSError as error:
        raise UnavailableError(f"{made} cannot be loaded: {error}") from error


def _key(compiler: str) -> str:
    """What the library depends on: the source, the flags, the compiler and the processor."""
    flags = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    sources = [path.read_text() for path in (SOURCE, *sorted(SOURCE.parent.glob("*.h")))]
    parts = (*sources, *FLAGS, compiler, platform.machine(), platform.processor(), flags)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _folder() -> Path:
    """Where libraries are kept: nobody else may write there."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "heedful"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _private(folder) and os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return _temporary()


@cache
def _temporary() -> Path:
    """A folder of our own that goes when we do."""
    folder = Path(tempfile.mkdtemp(prefix="heedful-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _private(path: Path) -> bool:
    found = path.stat()
    return found.st_uid == os.getuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _is_ours(path: Path) -> bool:
    return path.is_file() and not path.is_symlink() and _private(path)


def _compile(compiler: str, made: Path) -> None:
    fresh = made.with_name(f".{made.name}.{os.getpid()}.{threading.get_ident()}")
    command = [compiler, *FLAGS, str(SOURCE), "-o", str(fresh), "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        if done.returncode:
            first = (done.stderr.strip().splitlines() or ["no message"])[0]
            raise UnavailableError(f"{compiler} could not compile {SOURCE.name}: {first}")
        fresh.chmod(0o700)
        fresh.replace(made)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{compiler} could not compile {SOURCE.name}: {error}") from error
    finally:
        fresh.unlink(missing_ok=True)


def _declared(loaded: ctypes.CDLL) -> ctypes.CDLL:
    pointer, whole = ctypes.c_void_p, ctypes.c_int64
    loaded.run_layers.argtypes = [pointer, pointer, pointer, ctypes.c_int]
    loaded.run_product.argtypes = [pointer, pointer, whole, pointer, ctypes.c_int]
    loaded.run_log_softmax.argtypes = [pointer, whole, whole, ctypes.c_int]
    loaded.run_top.argtypes = [pointer, whole, whole, whole, pointer, pointer, ctypes.c_int]
    return loaded


def log_softmax(logits: Tensor) -> Tensor:
    """The logprobs of each row (R, V); in C they take the place of the logits."""
    found = _library_for(logits)
    if found is None:
        return logits.log_softmax(dim=-1)
    logits = logits.contiguous()
    found.run_log_softmax(logits.data_ptr(), *logits.shape, torch.get_num_threads())
    return logits


def top(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k largest of each row, in order, and their places: (R, k)."""
    found = _library_for(scores)
    if found is None:
        best = scores.topk(k)
        return best.values, best.indices
    scores = scores.contiguous()
    values = torch.empty(len(scores), k, dtype=torch.float32, device="cpu")
    places = torch.empty(len(scores), k, dtype=torch.int64, device="cpu")
    found.run_top(scores.data_ptr(), *scores.shape, k, values.data_ptr(), places.data_ptr(), torch.get_num_threads())
    return values, places


def _library_for(rows: Tensor) -> ctypes.CDLL | None:
    return library() if rows.device.type == "cpu" and rows.dtype == torch.float32 else None
