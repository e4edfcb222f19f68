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
from typing import Annotated, BinaryIO

import typer

from ..data.readers.files import Line
from ..data.readers.text import every_line
from ..errors import ConfigError, DataError
from ..files import replacing
from ..tasks import load
from ..tasks.forecasting import SeriesForecaster
from ..tasks.images import ImageClassifier
from ..tasks.translation import Translator
from ..training.parallel import Alone
from .answering import Answering, Form, Writing, answering
from .generation import (
    Beam,
    LengthPenalty,
    LengthPenaltyKind,
    MaxNewTokens,
    MinNewTokens,
    MinP,
    NBest,
    NoRepeatNgramSize,
    Precision,
    RepetitionPenalty,
    Sample,
    Seed,
    Temperature,
    TopK,
    TopP,
    given,
)
from .search import NEAREST, search
from .things import predict_images, predict_series
from .together import deal, together
from .words import complain, warn

CHUNK = 1024  # lines translated together; the output appears chunk by chunk
NAMED = 5  # lines that a warning names

# One word that ends like a file's name, or has folders in it: more likely a mistyped file than a text.
_FILE_NAME = re.compile(r"\S*\.[A-Za-z]\w{0,4}|\.{0,2}/\S+|\S+/\S+/\S+")


def predict(
    context: typer.Context,
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
        list[str] | None,
        typer.Option(help="For an embedder: what to look for in --index. Repeatable.", rich_help_panel="Search"),
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="A file with one text a line, to be searched.", rich_help_panel="Search")
    ] = None,
    nearest: Annotated[
        int, typer.Option(min=1, help="How many lines to give for each query.", rich_help_panel="Search")
    ] = NEAREST,
    out: Annotated[Path | None, typer.Option(help="Write to a file instead of the screen.")] = None,
    scores: Annotated[
        bool, typer.Option("--scores", help="Beside each answer, after tabs: its confidence and log-probability.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="A line of JSON for each answer, with the pieces and what each is worth.")
    ] = False,
    as_stream: Annotated[
        bool, typer.Option("--stream", help="Show the answer to TEXT while it is written, as far as it is certain.")
    ] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    beam: Beam = None,
    n_best: NBest = None,
    length_penalty: LengthPenalty = None,
    length_penalty_kind: LengthPenaltyKind = None,
    precision: Precision = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    seed: Seed = None,
    min_new_tokens: MinNewTokens = None,
    max_new_tokens: MaxNewTokens = None,
    repetition_penalty: RepetitionPenalty = None,
    no_repeat_ngram_size: NoRepeatNgramSize = None,
) -> None:
    """Use a trained model: raw text in, raw text out, as many lines out as in. Both are UTF-8.

    With --n-best each line begins with the number of its input line and a tab.
    """
    with together() as here:
        words = given(context)
        form: Form = "json" if as_json else "scores" if scores else "plain"
        if (query is None) != (index is None):
            raise ConfigError("--query and --index belong together: what to look for, and the file to search")
        if scores and as_json:
            raise ConfigError("--scores and --json write the same in two forms; give one of them")
        if as_stream:
            if scores or as_json or out is not None or (n_best or 1) > 1:
                raise ConfigError("--stream shows one plain answer; leave out --scores, --json, --out and --n-best")
            if text == "-" or os.path.exists(text) or "\n" in text:
                raise ConfigError("--stream is for one text in the command; files are answered line by line without it")
        read = str(index) if index is not None else text
        if out is not None and out.exists() and os.path.exists(read) and out.samefile(read):
            raise DataError(f"{out} is the input; write the output to another file")
        used = load(model, device=here.device(device))
        deal(used, here)
        if query is not None and index is not None:
            if words or as_stream or scores or text != "-":
                raise ConfigError("a search takes --query and --index alone; leave out texts and what is for answers")
            with _output(out, here) as stream:
                search(used, query, index, stream, count=nearest, as_json=as_json)
            return
        if isinstance(used, ImageClassifier | SeriesForecaster):
            if words or as_stream:
                raise ConfigError(f"this model, for {used.task}, writes no text; leave out what is for models that do")
            fault = None
            with _output(out, here) as stream:
                if isinstance(used, ImageClassifier):
                    fault = predict_images(used, text, form, stream)
                else:
                    predict_series(used, text, form, stream)
            if fault:
                raise DataError(fault)
            return
        name, lines = _input(text)
        by_hand = here.tell(text == "-" and sys.stdin.isatty())
        way = answering(used, form, words)
        if isinstance(way.model, Translator) and form != "plain" and way.model.settings.confidence is None:
            warn("warning: this model gives no confidence; training teaches it where the validation set can")
        if by_hand:
            warn("Type a text and press Enter; Ctrl-D ends.")
        with _output(out, here) as stream:
            chunks = _chunks(lines, 1 if by_hand else CHUNK * here.size, here)
            done, refused = _run(chunks, name, stream, way, as_stream=as_stream)
        if refused:
            raise DataError(f"{refused:,} of {done:,} lines were refused; the output has an empty answer for each")


def _chunks(lines: Iterator[Line], size: int, here: Alone) -> Iterator[list[Line]]:
    """So many lines at a time, as the first process reads them: only it may have the input."""
    while chunk := here.tell(list(islice(lines, size)) if here.rank == 0 else None):
        yield [Line(*line) for line in chunk]


def _run(
    chunks: Iterator[list[Line]], name: str, stream: BinaryIO, way: Answering, *, as_stream: bool
) -> tuple[int, int]:
    """Chunk by chunk; how many lines there were, and how many were refused, which have an empty answer."""
    unfinished: list[int] = []
    done = refused = 0
    for chunk in chunks:
        checked = [line._replace(fault=line.fault or way.why_not(line.text) or "") for line in chunk]
        good = [line for line in checked if not line.fault]
        answers = _streamed(way, good, stream) if as_stream else way.answers(good)
        for line in checked:
            shown, finished = [way.refusal(line)], True
            if line.fault:
                refused += 1
                complain(f"{name}:{line.number}: {line.fault}")
            else:
                shown, finished = next(answers)
            stream.writelines(f"{answer}\n".encode() for answer in shown)
            if not finished:
                unfinished.append(line.number)
        stream.flush()
        done += len(chunk)
    if unfinished:
        named = ", ".join(map(str, unfinished[:NAMED])) + (", …" if len(unfinished) > NAMED else "")
        warn(f"warning: {len(unfinished):,} of {done:,} answers may be cut short, having come to no end: line {named}")
    return done, refused


def _streamed(way: Answering, lines: Sequence[Line], stream: BinaryIO) -> Iterator[tuple[list[str], bool]]:
    """What is written bit by bit needs no line of its own."""
    if not isinstance(way, Writing):
        raise ConfigError(f"--stream is for models that write; this one, for {way.model.task}, reads")
    for line in lines:
        yield [], way.stream(line, stream)


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
def _output(path: Path | None, here: Alone) -> Iterator[BinaryIO]:
    """The screen, or a file that is complete or not there; of several processes, the first one's."""
    if here.rank > 0:
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
