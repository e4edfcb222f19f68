"""`heedful look`: one page that shows a model while it works."""

from __future__ import annotations

import json
import re
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import ConfigError, DataError, HeedfulError
from ..files import write_text
from ..lens.page import write_page
from ..tasks import load
from ..tasks.classification import Classifier
from ..tasks.forecasting import SeriesForecaster
from ..tasks.images import ImageClassifier
from ..tasks.looking import draw, look_at
from .generation import (
    Beam,
    LengthPenalty,
    LengthPenaltyKind,
    MaxNewTokens,
    Sample,
    Seed,
    Temperature,
    TopK,
    TopP,
    given,
)
from .words import say

PAGE = Path("look.html")
PICTURE = "Picture"
DEVICES = re.compile(r"auto|cpu|mps|cuda(:\d+)?")


def look(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")],
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT|-]", help="What it is to read; - for the standard input.")
    ] = None,
    image: Annotated[Path | None, typer.Option(help="For a classifier of images: the file.")] = None,
    series: Annotated[Path | None, typer.Option(help="For a forecaster: a table; its newest steps are read.")] = None,
    series_name: Annotated[
        str | None, typer.Option(help="Which series of the table to show; the first unless given.")
    ] = None,
    column: Annotated[
        str | None, typer.Option(help="Which column of the table to show; the first unless given.")
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="For a translator: watch it write this instead of its own answer.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help=f"Where the page goes; {PAGE} unless given, and nowhere if only --json or --png is."),
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="The same as data for scripts.")
    ] = None,
    png: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture of one map, .png or .svg.", rich_help_panel=PICTURE),
    ] = None,
    layer: Annotated[
        int | None, typer.Option(min=0, help="Of this layer; the last unless given.", rich_help_panel=PICTURE)
    ] = None,
    head: Annotated[
        int | None, typer.Option(min=0, help="Of this head; their mean unless given.", rich_help_panel=PICTURE)
    ] = None,
    layers: Annotated[str | None, typer.Option(metavar="0,5", help="Show these layers only.")] = None,
    language: Annotated[Literal["en", "ko"], typer.Option("--lang", "--language", help="Of the page.")] = "en",
    open_it: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
    device: Annotated[str, typer.Option(help="cpu, cuda, or auto.")] = "auto",
    beam: Beam = None,
    length_penalty: LengthPenalty = None,
    length_penalty_kind: LengthPenaltyKind = None,
    max_new_tokens: MaxNewTokens = None,
    sample: Sample = False,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    seed: Seed = None,
) -> None:
    """See what a model attends to while it answers: one page that needs no network, to keep or to send.

    The answer is the one that `heedful predict` gives.
    """
    if png is None and (layer is not None or head is not None):
        raise ConfigError("--layer and --head choose what --png draws; give that too, or choose on the page")
    page = out or (PAGE if open_it or (json_file is None and png is None) else None)
    for path in (page, json_file, png):
        if path is not None and path.is_dir():
            raise DataError(f"{path} is a folder; name the file to write in it")
    if not DEVICES.fullmatch(device):
        raise ConfigError(f"--device is auto, cpu, cuda or one of several such as cuda:1, not {device!r}")
    used = load(model, device=device)
    item = _item(used, text, image, series)
    chosen = {"series": series_name, "column": column}
    if series is None and any(chosen.values()):
        raise ConfigError("--series-name and --column choose what is shown of a --series; leave them out")
    words = given(context) | {name: value for name, value in chosen.items() if value is not None}
    about: dict[str, Any] = {"name": model.resolve().name, "language": language}
    try:
        document = look_at(used, item, target=target, layers=_numbers(layers), **about, **words)
    except (ConfigError, DataError) as error:
        raise _in_flags(error, context) from None
    if png is not None:  # first, since more can be wrong with it
        _wrote(draw(document, png, layer=layer, head=head))
    if json_file is not None:
        write_text(json_file, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
        _wrote(json_file)
    if page is not None:
        write_page(page, document)
        _wrote(page)
    if document["answer"] is not None and not document.get("given"):
        say(document["answer"])
    if page is not None and open_it and not webbrowser.open(page.resolve().as_uri()):
        raise DataError(f"no browser could be opened; open the page yourself: {page}")


def _item(used: Any, text: str | None, image: Path | None, series: Path | None) -> Any:
    """What the model reads: one of the three, and the right one."""
    wanted = (
        "--image" if isinstance(used, ImageClassifier) else "--series" if isinstance(used, SeriesForecaster) else "TEXT"
    )
    offered = {"TEXT": text, "--image": image, "--series": series}
    if strange := [name for name, value in offered.items() if value is not None and name != wanted]:
        raise ConfigError(f"a model for {used.task} reads {wanted}, not {strange[0]}")
    item = offered[wanted]
    if item is None:
        raise ConfigError(f"a model for {used.task} needs something to read: give {wanted}")
    if isinstance(item, Path):
        if not item.is_file():
            raise DataError(f"{item}: there is no such file")
        return item
    item = _standard_input() if item == "-" else item
    return _two(item) if isinstance(used, Classifier) and used.settings.texts == 2 else item


def _two(text: str) -> tuple[str, str]:
    first, tab, second = text.partition("\t")
    if not tab or "\t" in second:
        raise DataError("this model reads two texts with a tab between them: FIRST<TAB>SECOND")
    return first, second


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"<stdin>: not UTF-8 at byte {error.start}") from None


def _in_flags(error: HeedfulError, context: typer.Context) -> HeedfulError:
    """The same with the names that Python has for options as they are written here."""
    options = [option for option in context.command.params if option.opts[0].startswith("-")]
    flags = {str(option.name): max(option.opts, key=len) for option in options}
    flags |= {"series": "--series-name"}  # a word of `look_at`; the file has no name there
    pattern = "|".join(f"'{name}'" + (rf"|\b{name}\b" if "_" in name else "") for name in flags)
    said = re.sub(pattern, lambda found: flags[found[0].strip("'")], str(error))
    return (ConfigError if isinstance(error, ConfigError) else DataError)(said)


def _numbers(layers: str | None) -> list[int] | None:
    if layers is None:
        return None
    parts = layers.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise ConfigError(f"--layers are numbers from 0 with commas between them, such as 0,5; not {layers!r}")
    return [int(part) for part in parts]


def _wrote(path: Path) -> None:
    size = path.stat().st_size
    say(f"wrote {path} ({size / 1e6:.1f} MB)" if size >= 100_000 else f"wrote {path} ({size / 1e3:.0f} kB)")
