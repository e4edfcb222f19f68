"""The folder of a run, held by one run at a time."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import FolderError
from .parallel import world


class RunFolder:
    """Where a run keeps what it makes. Hold it while writing; who comes second is refused."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoints = self.path / "checkpoints"
        self.log = self.path / "log.jsonl"
        self._handle: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Make the folder and hold its lock. The system frees the lock of a process that died.

        Held already by this object, it stays so: whoever prepares the folder may hold it around `fit`. Of several
        processes, the first holds it for all.
        """
        if self._handle is not None or world().rank > 0:
            yield
            return
        self._handle = self._lock()
        try:
            yield
        finally:
            os.close(self._handle)
            self._handle = None

    def _lock(self) -> int:
        lock = self.path / "run.lock"
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise FolderError(
                f"the run folder {self.path} cannot be written: {error.strerror} ({error.filename})"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        except BlockingIOError:
            holder = os.pread(handle, 1000, 0).decode(errors="replace").strip() or "another process"
            os.close(handle)
            raise FolderError(f"{self.path} is in use by {holder}; wait for it, or choose another folder") from None
        except OSError as error:
            os.close(handle)
            raise FolderError(f"the run folder {self.path} cannot be held: {error.strerror}") from None
        return handle
