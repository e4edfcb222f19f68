"""A run's tokenised data: read when the run begins, opened when it goes on, and read again where it may change."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

from ...config import read_mapping, write_mapping
from ...data.readers import files_of
from ...errors import DataError
from ...files import sha256_of
from ...training.errors import ResumeError, ResumeWarning
from .config import TranslationConfig
from .prepare import Files, Prepared, Readings, prepare
from .tokenizers import Tokenizers

SOURCES = "sources.json"  # written when the data is whole
TOKENIZER = "the tokeniser settings"
VALIDATION = " (validation)"  # behind the name of a file that is read for it


def read_anew(config: TranslationConfig, files: Files, folder: Path) -> tuple[Prepared, Readings]:
    """The data of a run that begins."""
    return _read(config, files, folder, None)


def go_on(
    config: TranslationConfig, files: Files, folder: Path, *, has_trained: bool, allow_changes: bool
) -> tuple[Prepared, Readings | None]:
    """The data of a run that goes on; no readings where the stores are still right.

    Files that have changed are read only if that is allowed; for files that are merely gone the stores serve.
    A run that has trained keeps its tokenisers: its weights mean nothing with others.
    """
    before = read_mapping(folder / SOURCES) if (folder / SOURCES).exists() else None
    joint = config.tokenizer.joint
    if before is not None:
        now = _fingerprints_now(config, files, before)
        changed = sorted(name for name in {**before, **now} if before.get(name) != now.get(name))
        gone = [name for name in changed if name not in now]
        if TOKENIZER in changed and has_trained:
            raise ResumeError(f"{TOKENIZER} have changed, and a run keeps its tokeniser; begin a new run")
        if changed and not allow_changes:
            named = ", ".join(f"{name} (gone)" if name in gone else name for name in changed)
            new = "the pairs made from it" if changed == gone else "the new data"
            raise ResumeError(
                f"the data is not what this run began with; changed: {named}. "
                f"Put it back, begin a new run, or go on with {new} (--allow-changes)"
            )
        if changed and changed == gone:
            message = f"gone: {', '.join(gone)}; the run goes on with the pairs made from it"
            warnings.warn(message, ResumeWarning, stacklevel=2)
            return Prepared.open(folder, joint=joint), None
        if not changed:
            try:
                return Prepared.open(folder, joint=joint), None
            except DataError as error:
                warnings.warn(f"{error}; the data is read again", ResumeWarning, stacklevel=2)
    return _read(config, files, folder, Tokenizers.load(folder, joint=joint) if has_trained else None)


def _read(
    config: TranslationConfig, files: Files, folder: Path, tokenizers: Tokenizers | None
) -> tuple[Prepared, Readings]:
    fingerprints = _settings(config, files) | _sums(config, files)  # a file that is missing is named before any harm
    (folder / SOURCES).unlink(missing_ok=True)
    prepared, readings = prepare(config, files, folder, tokenizers=tokenizers)
    write_mapping(folder / SOURCES, fingerprints)
    return prepared, readings


def _fingerprints_now(config: TranslationConfig, files: Files, before: dict[str, str]) -> dict[str, str]:
    """Those of the settings and of the files as they are; none of a file of `before` that is gone."""
    settings = _settings(config, files)
    try:
        return settings | _sums(config, files)
    except DataError:
        known = {name: Path(name.removesuffix(VALIDATION)) for name in before if name not in settings}
        asked = [Path(path) for path in (*files.train, *files.valid)]
        ours = {place for path in known.values() for place in (path, *path.parents)}
        if all(path.exists() for path in known.values()) or any(
            not path.exists() and path not in ours for path in asked
        ):
            raise
        return settings | {name: sha256_of(path) for name, path in known.items() if path.exists()}


def _settings(config: TranslationConfig, files: Files) -> dict[str, str]:
    """What decides what becomes of the files."""
    return {
        "the languages": f"{config.source} to {config.target}",
        "the columns": json.dumps(files.columns),
        "the data settings": json.dumps(config.data.to_dict(), sort_keys=True),
        TOKENIZER: json.dumps(config.tokenizer.to_dict(), sort_keys=True),
    }


def _sums(config: TranslationConfig, files: Files) -> dict[str, str]:
    """Of every file that is read."""
    return {
        f"{path}{use}": sha256_of(path)
        for use, given in (("", files.train), (VALIDATION, files.valid))
        for path in (files_of(given, config.source, config.target) if given else ())
    }
