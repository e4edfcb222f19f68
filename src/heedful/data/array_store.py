"""Arrays in a folder, mapped and not read: a million examples take no memory to speak of.

Beside its arrays a folder has a meta.json, written last. Without one that agrees with every byte of the others there
is no store: it is whole or it is not there.
"""

import hashlib
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError
from ..files import replacing, sha256_of

META = "meta.json"
FORMAT = 1


@dataclass(frozen=True)
class ArrayFolder:
    """A kind of store: its files beside meta.json, its name and its remedy for error messages."""

    files: tuple[str, ...]
    name: str
    missing: str
    remedy: str = ""

    @contextmanager
    def write(self, folder: Path) -> Iterator[tuple[dict[str, Path], dict[str, Any]]]:
        """Yield a path for each file and a mapping for meta.json. After an error an older store stays."""
        meta: dict[str, Any] = {"format": FORMAT}
        with ExitStack() as stack:  # which is unwound from its end: what is entered first takes its place last
            partial = {name: stack.enter_context(replacing(folder / name)) for name in (META, *self.files)}
            yield partial, meta
            meta["sha256"] = {name: sha256_of(partial[name]) for name in self.files}
            meta["fingerprint"] = _fingerprint(meta)
            partial[META].write_text(json.dumps(meta, indent=2), encoding="ascii")
            (folder / META).unlink(missing_ok=True)  # from here to the last rename there is no store

    def read(self, folder: Path) -> tuple[dict[str, Any], str]:
        """Check every byte of the store; return meta.json and its fingerprint."""
        try:
            meta = json.loads((folder / META).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"{folder}: {self.missing} (no {META})") from None
        except (OSError, ValueError, RecursionError) as error:
            raise self.unusable(folder, f"{META} cannot be read: {error}") from None
        if not isinstance(meta, dict) or meta.get("format") != FORMAT:
            raise self.unusable(folder, f"{META} is not of the format {FORMAT}, the one this version reads")
        fingerprint = _fingerprint(meta)
        sums = meta.get("sha256")
        if meta.get("fingerprint", fingerprint) != fingerprint or not isinstance(sums, dict):
            raise self.unusable(folder, f"{META} is not what was written")
        for name in self.files:
            try:
                same = sha256_of(folder / name) == sums.get(name)
            except FileNotFoundError:
                raise DataError(f"{folder}: {self.missing} (no {name})") from None
            except OSError as error:
                raise self.unusable(folder, f"{name} cannot be read: {error.strerror}") from None
            if not same:
                raise self.unusable(folder, f"{name} is not what was written")
        return meta, fingerprint

    def unusable(self, folder: Path, why: str) -> DataError:
        """Return the error for a broken store."""
        return DataError(f"{folder}: the {self.name} cannot be used: {why}{self.remedy and f'; {self.remedy}'}")


def mapped(path: Path, dtype: Any) -> NDArray[Any]:
    """Map a file as a plain array: slicing a `memmap` itself is many times slower. An empty file cannot be mapped."""
    return np.asarray(np.memmap(path, dtype, mode="r")) if path.stat().st_size else np.empty(0, dtype)


def _fingerprint(meta: dict[str, Any]) -> str:
    """Return a SHA-256 of everything else in meta.json, with the sums of the arrays."""
    content = {key: value for key, value in meta.items() if key != "fingerprint"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()
