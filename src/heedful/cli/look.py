"""`heedful look`: one page that shows a model while it works."""

import json
import re
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from ..errors import ConfigError, DataError, HeedfulError
from ..files import write_text
from .console import say
from .options import option, panel, with_generation

PAGE = Path("look.html")
picture = panel("Picture")
OPTIONS = {"text": "TEXT", "image": "--image", "series": "--series"}  # by what a model reads
DEVICES = re.compile(r"auto|cpu|mps|cuda(:\d+)?")

LOOK_OPTIONS = "beam length_penalty length_penalty_kind max_new_tokens sample temperature top_k top_p seed"


@with_generation(*LOOK_OPTIONS.split())
def look(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")],
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT|-]", help="What it is to read; - for the standard input.")
    ] = None,
    image: Annotated[Path | None, option("For a classifier of images: the file.")] = None,
    series: Annotated[Path | None, option("For a forecaster: a table; its newest steps are read.")] = None,
    series_name: Annotated[str | None, option("Which series of the table to show; the first unless given.")] = None,
    column: Annotated[str | None, option("Which column of the table to show; the first unless given.")] = None,
    target: Annotated[str | None, option("For a translator: watch it write this instead of its own answer.")] = None,
    out: Annotated[
        Path | None, option(f"Where the page goes; {PAGE} unless given, and nowhere if only --json or --png is.")
    ] = None,
    json_file: Annotated[Path | None, option("The same as data for scripts.", "--json", metavar="FILE")] = None,
    png: Annotated[Path | None, picture("A picture of one map, .png or .svg.", metavar="FILE")] = None,
    layer: Annotated[int | None, picture("Of this layer; the last unless given.", min=0)] = None,
    head: Annotated[int | None, picture("Of this head; their mean unless given.", min=0)] = None,
    layers: Annotated[str | None, option("Show these layers only.", metavar="0,5")] = None,
    language: Annotated[Literal["en", "ko"], option("Of the page.", "--lang", "--language")] = "en",
    open_it: Annotated[bool, option("Open the page in the browser.", "--open")] = False,
    device: Annotated[str, option("cpu, cuda, or auto.")] = "auto",
    *,
    overrides: dict[str, Any],
) -> None:
    """See what a model attends to while it answers: one page that needs no network, to keep or to send.

    The answer is the one that `heedful predict` gives.
    """
    from ..lens.page import write_page
    from ..tasks import load
    from ..tasks.inspection import draw, inspect

    if png is None and (layer is not None or head is not None):
        raise ConfigError("--layer and --head choose what --png draws; give that too, or choose on the page")
    page = out or (PAGE if open_it or (json_file is None and png is None) else None)
    for path in (page, json_file, png):
        if path is not None and path.is_dir():
            raise DataError(f"{path} is a folder; name the file to write in it")
    if not DEVICES.fullmatch(device):
        raise ConfigError(f"--device is auto, cpu, cuda or one of several such as cuda:1, not {device!r}")
    predictor = load(model, device=device)
    item = _item(predictor, text, image, series)
    chosen = {"series": series_name, "column": column}
    if series is None and any(chosen.values()):
        raise ConfigError("--series-name and --column choose what is shown of a --series; leave them out")
    overrides |= {name: value for name, value in chosen.items() if value is not None}
    about: dict[str, Any] = {"name": model.resolve().name, "language": language}
    try:
        document = inspect(predictor, item, target=target, layers=_numbers(layers), **about, **overrides)
    except (ConfigError, DataError) as error:
        raise _with_flag_names(error, context) from None
    if png is not None:  # first, since more can be wrong with it
        _say_written(draw(document, png, layer=layer, head=head))
    if json_file is not None:
        write_text(json_file, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
        _say_written(json_file)
    if page is not None:
        write_page(page, document)
        _say_written(page)
    if document["answer"] is not None and not document.get("given"):
        say(document["answer"])
    if page is not None and open_it and not webbrowser.open(page.resolve().as_uri()):
        raise DataError(f"no browser could be opened; open the page yourself: {page}")


def _item(predictor: Any, text: str | None, image: Path | None, series: Path | None) -> Any:
    """What the model reads: one of the three, and the right one."""
    wanted = OPTIONS[predictor.input_kind]
    offered = {"TEXT": text, "--image": image, "--series": series}
    if strange := [name for name, value in offered.items() if value is not None and name != wanted]:
        raise ConfigError(f"a model for {predictor.task} reads {wanted}, not {strange[0]}")
    item = offered[wanted]
    if item is None:
        raise ConfigError(f"a model for {predictor.task} needs something to read: give {wanted}")
    if isinstance(item, Path):
        if not item.is_file():
            raise DataError(f"{item}: there is no such file")
        return item
    item = _standard_input() if item == "-" else item
    if not predictor.takes_pairs:
        return item
    if item.count("\t") != 1:
        raise DataError("this model reads two texts with a tab between them: FIRST<TAB>SECOND")
    return tuple(item.split("\t"))


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise DataError(f"<stdin>: not UTF-8 at byte {error.start}") from None


def _with_flag_names(error: HeedfulError, context: typer.Context) -> HeedfulError:
    """The same with the names that Python has for options as they are written here."""
    options = [option for option in context.command.params if option.opts[0].startswith("-")]
    flags = {str(option.name): max(option.opts, key=len) for option in options}
    flags |= {"series": "--series-name"}  # an option of `inspect`; the file has no name there
    pattern = "|".join(f"'{name}'" + (rf"|\b{name}\b" if "_" in name else "") for name in flags)
    message = re.sub(pattern, lambda name: flags[name[0].strip("'")], str(error))
    return (ConfigError if isinstance(error, ConfigError) else DataError)(message)


def _numbers(layers: str | None) -> list[int] | None:
    if layers is None:
        return None
    parts = layers.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise ConfigError(f"--layers are numbers from 0 with commas between them, such as 0,5; not {layers!r}")
    return [int(part) for part in parts]


def _say_written(path: Path) -> None:
    size = path.stat().st_size
    say(f"wrote {path} ({size / 1e6:.1f} MB)" if size >= 100_000 else f"wrote {path} ({size / 1e3:.0f} kB)")
