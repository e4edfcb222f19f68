"""Files and folders that are whole or not there, and the sums by which they are known."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A hidden name beside `path` to write under. Without an error it is forced to the disk and takes its place."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partial
        force_to_disk(partial)
        os.replace(partial, path)
        with suppress(PermissionError):  # of a folder that may be written and not read
            force_to_disk(path.parent)
    except OSError as error:
        if error.errno is None or error.filename not in (None, partial, str(partial)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None  # a full disk does not say where
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A hidden folder beside `out` to write into; without an error it takes its place, with one it is removed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield partial
        for path in (partial, *partial.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
            force_to_disk(path)
        os.rename(partial, out)  # an empty folder is replaced, and nothing else
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def write_text(path: str | Path, text: str) -> None:
    """A text file, whole or not there."""
    with (
        replacing(path) as partial,
        partial.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):
        file.write(text)


def force_to_disk(path: Path) -> None:
    """A file's content, or the names that a folder holds."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
