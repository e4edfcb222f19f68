"""`heedful look`: writes a page that shows what a model computes while it answers."""

import json
import re
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import ConfigError, DataError, HeedfulError
from ..files import write_text
from .console import echo, say
from .language import current
from .options import Device, Model, option, panel, with_generation

PAGE = Path("look.html")
picture = panel("Picture")
INPUTS = {"text": "TEXT", "image": "--image", "series": "--series"}  # by `input_kind`

LOOK_OPTIONS = "beam length_penalty length_penalty_kind precision max_new_tokens sample temperature top_k top_p seed"


@with_generation(*LOOK_OPTIONS.split())
def look(
    context: typer.Context,
    model: Model,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT|-", help="The input text; - reads it from standard input.")
    ] = None,
    image: Annotated[Path | None, option("For image classification: the image file.")] = None,
    series: Annotated[
        Path | None, option("For forecasting: a table of series; the model reads its latest time steps.")
    ] = None,
    series_name: Annotated[str | None, option("The series of the table to show; the default is the first.")] = None,
    column: Annotated[str | None, option("The column of the table to show; the default is the first.")] = None,
    target: Annotated[
        str | None, option("For translation: show how the model reads this translation instead of its own.")
    ] = None,
    out: Annotated[
        Path | None, option(f"The page to write; the default is {PAGE}, or no page if --json or --png is given.")
    ] = None,
    json_file: Annotated[Path | None, option("Write the page's data as JSON.", "--json", metavar="FILE")] = None,
    png: Annotated[Path | None, picture("Draw one attention map as .png or .svg.", metavar="FILE")] = None,
    layer: Annotated[int | None, picture("The layer to draw; the default is the last.", min=0)] = None,
    head: Annotated[int | None, picture("The head to draw; the default is the mean of all heads.", min=0)] = None,
    layers: Annotated[str | None, option("Show only these layers.", metavar="0,5")] = None,
    open_page: Annotated[bool, option("Open the page in a browser.", "--open")] = False,
    device: Device = "auto",
    *,
    overrides: dict[str, Any],
) -> None:
    """Write a page that shows what a model attends to while it answers. The page is one file and works offline.

    The answer is the same as that of `heedful predict`.
    """
    from ..demo import unknown_words
    from ..lens.page import write_page
    from ..tasks import load
    from ..tasks.inspection import draw, inspect

    if png is None and (layer is not None or head is not None):
        raise ConfigError("--layer and --head select what --png draws; the page shows all layers and heads")
    page = out or (PAGE if open_page or (json_file is None and png is None) else None)
    for path in (page, json_file, png):
        if path is not None and path.is_dir():
            raise DataError(f"{path} is a folder; name a file in it")
    predictor = load(model, device=device)
    item = _item(predictor, text, image, series)
    selection = {"series": series_name, "column": column}
    if series is None and any(selection.values()):
        raise ConfigError("--series-name and --column are for --series; leave them out")
    overrides |= {name: value for name, value in selection.items() if value is not None}
    labels: dict[str, Any] = {"name": model.resolve().name, "language": current()}
    try:
        document = inspect(predictor, item, target=target, layers=_numbers(layers), **labels, **overrides)
    except (ConfigError, DataError) as error:
        raise _with_flag_names(error, context) from None
    document["unknown_words"] = unknown_words(predictor, item)
    if png is not None:  # first, since it is the most likely to fail
        _say_written(draw(document, png, layer=layer, head=head))
    if json_file is not None:
        write_text(json_file, json.dumps(document, ensure_ascii=False, allow_nan=False) + "\n")
        _say_written(json_file)
    if page is not None:
        write_page(page, document)
        _say_written(page)
    if document["answer"] is not None and not document.get("given"):
        echo(document["answer"])
    if page is not None and open_page and not webbrowser.open(page.resolve().as_uri()):
        raise DataError(f"no browser could be opened; open the page yourself: {page}")


def _item(predictor: Any, text: str | None, image: Path | None, series: Path | None) -> Any:
    """Return the input of the kind that the model takes; refuse inputs of any other kind."""
    expected = INPUTS[predictor.input_kind]
    inputs = {"TEXT": text, "--image": image, "--series": series}
    if unexpected := [name for name, value in inputs.items() if value is not None and name != expected]:
        raise ConfigError(f"a model for {predictor.task} takes {expected}, not {unexpected[0]}")
    item = inputs[expected]
    if item is None:
        raise ConfigError(f"a model for {predictor.task} needs an input: give {expected}")
    if isinstance(item, Path):
        if not item.is_file():
            raise DataError(f"{item}: there is no such file")
        return item
    if item == "-":
        try:
            item = sys.stdin.buffer.read().decode("utf-8").removesuffix("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise DataError(f"<stdin>: not UTF-8 at byte {error.start}") from None
    if not predictor.takes_pairs:
        return item
    if item.count("\t") != 1:
        raise DataError("this model takes two texts with a tab between them: FIRST<TAB>SECOND")
    return tuple(item.split("\t"))


def _with_flag_names(error: HeedfulError, context: typer.Context) -> HeedfulError:
    """Return the error with the names of Python arguments replaced by those of options."""
    options = [option for option in context.command.params if option.opts[0].startswith("-")]
    flags = {str(option.name): max(option.opts, key=len) for option in options}
    flags |= {"series": "--series-name"}  # the argument of `inspect`
    pattern = "|".join(f"'{name}'" + (rf"|\b{name}\b" if "_" in name else "") for name in flags)
    message = re.sub(pattern, lambda name: flags[name[0].strip("'")], str(error))
    return (ConfigError if isinstance(error, ConfigError) else DataError)(message)


def _numbers(layers: str | None) -> list[int] | None:
    if layers is None:
        return None
    parts = layers.split(",")
    if not all(part.strip().isdecimal() for part in parts):
        raise ConfigError(f"--layers must be numbers from 0 separated by commas, such as 0,5, not {layers!r}")
    return [int(part) for part in parts]


def _say_written(path: Path) -> None:
    size = path.stat().st_size
    say(f"wrote {path} ({size / 1e6:.1f} MB)" if size >= 100_000 else f"wrote {path} ({size / 1e3:.0f} kB)")
