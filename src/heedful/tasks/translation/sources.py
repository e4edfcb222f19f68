"""A run's tokenised data: read when the run begins, opened when it goes on, and read again where it may change."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path

from ...config import read_mapping, write_mapping
from ...data.readers import files_of
from ...data.tokenizer import Tokenizer
from ...errors import DataError
from ...training.errors import ResumeError, ResumeWarning
from .config import TranslationConfig
from .prepare import Files, Prepared, Readings, prepare

SOURCES = "sources.json"  # written when the data is whole
TOKENIZER = "the tokeniser settings"


def read_anew(config: TranslationConfig, files: Files, folder: Path) -> tuple[Prepared, Readings]:
    """The data of a run that begins."""
    return _read(config, files, folder, _fingerprints(config, files), None)


def go_on(
    config: TranslationConfig, files: Files, folder: Path, *, has_trained: bool, allow_changes: bool
) -> tuple[Prepared, Readings | None]:
    """The data of a run that goes on; no readings where the stores are still right.

    Files that have changed are read only if that is allowed. A run that has trained keeps its tokenisers:
    its weights mean nothing with others.
    """
    before = read_mapping(folder / SOURCES) if (folder / SOURCES).exists() else None
    now = _fingerprints(config, files)
    changed = [] if before is None else [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if TOKENIZER in changed and has_trained:
        raise ResumeError(f"{TOKENIZER} have changed, and a run keeps its tokeniser; begin a new run")
    if changed and not allow_changes:
        raise ResumeError(
            f"the data is not what this run began with; changed: {', '.join(sorted(changed))}. "
            "Put it back, begin a new run, or go on with the new data (--allow-changes)"
        )
    if before is not None and not changed:
        try:
            return Prepared.open(folder, joint=config.tokenizer.joint), None
        except DataError as error:
            warnings.warn(f"{error}; the data is read again", ResumeWarning, stacklevel=2)
    return _read(config, files, folder, now, _tokenizers(config, folder) if has_trained else None)


def _read(
    config: TranslationConfig,
    files: Files,
    folder: Path,
    fingerprints: dict[str, str],
    tokenizers: tuple[Tokenizer, Tokenizer] | None,
) -> tuple[Prepared, Readings]:
    (folder / SOURCES).unlink(missing_ok=True)
    prepared, readings = prepare(config, files, folder, tokenizers=tokenizers)
    write_mapping(folder / SOURCES, fingerprints)
    return prepared, readings


def _tokenizers(config: TranslationConfig, folder: Path) -> tuple[Tokenizer, Tokenizer]:
    source = Tokenizer.load(folder / "tokenizer.json")
    return source, source if config.tokenizer.joint else Tokenizer.load(folder / "target_tokenizer.json")


def _fingerprints(config: TranslationConfig, files: Files) -> dict[str, str]:
    """Of the input files, and of the settings that decide what becomes of them."""
    found = {
        "the languages": f"{config.source} to {config.target}",
        "the columns": json.dumps(files.columns),
        "the data settings": json.dumps(config.data.to_dict(), sort_keys=True),
        TOKENIZER: json.dumps(config.tokenizer.to_dict(), sort_keys=True),
    }
    for use, given in (("", files.train), (" (validation)", files.valid)):
        for path in files_of(given, config.source, config.target) if given else ():
            found[f"{path}{use}"] = _sha256(path)
    return found


def _sha256(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{path}: {error.strerror}") from None
