"""`heedful predict`: answers each line of a file or of standard input with a line of output."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
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
MAX_LINES_NAMED, MAX_WORDS_NAMED = 5, 10  # in a warning
embedding_search = panel("Embedding search")

# A word that ends like a file name or contains folders: more likely a mistyped file name than a text.
_FILE_NAME = re.compile(r"\S*\.[A-Za-z]\w{0,4}|\.{0,2}/\S+|\S+/\S+/\S+")


@with_generation()
def predict(
    model: Model,
    inputs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE|-|TEXT…",
            help="Files with one text per line, - for standard input (the default), or texts. For other tasks: images, "
            "folders of images, or tables of series.",
        ),
    ] = None,
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

    With --n-best, each line starts with the number of its input line and a tab; with several inputs, their name before.
    """
    from ..tasks import load
    from .distributed import joined_processes, share_work
    from .output import PREDICTORS, output_format, search

    texts = inputs or ["-"]
    with joined_processes() as group:
        form: Form = "json" if as_json else "scores" if scores else "plain"
        if (query is None) != (index is None):
            raise ConfigError("--query (the text to search for) needs --index (the file to search), and vice versa")
        if scores and as_json:
            raise ConfigError("--scores and --json are two formats of the same output; give one of them")
        if as_stream:
            if scores or as_json or out is not None or overrides.get("n_best", 1) > 1:
                raise ConfigError("--stream writes one plain answer; leave out --scores, --json, --out and --n-best")
            if len(texts) > 1 or texts == ["-"] or os.path.exists(texts[0]) or "\n" in texts[0]:
                raise ConfigError("--stream is for one text on the command line; leave it out for files")
        for path in texts if index is None else [str(index)]:
            if out is not None and out.exists() and os.path.exists(path) and out.samefile(path):
                raise DataError(f"{out} is the input; write the output to another file")
        predictor = load(model, device=group.device(device))
        share_work(predictor, group)
        if query is not None and index is not None:
            if overrides or as_stream or scores or inputs:
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
                results = [PREDICTORS[predictor.input_kind](predictor, text, form, stream) for text in texts]
            if errors := [error for error in results if error]:
                raise DataError("; ".join(errors))
            return
        is_named = len(texts) > 1 and (as_json or overrides.get("n_best", 1) > 1)  # where output has line numbers
        output = output_format(predictor, form, overrides)
        if form != "plain" and predictor.output_kind == "translation" and predictor.settings.confidence is None:
            warn("warning: this model gives no confidence; training needs a larger validation set for that")
        answer_inputs(texts, predictor, output, out, group, as_stream=as_stream, is_named=is_named)


def answer_inputs(
    texts: Sequence[str],
    predictor: Any,
    output: OutputFormat,
    out: Path | None,
    group: SingleProcess,
    *,
    as_stream: bool = False,
    is_named: bool = False,
) -> None:
    """Answer the lines of texts, files and standard input (-); raise DataError at the end if some were refused."""
    sources = [_input(text, predictor, number if len(texts) > 1 else 0) for number, text in enumerate(texts, 1)]
    interactive = group.broadcast_object("-" in texts and sys.stdin.isatty())
    if interactive:
        warn("Type a text and press Enter; press Ctrl-D to quit.")
    with _output(out, group) as stream, _one_long_text_warning():
        n_lines = n_refused = 0
        for name, lines in sources:
            chunks = _chunks(lines, 1 if interactive else CHUNK * group.size, group)
            counts = _run(chunks, name, stream, output, as_stream=as_stream, is_named=is_named)
            n_lines, n_refused = n_lines + counts[0], n_refused + counts[1]
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
    chunks: Iterator[list[Line]],
    name: str,
    stream: BinaryIO,
    output: OutputFormat,
    *,
    as_stream: bool,
    is_named: bool = False,
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
            stream.writelines(f"{_with_name(row, name) if is_named else row}\n".encode() for row in rows)
            if not finished:
                unfinished.append(line.number)
        stream.flush()
        _warn_of_unknown_words(valid, output)
        n_lines += len(chunk)
    if unfinished:
        more = ", …" if len(unfinished) > MAX_LINES_NAMED else ""
        numbers = ", ".join(map(str, unfinished[:MAX_LINES_NAMED])) + more
        warn(f"warning: {len(unfinished):,} of {n_lines:,} answers reached their length limit: line {numbers}")
    return n_lines, n_refused


def _warn_of_unknown_words(lines: Sequence[Line], output: OutputFormat) -> None:
    """Name the words of these lines that the model does not know, so that nobody takes a guess for an answer."""
    unknown = [f"{word} (line {line.number})" for line in lines for word in output.unknown_words(line.text)]
    if unknown:
        more = f" and {len(unknown) - MAX_WORDS_NAMED:,} more" if len(unknown) > MAX_WORDS_NAMED else ""
        warn(f"warning: the answer is a guess; this model does not know: {', '.join(unknown[:MAX_WORDS_NAMED])}{more}")


def _with_name(row: str, name: str) -> str:
    """Return a row of output, of JSON or with tabs, with the name of its input before."""
    return f'{{"file": {json.dumps(name, ensure_ascii=False)}, {row[1:]}' if row.startswith("{") else f"{name}\t{row}"


def _input(text: str, predictor: Any, number: int = 0) -> tuple[str, Iterator[Line]]:
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
    return f"text {number}" if number else "the text", every_line(
        io.BytesIO(content if content.endswith(b"\n") else content + b"\n")
    )


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
