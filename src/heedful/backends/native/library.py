"""The library of layers.c, compiled once for this machine and cached in the user's folder, and its functions on logits.

These run in C for float32 on a CPU, and in torch otherwise. Shapes: R rows, V vocabulary.
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
COMPILER_TIMEOUT = 120  # seconds


class UnavailableError(Exception):
    """The layers in C cannot be used here; the message says why."""


def library() -> ctypes.CDLL | None:
    """Return the compiled layers; None if there is no compiler, or HEEDFUL_NATIVE=0 disables them."""
    return _load_once()[0]


def unavailable_reason() -> str | None:
    """Return why there is no library, for the user; None if there is one."""
    return _load_once()[1]


_lock = Lock()
_results: dict[str | None, tuple[ctypes.CDLL | None, str | None]] = {}


def _load_once() -> tuple[ctypes.CDLL | None, str | None]:
    """Return the library, or why there is none."""
    switch = os.environ.get("HEEDFUL_NATIVE")
    with _lock:
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
    path = _folder() / f"layers-{_key(compiler)}.so"
    if not (path.is_file() and not path.is_symlink() and _is_private(path)):
        _compile(compiler, path)
    try:
        loaded = ctypes.CDLL(str(path))
    except OSError as error:
        raise UnavailableError(f"{path} cannot be loaded: {error}") from error
    pointer, integer = ctypes.c_void_p, ctypes.c_int64
    loaded.run_layers.argtypes = [pointer, pointer, pointer, ctypes.c_int]
    loaded.run_product.argtypes = [pointer, pointer, integer, pointer, ctypes.c_int]
    loaded.run_log_softmax.argtypes = [pointer, integer, integer, ctypes.c_int]
    loaded.run_top.argtypes = [pointer, integer, integer, integer, pointer, pointer, ctypes.c_int]
    return loaded


def _key(compiler: str) -> str:
    """Hash what the library depends on: the source, the flags, the compiler and the processor."""
    flags = ""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
        flags = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    sources = [path.read_text() for path in (SOURCE, *sorted(SOURCE.parent.glob("*.h")))]
    parts = (*sources, *FLAGS, compiler, platform.machine(), platform.processor(), flags)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _folder() -> Path:
    """Return the folder for libraries, to which no other user may write."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "heedful"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_private(folder) and os.access(folder, os.W_OK):
            return folder
    except (OSError, RuntimeError):
        pass
    return _temporary()


@cache
def _temporary() -> Path:
    """Create a folder that is removed when the process ends."""
    folder = Path(tempfile.mkdtemp(prefix="heedful-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _is_private(path: Path) -> bool:
    status = path.stat()
    return status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _compile(compiler: str, path: Path) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")
    command = [compiler, *FLAGS, str(SOURCE), "-o", str(partial), "-lm"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=COMPILER_TIMEOUT, check=False)
        if done.returncode:
            first = (done.stderr.strip().splitlines() or ["no message"])[0]
            raise UnavailableError(f"{compiler} could not compile {SOURCE.name}: {first}")
        partial.chmod(0o700)
        partial.replace(path)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"{compiler} could not compile {SOURCE.name}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def log_softmax(logits: Tensor) -> Tensor:
    """Return the log-probabilities of each row (R, V). In C, they overwrite the logits."""
    native = _library_for(logits)
    if native is None:
        return logits.log_softmax(dim=-1)
    logits = logits.contiguous()
    native.run_log_softmax(logits.data_ptr(), *logits.shape, torch.get_num_threads())
    return logits


def top(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k largest values of each row, in order, and their indices: (R, k)."""
    native = _library_for(scores)
    if native is None:
        best = scores.topk(k)
        return best.values, best.indices
    scores = scores.contiguous()
    values = torch.empty(len(scores), k, dtype=torch.float32, device="cpu")
    places = torch.empty(len(scores), k, dtype=torch.int64, device="cpu")
    native.run_top(scores.data_ptr(), *scores.shape, k, values.data_ptr(), places.data_ptr(), torch.get_num_threads())
    return values, places


def _library_for(rows: Tensor) -> ctypes.CDLL | None:
    return library() if rows.device.type == "cpu" and rows.dtype == torch.float32 else None
