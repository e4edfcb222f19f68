"""Every verb, with an example in its help."""

from __future__ import annotations

from typing import Annotated

import typer

from .. import __version__
from . import demo, doctor, evaluate, export, imports, look, predict, report, serve, tour, train
from .help import Command, Group
from .words import say

app = typer.Typer(
    cls=Group,
    help="The whole Transformer: small enough to read, fast enough to ship.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command(cls=Command, epilog="Example: heedful demo --direction en-ko --out runs/demo-en-ko")(demo.demo)
app.add_typer(train.app, name="train", epilog=train.EXAMPLE)
app.command(cls=Command, epilog='Example: heedful predict runs/demo "고양이가 물을 마셔요."')(predict.predict)
app.command(cls=Command, epilog='Example: heedful look runs/demo "고양이가 물을 마셔요." --out page.html')(look.look)
app.command(cls=Command, epilog="Example: heedful serve runs/en-ko runs/ko-en --port 8000")(serve.serve)
app.command(cls=Command, epilog="Example: heedful evaluate runs/ko-en --data test.tsv")(evaluate.evaluate)
app.command("import", cls=Command, epilog="Example: heedful import all-MiniLM-L6-v2 --out minilm")(imports.import_)
app.command(cls=Command, epilog="Example: heedful export runs/ko-en --to ctranslate2 --out ko-en-ct2")(export.export)
app.command(cls=Command, epilog="Example: heedful report runs/transformer runs/recurrent --out compare.html")(
    report.report
)
app.command(cls=Command, epilog="Example: heedful tour --language ko")(tour.tour)
app.command(cls=Command, epilog="Example: heedful doctor")(doctor.doctor)


def _version(asked: bool) -> None:
    if asked:
        say(f"heedful {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: heedful demo. Each verb shows its own: heedful train translation --help")
def options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; after a verb too.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The whole Transformer: small enough to read, fast enough to ship."""
