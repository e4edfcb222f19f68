"""`heedful predict`: one line out for one line in."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from ..data.readers.files import Line
from ..data.readers.text import every_line
from ..errors import DataError
from ..files import replacing
from ..tasks import load
from .words import complain, warn

CHUNK = 1024  # lines translated together; the output appears chunk by chunk
NAMED = 5  # lines that a warning names

# One word that ends like a file's name, or has folders in it: more likely a mistyped file than a text.
_FILE_NAME = re.compile(r"\S*\.[A-Za-z]\w{0,4}|\.{0,2}/\S+|\S+/\S+/\S+")


def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")],
    text: Annotated[
        str,
        typer.Argument(metavar="FILE|-|TEXT", help="A file with one text a line, - for the standard input, or a text."),
    ] = "-",
    out: Annotated[Path | None, typer.Option(help="Write to a file instead of the screen.")] = None,
    beam: Annotated[int | None, typer.Option(min=1, help="How many hypotheses to keep open. 1 is greedy.")] = None,
    length_penalty: Annotated[float | None, typer.Option(help="Above 0 favours longer answers.")] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
) -> None:
    """Use a trained model: raw text in, raw text out, as many lines out as in. Both are UTF-8."""
    given = {"beam": beam, "length_penalty": length_penalty}
    words = {name: value for name, value in given.items() if value is not None}
    name, lines = _input(text)
    if out is not None and out.exists() and os.path.exists(text) and out.samefile(text):
        raise DataError(f"{out} is the input; write the output to another file")
    by_hand = text == "-" and sys.stdin.isatty()
    translator = load(model, device=device)
    if by_hand:
        warn("Type a text and press Enter; Ctrl-D ends.")
    unfinished: list[int] = []
    done = refused = 0
    with _output(out) as stream:
        while chunk := list(islice(lines, 1 if by_hand else CHUNK)):
            texts = []
            for line in chunk:
                fault = line.fault or translator.why_not(line.text)
                texts.append("" if fault else line.text)
                if fault:
                    refused += 1
                    complain(f"{name}:{line.number}: {fault}")
            for line, answer in zip(chunk, translator.translate(texts, **words), strict=True):
                stream.write(f"{' '.join(answer.text.splitlines())}\n".encode())
                if not answer.finished:
                    unfinished.append(line.number)
            stream.flush()
            done += len(chunk)
    if unfinished:
        named = ", ".join(map(str, unfinished[:NAMED])) + (", …" if len(unfinished) > NAMED else "")
        warn(f"warning: {len(unfinished):,} of {done:,} answers may be cut short, having come to no end: line {named}")
    if refused:
        raise DataError(f"{refused:,} of {done:,} lines were refused; each is an empty line in the output")


def _input(text: str) -> tuple[str, Iterator[Line]]:
    """What to call the input, and its lines. A text in the command is read as a file that holds it would be."""
    if text == "-":
        return "<stdin>", every_line(sys.stdin.buffer)
    if os.path.exists(text):
        return text, every_line(Path(text))
    if _FILE_NAME.fullmatch(text):
        raise DataError(
            f"{text}: there is no such file; if it is a text, hand it over like this: echo TEXT | heedful …"
        )
    written = os.fsencode(text)
    return "the text", every_line(io.BytesIO(written if written.endswith(b"\n") else written + b"\n"))


@contextmanager
def _output(path: Path | None) -> Iterator[BinaryIO]:
    """The screen, or a file that is complete or not there."""
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    if path.is_dir():
        raise DataError(f"--out {path} is a folder; name a file in it")
    with replacing(path) as partial, partial.open("wb") as stream:
        yield stream
