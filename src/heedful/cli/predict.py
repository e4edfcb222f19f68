"""`heedful predict`: answers each line of a file or of standard input with a line of output."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer

from ..errors import ConfigError, DataError
from ..files import replacing
from .console import complain, warn
from .options import Device, Model, option, panel, with_generation

if TYPE_CHECKING:
    from ..data.readers.files import Line
    from ..training.parallel import SingleProcess
    from .output import Form, OutputFormat

CHUNK = 1024  # lines that are processed together; the output is written chunk by chunk
MAX_LINES_NAMED = 5  # in a warning
embedding_search = panel("Embedding search")

# A word that ends like a file name or contains folders: more likely a mistyped file name than a text.
_FILE_NAME = re.compile(r"\S*\.[A-Za-z]\w{0,4}|\.{0,2}/\S+|\S+/\S+/\S+")


@with_generation()
def predict(
    model: Model,
    text: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-|TEXT",
            help="A file with one text per line, - for standard input, or a text. For other tasks: an image, a folder "
            "of images, or a table of series.",
        ),
    ] = "-",
    query: Annotated[
        list[str] | None, embedding_search("For an embedding model: a text to search for in --index. Repeatable.")
    ] = None,
    index: Annotated[Path | None, embedding_search("The file to search, with one text per line.")] = None,
    nearest: Annotated[int, embedding_search("The number of results for each query.", min=1)] = 10,
    out: Annotated[Path | None, option("Write to this file instead of standard output.")] = None,
    scores: Annotated[
        bool, option("Write confidence and log-probability after each answer, separated by tabs.", "--scores")
    ] = False,
    as_json: Annotated[
        bool, option("Write each answer as a line of JSON, with its tokens and their log-probabilities.", "--json")
    ] = False,
    as_stream: Annotated[
        bool, option("Write the answer to TEXT while it is generated, as soon as its text is final.", "--stream")
    ] = False,
    device: Device = "auto",
    *,
    overrides: dict[str, Any],
) -> None:
    """Run a trained model on raw text (UTF-8): one line of output for each line of input.

    With --n-best, each line starts with the number of its input line and a tab.
    """
    from ..tasks import load
    from .distributed import joined_processes, share_work
    from .output import PREDICTORS, output_format, search

    with joined_processes() as group:
        form: Form = "json" if as_json else "scores" if scores else "plain"
        if (query is None) != (index is None):
            raise ConfigError("--query (the text to search for) needs --index (the file to search), and vice versa")
        if scores and as_json:
            raise ConfigError("--scores and --json are two formats of the same output; give one of them")
        if as_stream:
            if scores or as_json or out is not None or overrides.get("n_best", 1) > 1:
                raise ConfigError("--stream writes one plain answer; leave out --scores, --json, --out and --n-best")
            if text == "-" or os.path.exists(text) or "\n" in text:
                raise ConfigError("--stream is for one text on the command line; leave it out for files")
        input_file = str(index) if index is not None else text
        if out is not None and out.exists() and os.path.exists(input_file) and out.samefile(input_file):
            raise DataError(f"{out} is the input; write the output to another file")
        predictor = load(model, device=group.device(device))
        share_work(predictor, group)
        if query is not None and index is not None:
            if overrides or as_stream or scores or text != "-":
                raise ConfigError("--query takes no TEXT, --scores, --stream or generation options; leave them out")
            with _output(out, group) as stream:
                search(predictor, query, index, stream, count=nearest, as_json=as_json)
            return
        if predictor.input_kind in PREDICTORS:
            if overrides or as_stream:
                raise ConfigError(
                    f"this model is for {predictor.task} and does not generate text; leave out the generation options"
                )
            with _output(out, group) as stream:
                error = PREDICTORS[predictor.input_kind](predictor, text, form, stream)
            if error:
                raise DataError(error)
            return
        name, lines = _input(text, predictor)
        interactive = group.broadcast_object(text == "-" and sys.stdin.isatty())
        output = output_format(predictor, form, overrides)
        if form != "plain" and predictor.output_kind == "translation" and predictor.settings.confidence is None:
            warn("warning: this model gives no confidence; training needs a larger validation set for that")
        if interactive:
            warn("Type a text and press Enter; press Ctrl-D to quit.")
        with _output(out, group) as stream, _one_long_text_warning():
            chunks = _chunks(lines, 1 if interactive else CHUNK * group.size, group)
            n_lines, n_refused = _run(chunks, name, stream, output, as_stream=as_stream)
        if n_refused:
            raise DataError(f"{n_refused:,} of {n_lines:,} lines were refused; the output has an empty answer for each")


@contextmanager
def _one_long_text_warning() -> Iterator[None]:
    """Show one warning about long texts for all chunks, when they are answered."""
    from ..tasks.translation.data import LongTextWarning

    show, collected = warnings.showwarning, list[LongTextWarning]()

    def collect(message: Any, *details: Any, **options: Any) -> None:
        if isinstance(message, LongTextWarning):
            collected.append(message)
        else:
            show(message, *details, **options)

    with warnings.catch_warnings():
        warnings.simplefilter("always", LongTextWarning)
        warnings.showwarning = collect
        yield
    if collected:
        warn(f"warning: {LongTextWarning.sum(collected)}")


def _chunks(lines: Iterator[Line], size: int, group: SingleProcess) -> Iterator[list[Line]]:
    """Yield lines in chunks, read by the first process: the others may not have the input."""
    from ..data.readers.files import Line

    while chunk := group.broadcast_object(list(islice(lines, size)) if group.rank == 0 else None):
        yield [Line(*line) for line in chunk]


def _run(
    chunks: Iterator[list[Line]], name: str, stream: BinaryIO, output: OutputFormat, *, as_stream: bool
) -> tuple[int, int]:
    """Answer all chunks; return the number of lines, and of those that were refused and got an empty answer."""
    unfinished: list[int] = []
    n_lines = n_refused = 0
    for chunk in chunks:
        checked = [line._replace(fault=line.fault or output.validation_error(line.text) or "") for line in chunk]
        valid = [line for line in checked if not line.fault]
        # A streamed answer is written already: it has no rows.
        answers = (([], output.stream(line, stream)) for line in valid) if as_stream else output.answers(valid)
        for line in checked:
            rows, finished = [output.refusal(line)], True
            if line.fault:
                n_refused += 1
                complain(f"{name}:{line.number}: {line.fault}")
            else:
                rows, finished = next(answers)
            stream.writelines(f"{row}\n".encode() for row in rows)
            if not finished:
                unfinished.append(line.number)
        stream.flush()
        n_lines += len(chunk)
    if unfinished:
        more = ", …" if len(unfinished) > MAX_LINES_NAMED else ""
        numbers = ", ".join(map(str, unfinished[:MAX_LINES_NAMED])) + more
        warn(f"warning: {len(unfinished):,} of {n_lines:,} answers reached their length limit: line {numbers}")
    return n_lines, n_refused


def _input(text: str, predictor: Any) -> tuple[str, Iterator[Line]]:
    """Return a name for the input, and its lines. A text on the command line is read like a file with this content."""
    from ..data.readers.files import every_line
    from .table_input import check_kind, is_table, table_lines

    if text == "-":
        return "<stdin>", every_line(sys.stdin.buffer)
    if os.path.exists(text):
        check_kind(Path(text))
        if is_table(Path(text)):
            note, rows = table_lines(Path(text), predictor)
            if note:
                warn(note, "dim")
            return text, rows
        return text, every_line(Path(text))
    if _FILE_NAME.fullmatch(text):
        raise DataError(f"{text}: there is no such file; if it is a text, pass it like this: echo TEXT | heedful …")
    content = os.fsencode(text)
    return "the text", every_line(io.BytesIO(content if content.endswith(b"\n") else content + b"\n"))


@contextmanager
def _output(path: Path | None, group: SingleProcess) -> Iterator[BinaryIO]:
    """Open the output of the first process: standard output, or a file that appears when it is complete."""
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
