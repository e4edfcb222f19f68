"""The shell within this process: what it printed, beside the output and with which code it ended."""

from __future__ import annotations

import io
import signal
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from heedful.cli import main

# Small and quick, and still every part of a run: two validations, checkpoints, a bundle, a report.
SIZE = ("model.d_model=16", "model.n_heads=2", "model.d_ff=32", "model.n_encoder_layers=1", "model.n_decoder_layers=1")
QUICK = (
    *("tokenizer.vocab_size=300", "generation.beam=1", "data.check_script=false"),
    *("training.steps=8", "training.validate_every=4", "training.save_every=3", "training.batch_tokens=256"),
    *("training.log_every=2", "training.device=cpu"),
)


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()


def heedful(*words: object, stdin: bytes = b"", encoding: str = "utf-8") -> Done:
    """Run a command. Its streams are of this encoding, and no terminal."""
    out, err, given = io.BytesIO(), io.BytesIO(), io.BytesIO(stdin)
    given.name = "<stdin>"
    streams = [io.TextIOWrapper(raw, encoding=encoding) for raw in (out, err, given)]
    before = signal.getsignal(signal.SIGTERM)
    with (
        warnings.catch_warnings(),
        patch.object(sys, "argv", ["heedful", *map(str, words)]),
        patch.multiple(sys, stdout=streams[0], stderr=streams[1], stdin=streams[2]),
    ):
        warnings.simplefilter("always")
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        finally:
            signal.signal(signal.SIGTERM, before)
    for stream in streams[:2]:
        stream.flush()
    return Done(code, out.getvalue(), err.getvalue().decode(encoding))


def settings(*given: str) -> list[str]:
    """Each as the shell takes it, the quick ones before."""
    return [word for setting in (*QUICK, *given) for word in ("--set", setting)]


def quick_train(out: Path, data: Sequence[object] = (), *more: object, setting: Sequence[str] = ()) -> Done:
    """A quick run from made-up letters xa to xb."""
    task = ("train", "translation", "--source", "xa", "--target", "xb", "--out", out)
    files = ("--data", *data) if data else ()
    return heedful(*task, *files, *settings(*SIZE, *setting), *more)
