"""`heedful predict`: one line out for one line in."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from ..errors import ConfigError, DataError
from ..files import replacing
from .console import complain, warn
from .options import option, with_generation
from .options import search as search_options

if TYPE_CHECKING:
    from ..data.readers.files import Line
    from ..training.parallel import SingleProcess
    from .output import Form, OutputFormat

NEAREST = 10
CHUNK = 1024  # lines translated together; the output appears chunk by chunk
NAMED = 5  # lines that a warning names

# One word that ends like a file's name, or has folders in it: more likely a mistyped file than a text.
_FILE_NAME = re.compile(r"\S*\.[A-Za-z]\w{0,4}|\.{0,2}/\S+|\S+/\S+/\S+")


@with_generation()
def predict(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")],
    text: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-|TEXT",
            help="A file with one text a line, - for the standard input, or a text. For other tasks: an image or a "
            "folder of them; a table of series.",
        ),
    ] = "-",
    query: Annotated[
        list[str] | None, search_options("For an embedder: what to look for in --index. Repeatable.")
    ] = None,
    index: Annotated[Path | None, search_options("A file with one text a line, to be searched.")] = None,
    nearest: Annotated[int, search_options("How many lines to give for each query.", min=1)] = NEAREST,
    out: Annotated[Path | None, option("Write to a file instead of the screen.")] = None,
    scores: Annotated[
        bool, option("Beside each answer, after tabs: its confidence and log-probability.", "--scores")
    ] = False,
    as_json: Annotated[
        bool, option("A line of JSON for each answer, with the pieces and what each is worth.", "--json")
    ] = False,
    as_stream: Annotated[
        bool, option("Show the answer to TEXT while it is written, as far as it is certain.", "--stream")
    ] = False,
    device: Annotated[str, option("cpu, cuda, or auto.")] = "auto",
    *,
    overrides: dict[str, Any],
) -> None:
    """Use a trained model: raw text in, raw text out, as many lines out as in. Both are UTF-8.

    With --n-best each line begins with the number of its input line and a tab.
    """
    from ..tasks import load
    from .distributed import joined_processes, share_work
    from .output import PREDICTORS, output_format, search

    with joined_processes() as group:
        form: Form = "json" if as_json else "scores" if scores else "plain"
        if (query is None) != (index is None):
            raise ConfigError("--query and --index belong together: what to look for, and the file to search")
        if scores and as_json:
            raise ConfigError("--scores and --json write the same in two forms; give one of them")
        if as_stream:
            if scores or as_json or out is not None or overrides.get("n_best", 1) > 1:
                raise ConfigError("--stream shows one plain answer; leave out --scores, --json, --out and --n-best")
            if text == "-" or os.path.exists(text) or "\n" in text:
                raise ConfigError("--stream is for one text in the command; files are answered line by line without it")
        input_file = str(index) if index is not None else text
        if out is not None and out.exists() and os.path.exists(input_file) and out.samefile(input_file):
            raise DataError(f"{out} is the input; write the output to another file")
        predictor = load(model, device=group.device(device))
        share_work(predictor, group)
        if query is not None and index is not None:
            if overrides or as_stream or scores or text != "-":
                raise ConfigError("a search takes --query and --index alone; leave out texts and what is for answers")
            with _output(out, group) as stream:
                search(predictor, query, index, stream, count=nearest, as_json=as_json)
            return
        if predictor.input_kind in PREDICTORS:
            if overrides or as_stream:
                raise ConfigError(
                    f"this model, for {predictor.task}, writes no text; leave out what is for models that do"
                )
            with _output(out, group) as stream:
                fault = PREDICTORS[predictor.input_kind](predictor, text, form, stream)
            if fault:
                raise DataError(fault)
            return
        name, lines = _input(text)
        interactive = group.broadcast_object(text == "-" and sys.stdin.isatty())
        output = output_format(predictor, form, overrides)
        if form != "plain" and predictor.generates_text and predictor.lacks_confidence:
            warn("warning: this model gives no confidence; training teaches it where the validation set can")
        if interactive:
            warn("Type a text and press Enter; Ctrl-D ends.")
        with _output(out, group) as stream:
            chunks = _chunks(lines, 1 if interactive else CHUNK * group.size, group)
            done, refused = _run(chunks, name, stream, output, as_stream=as_stream)
        if refused:
            raise DataError(f"{refused:,} of {done:,} lines were refused; the output has an empty answer for each")


def _chunks(lines: Iterator[Line], size: int, group: SingleProcess) -> Iterator[list[Line]]:
    """So many lines at a time, as the first process reads them: only it may have the input."""
    from ..data.readers.files import Line

    while chunk := group.broadcast_object(list(islice(lines, size)) if group.rank == 0 else None):
        yield [Line(*line) for line in chunk]


def _run(
    chunks: Iterator[list[Line]], name: str, stream: BinaryIO, output: OutputFormat, *, as_stream: bool
) -> tuple[int, int]:
    """Chunk by chunk; how many lines there were, and how many were refused, which have an empty answer."""
    unfinished: list[int] = []
    done = refused = 0
    for chunk in chunks:
        checked = [line._replace(fault=line.fault or output.validation_error(line.text) or "") for line in chunk]
        good = [line for line in checked if not line.fault]
        answers = _streamed(output, good, stream) if as_stream else output.answers(good)
        for line in checked:
            rows, finished = [output.refusal(line)], True
            if line.fault:
                refused += 1
                complain(f"{name}:{line.number}: {line.fault}")
            else:
                rows, finished = next(answers)
            stream.writelines(f"{row}\n".encode() for row in rows)
            if not finished:
                unfinished.append(line.number)
        stream.flush()
        done += len(chunk)
    if unfinished:
        named = ", ".join(map(str, unfinished[:NAMED])) + (", …" if len(unfinished) > NAMED else "")
        warn(f"warning: {len(unfinished):,} of {done:,} answers may be cut short, having come to no end: line {named}")
    return done, refused


def _streamed(output: OutputFormat, lines: Sequence[Line], stream: BinaryIO) -> Iterator[tuple[list[str], bool]]:
    """What is written bit by bit needs no line of its own."""
    for line in lines:
        yield [], output.stream(line, stream)


def _input(text: str) -> tuple[str, Iterator[Line]]:
    """What to call the input, and its lines. A text in the command is read as a file that holds it would be."""
    from ..data.readers.files import every_line

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
def _output(path: Path | None, group: SingleProcess) -> Iterator[BinaryIO]:
    """The screen, or a file that is complete or not there; of several processes, the first one's."""
    if group.rank > 0:
        yield io.BytesIO()
        return
    if path is None:
        sys.stdout.flush()
        yield sys.stdout.buffer
        return
    if path.is_dir():
        raise DataError(f"--out {path} is a folder; name a file in it")
    with replacing(path) as partial, partial.open("wb") as stream:
        yield stream
