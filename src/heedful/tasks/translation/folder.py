"""What a translation run keeps in its folder, and when the folder may be used."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

from ...config import read_mapping, write_mapping
from ...errors import ConfigError
from ...training import checkpoint
from ...training.errors import FolderError, ResumeError
from .config import TranslationConfig
from .prepare import READING, SCRATCH, Files
from .sources import SOURCES
from .tokenizers import SOURCE, TARGET

ASKED, DATA, BUNDLE = "run.yaml", "data", "config.json"
# Everything a run leaves behind; `overwrite` removes these and nothing else. ASKED goes last: while it is there,
# the rest is known to be a run's.
MADE = (
    *(BUNDLE, "model.safetensors", SOURCE, TARGET, "metrics.json", "README.md"),
    *("report.html", "log.jsonl", "tensorboard", "checkpoints"),
    *(f"{DATA}/{name}" for name in ("train", "valid", SOURCE, TARGET, READING, SCRATCH)),
    *(f"{DATA}/{SOURCES}", ASKED),
)
WORTH = {BUNDLE, "checkpoints", f"{DATA}/{SOURCES}"}  # without any of these, nothing is lost by beginning again


def begin(out: Path, *, overwrite: bool) -> None:
    """Make room for a new run, or say why there is none."""
    there = [name for name in MADE if _holds(out / name)]
    if not there:
        return
    if ASKED not in there:
        raise FolderError(
            f"{out} holds {', '.join(there)}, not made by a run, which would write these; choose another folder (--out)"
        )
    if not overwrite and not WORTH.isdisjoint(there):
        raise FolderError(
            f"{out} holds a run already; go on with it (--resume), replace it (--overwrite), "
            "or choose another folder (--out)"
        )
    for name in there:
        path = out / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()


def check_resumable(out: Path) -> bool:
    """Whether the run in this folder has trained yet; an error where there is none, or none that can go on."""
    asked(out)
    trained = bool(checkpoint.steps_in(out / "checkpoints"))
    if not trained and (out / BUNDLE).exists():
        raise ResumeError(f"the run in {out} is finished and its checkpoints are gone; begin a new one (--overwrite)")
    return trained


def asked(out: str | Path) -> tuple[TranslationConfig, Files]:
    """What the run in this folder was told to do."""
    path = Path(out) / ASKED
    if not path.exists():
        raise ResumeError(f"{out} holds no run to go on with; leave out --resume to begin one")
    try:
        values = read_mapping(path)
        files = Files.from_dict(values.pop("files", None))
        return TranslationConfig.from_dict(values), files
    except ConfigError as error:
        raise ResumeError(f"{path} is not as the run wrote it: {error}") from None


def remember(config: TranslationConfig, files: Files, out: Path) -> None:
    """Write down what the run is told to do; `asked` reads it, and so does --config."""
    write_mapping(out / ASKED, {**config.to_dict(), "files": asdict(files)})


def _holds(path: Path) -> bool:
    return any(path.iterdir()) if path.is_dir() else path.exists()
