"""What every part of benchmarks/training.py is given: data, recipes, engines, a device."""

from __future__ import annotations

import gzip
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from _measure import machine
from heedful.config import assign, read_mapping
from heedful.tasks.run import Files

ENGINES = ("eager", "graph", "compile")
TRANSFORMERS = "transformers, eager"  # how the peer is called in every table
# What --small makes of a recipe, so that every part can be tried in seconds.
SMALL = (
    "training.steps=12",
    "training.warmup_steps=4",
    "training.batch_tokens=1024",
    "training.validate_every=0",
    "training.log_every=4",
)


class PartError(Exception):
    """A part cannot run here; the message says what it needs."""


@dataclass(frozen=True)
class Bench:
    """One call of the benchmark. `small` shrinks all work until it says nothing but that it runs."""

    data: Path | None
    recipes: Path
    scratch: Path
    engines: tuple[str, ...] = ENGINES
    seeds: int = 3
    rounds: int = 5
    small: bool = False

    @property
    def device(self) -> torch.device:
        """The GPU; with --small the CPU will do."""
        if torch.cuda.is_available():
            return torch.device("cuda")
        if self.small:
            return torch.device("cpu")
        raise PartError("this part needs a CUDA GPU (or --small, to see that it runs)")

    def need_device(self) -> None:
        """Refuse before any work is done."""
        _ = self.device

    @property
    def captured(self) -> tuple[str, ...]:
        """The engines that were asked for and exist on this device."""
        return self.engines if self.device.type == "cuda" else ("eager",)

    @property
    def precision(self) -> str:
        """The fastest that the device has."""
        return "bf16-weights" if self.device.type == "cuda" else "float32"

    def folder(self) -> Path:
        """A new one, gone when the benchmark ends."""
        return Path(tempfile.mkdtemp(dir=self.scratch))

    def recipe(self, name: str) -> Path:
        """The file of settings."""
        path = self.recipes / f"{name}.yaml"
        if not path.exists():
            raise PartError(f"{path} is missing; --recipes names the folder that holds it")
        return path

    def settings(self, name: str) -> dict[str, Any]:
        """A recipe as `from_dict` takes it."""
        values = read_mapping(self.recipe(name))
        for key in ("task", "files"):
            values.pop(key, None)
        for assignment in self.changes(name):
            assign(values, assignment)
        return values

    def changes(self, name: str) -> tuple[str, ...]:
        """What a recipe's settings become with --small."""
        if not self.small:
            return ()
        pieces = ("tokenizer.vocab_size=600",) if name.startswith("multi30k") else ()
        on_cpu = ("training.engine=eager", "training.precision=float32") if self.device.type == "cpu" else ()
        return (*SMALL, *pieces, *on_cpu)

    def multi30k(self, *sets: str) -> tuple[str, ...]:
        """The files of some sets, English before German; plain or .gz."""
        return tuple(str(self._file(("multi30k",), f"{name}.{side}")) for name in sets for side in ("en", "de"))

    def pairs(self) -> Files:
        """Multi30k as a run takes it."""
        return Files(self.multi30k("train"), self.multi30k("val"))

    def tinyshakespeare(self) -> str:
        """The text."""
        return str(self._file(("tinyshakespeare", "ts"), "input.txt"))

    def _file(self, folders: Sequence[str], name: str) -> Path:
        if self.data is None:
            raise PartError("this part needs --data, a folder that holds multi30k/ and tinyshakespeare/ (or ts/)")
        places = [self.data / folder / f"{name}{end}" for folder in folders for end in ("", ".gz")]
        for path in places:
            if path.exists():
                return self._shortened(path) if self.small else path
        raise PartError(f"{places[0]} is missing, and so is every other place it is looked for; see --data")

    def _shortened(self, path: Path) -> Path:
        """The first lines."""
        short = self.scratch / path.name.removesuffix(".gz")
        opened = gzip.open if path.suffix == ".gz" else open
        with opened(path, "rt", encoding="utf-8") as lines:
            short.write_text("".join(islice(lines, 2000 if path.name.startswith(("train", "input")) else 40)), "utf-8")
        return short


def has_transformers() -> bool:
    """Whether the peer is installed; it is said where it is not."""
    if find_spec("transformers") is None:
        print("transformers is not installed: the peer is left out")
        return False
    import transformers

    transformers.logging.set_verbosity_error()
    return True


def facts() -> dict[str, Any]:
    """Where the figures come from."""
    here = machine()
    here["device"] = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    if "transformers" in sys.modules:
        here["transformers"] = version("transformers")
    return here


def verdict(holds: bool) -> str:
    """For the last column of a table."""
    return "holds" if holds else "BELOW"
