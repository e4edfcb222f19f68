"""Faults: what is done to Heedful, what should happen, and what did; commands run as processes that are watched."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from _faults_commands import Command, Commands

MIB = 2**20
MAX_MIB = 6_000  # a command that takes more memory is ended
MAX_TEXT = 160  # characters of a message in the table
SECONDS = 90.0


@dataclass(frozen=True)
class Seen:
    """What was observed, and whether it is what was expected."""

    passed: bool
    text: str


@dataclass(frozen=True)
class Fault:
    """One fault. `check` commits it and returns what was seen."""

    group: str
    name: str
    action: str
    expected: str
    check: Callable[[Bench], Seen]


FAULTS: dict[str, Fault] = {}
Check = Callable[["Bench"], Seen]


def fault(group: str, name: str, action: str, expected: str) -> Callable[[Check], Check]:
    """Register a function as the check of a fault."""

    def register(check: Check) -> Check:
        if name in FAULTS:
            raise ValueError(f"two faults are called {name}")
        FAULTS[name] = Fault(group, name, action, expected, check)
        return check

    return register


@dataclass(frozen=True)
class Ended:
    """How a command ended; the code is below 0 for the signal that ended it."""

    command: str
    code: int
    out: str
    err: str
    peak_mib: float
    seconds: float
    too_large: bool

    @property
    def message(self) -> str:
        """The last line of the errors."""
        return (self.err.strip().splitlines() or ["no message"])[-1]


@dataclass
class Shared:
    """What all benches share: the process that runs commands, and the memory that undamaged ones take."""

    patience: float = 1.0  # times the seconds that a command may take, for a machine that is busy with other work
    peaks: dict[str, float] = field(default_factory=dict)
    n_commands: int = 0
    process: Commands | None = None

    def commands(self, cores: Sequence[int]) -> Commands:
        """Return the process that runs commands; it starts at the first call."""
        if self.process is None:
            self.process = Commands([*cores])
        return self.process


@dataclass
class Bench:
    """Runs commands in a scratch folder; `sound` holds undamaged models, runs and data."""

    folder: Path
    sound: Path
    cores: Sequence[int] = ()
    _shared: Shared = field(default_factory=lambda: Shared())

    def copy(self, name: str) -> Path:
        """Copy something undamaged into the scratch folder."""
        shutil.copytree(self.sound / name, self.folder / name, symlinks=True)
        return self.folder / name

    def within(self, folder: Path) -> Bench:
        """Return a bench with another scratch folder, which shares what was measured."""
        return Bench(folder, self.sound, self.cores, self._shared)

    def run(
        self,
        *arguments: object,
        stdin: bytes = b"",
        seconds: float = SECONDS,
        file_bytes: int | None = None,
    ) -> Ended:
        """Run a command to its end.

        Args:
            *arguments: The command's arguments.
            stdin: Its standard input.
            seconds: When it is killed.
            file_bytes: The largest file that it may write, as on a full disk.
        """
        words = [str(argument) for argument in arguments]
        self._shared.n_commands += 1
        streams = self.sound / f"command-{self._shared.n_commands}"
        streams.with_suffix(".stdin").write_bytes(stdin)
        usage = self._shared.commands(self.cores).run(
            Command(words, str(self.folder), str(streams), seconds * self._shared.patience, MAX_MIB, file_bytes)
        )
        out, err = (streams.with_suffix(f".{name}").read_text("utf-8", "replace") for name in ("stdout", "stderr"))
        for name in ("stdin", "stdout", "stderr"):
            streams.with_suffix(f".{name}").unlink()
        return Ended(
            shlex.join(["heedful", *words]), usage.code, out, err, usage.peak_mib, usage.seconds, usage.too_large
        )

    def refused(self, ended: Ended, *parts: str, code: int | None = None, absent: Path | None = None) -> Seen:
        """Judge a command that should end with one clear error.

        Args:
            ended: The command's end.
            *parts: Regular expressions that the message must match.
            code: The exit code; 1 or 2 without it.
            absent: A path that must not exist afterwards.
        """
        problems = self._problems(ended)
        if ended.code not in ((1, 2) if code is None else (code,)):
            problems.append(f"ended with {ended.code}")
        problems += [f"the message lacks {part!r}" for part in parts if not re.search(part, ended.err)]
        if absent is not None and absent.exists():
            problems.append(f"{absent.name} was left")
        if hidden := [path.name for path in self.folder.rglob(".*") if path.name.endswith(".partial")]:
            problems.append(f"left {hidden[0]}")
        return self._seen(ended, problems, ended.message)

    def answered(self, ended: Ended, *parts: str, text: str | None = None) -> Seen:
        """Judge a command that should succeed, with output or warnings that match these patterns."""
        problems = self._problems(ended)
        if ended.code != 0:
            problems.append(f"ended with {ended.code}")
        problems += [f"the output lacks {part!r}" for part in parts if not re.search(part, ended.out + ended.err)]
        last = (ended.out.strip().splitlines() or [""])[-1]
        return self._seen(ended, problems, text or (ended.message if problems or ended.err else last))

    def limit_mib(self, command: str) -> float:
        """Return twice what the same command takes on undamaged files, the scratch folder's files added."""
        files = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file() and not path.is_symlink())
        return 2 * (self._sound_peak(command.split()[1]) + files / MIB)

    def _problems(self, ended: Ended) -> list[str]:
        problems = []
        if "Traceback (most recent call last)" in ended.err:
            problems.append("printed a traceback")
        if ".partial" in ended.err:
            problems.append("names a hidden file")
        limit = self.limit_mib(ended.command)
        if ended.too_large or ended.peak_mib > limit:
            problems.append(f"took {ended.peak_mib:,.0f} MiB, and {limit:,.0f} are justified")
        if ended.code == -9 and not ended.too_large:
            problems.append(f"did not end within {ended.seconds:.0f} s")
        return problems

    def _seen(self, ended: Ended, problems: list[str], message: str) -> Seen:
        message = message.replace(f"{self.folder}/", "").replace(f"{self.sound}/", "")
        text = message if len(message) <= MAX_TEXT else f"{message[:MAX_TEXT]}…"
        figures = f"{ended.seconds:.0f} s, {ended.peak_mib:,.0f} MiB"
        return Seen(not problems, "; ".join([*problems, f"{text} ({figures})"]))

    def _sound_peak(self, command: str) -> float:
        if command not in self._shared.peaks:
            scratch = self.sound / "scratch"
            shutil.rmtree(scratch, ignore_errors=True)
            scratch.mkdir()
            ended = self.within(scratch).run(*self._sound_commands[command])
            if ended.code:
                raise RuntimeError(f"{ended.command} should work: {ended.message}")
            self._shared.peaks[command] = ended.peak_mib
        return self._shared.peaks[command]

    @cached_property
    def _sound_commands(self) -> dict[str, list[str]]:
        """A command of each kind with undamaged files, whose memory is what such a command needs."""
        data = str(self.sound / "data" / "labelled.tsv")
        return {
            "predict": ["predict", str(self.sound / "classifier"), str(self.sound / "data" / "texts.txt")],
            "evaluate": ["evaluate", str(self.sound / "classifier"), "--data", data],
            "import": ["import", str(self.sound / "published"), "--out", "imported"],
            "export": ["export", str(self.sound / "classifier"), "--to", "hf", "--out", "exported"],
            "report": ["report", str(self.sound / "run"), "--out", "report.html"],
            "train": [*train_command("run"), "--data", str(self.sound / "data" / "pairs.tsv")],
            "look": ["look", str(self.sound / "classifier"), "The cat reads.", "--out", "look.html"],
        }


SIZE = ("model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_encoder_layers=1", "model.n_decoder_layers=1")
QUICK = (
    *("tokenizer.vocab_size=400", "generation.beam=1", "generation.max_new_tokens=6", "data.check_script=false"),
    *("training.steps=8", "training.validate_every=4", "training.save_every=3", "training.batch_tokens=256"),
    *("training.log_every=2", "training.device=cpu", "training.seed=1"),
)


def train_command(out: str, *changes: str) -> list[str]:
    """Return the arguments that train a tiny translator for a few steps; `--data` is still missing."""
    settings = [word for setting in (*SIZE, *QUICK, *changes) for word in ("--set", setting)]
    return ["train", "translation", "--source", "en", "--target", "ko", "--out", out, *settings]
