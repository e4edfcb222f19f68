"""Atomic writing of files and folders, and their SHA-256 sums."""

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MAX_TEXT_BYTES = 256 << 20  # of a config or a tokenizer; the largest in use have a tenth of it


def regular(path: Path) -> Path:
    """Return the path of a regular file; OSError for another: a pipe would block, and a device may never end."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path


def read_limited(path: Path, max_bytes: int = MAX_TEXT_BYTES) -> bytes:
    """Return the content of a regular file; OSError for another, or for more bytes than are allowed."""
    with regular(path).open("rb") as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than the {max_bytes:,} bytes that are allowed", str(path))
    return content


def sha256_of(path: Path) -> str:
    """Return the SHA-256 sum of a regular file's content in hexadecimal."""
    with regular(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a hidden path in the same folder to write to; without an error, the file then replaces `path`."""
    path = Path(path)
    partial = path.with_name(f".{path.name}.partial")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield partial
        force_to_disk(partial)
        os.replace(partial, path)
        with suppress(PermissionError):  # the folder may be writable and not readable
            force_to_disk(path.parent)
    except OSError as error:
        if error.errno is None or error.filename not in (None, partial, str(partial)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from None  # the error of a full disk has no file name
    finally:
        partial.unlink(missing_ok=True)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Yield a hidden folder beside `out` to write to; without an error it becomes `out`, otherwise it is removed."""
    out.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield partial
        for path in (partial, *partial.rglob("*")):
            path.chmod(0o755 if path.is_dir() else 0o644)
            force_to_disk(path)
        os.rename(partial, out)  # replaces an empty folder and nothing else
    except Exception as error:  # errors name the folder that the user gave
        error.args = tuple(_renamed(part, partial, out) for part in error.args)
        if isinstance(error, OSError):
            error.filename = _renamed(error.filename, partial, out)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _renamed(part: object, partial: Path, out: Path) -> object:
    return str(part).replace(str(partial), str(out)) if isinstance(part, str | Path) else part


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8 atomically."""
    with (
        replacing(path) as partial,
        partial.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file,
    ):
        file.write(text)


def force_to_disk(path: Path) -> None:
    """Write a file's content, or a folder's entries, from the system's cache to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
