"""The command-line application. Every command has an example in its help.

Command modules import torch and numpy only when a command runs, so that help and shell completion are fast.
"""

from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer._completion_classes import completion_init

from .. import __version__
from . import demo, evaluate, import_export, lab, learn, look, predict, reports, serve, train, translate
from .console import Command, CommandGroup, say
from .options import Language, option, with_language

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


def _add(name: str, command: Callable[..., Any], example: str) -> None:
    app.command(name, cls=Command, epilog=f"Example: {example}")(with_language(command))


_add("translate", translate.translate, 'heedful translate "안녕하세요?"')
_add("demo", demo.demo, "heedful demo --direction en-ko --out runs/demo-en-ko")
app.add_typer(train.app, name="train", epilog=train.EXAMPLE)
_add("predict", predict.predict, 'heedful predict runs/demo "고양이가 물을 마셔요."')
_add("look", look.look, 'heedful look runs/demo "고양이가 물을 마셔요." --out page.html')
_add("serve", serve.serve, "heedful serve runs/en-ko runs/ko-en --port 8000")
_add("evaluate", evaluate.evaluate, "heedful evaluate runs/ko-en --data test.tsv")
_add("import", import_export.import_, "heedful import all-MiniLM-L6-v2 --out minilm")
_add("export", import_export.export, "heedful export runs/ko-en --to ctranslate2 --out ko-en-ct2")
_add("report", reports.report, "heedful report runs/transformer runs/recurrent --out compare.html")
_add("lab", lab.lab, "heedful lab no-causal-mask --out runs/lab")
app.add_typer(learn.app, name="learn", epilog=learn.EXAMPLE)
_add("doctor", reports.doctor, "heedful doctor")

completion_init()  # `_HEEDFUL_COMPLETE=source_bash heedful` prints the shell's completion script


def _print_version(requested: bool) -> None:
    if requested:
        say(f"heedful {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: heedful demo. Every command has one in its help: heedful train translation --help")
def options(
    debug: Annotated[bool, option("Show the traceback of an error. Also works after the command.", "--debug")] = False,
    version: Annotated[bool, option("Print the version.", "--version", callback=_print_version, is_eager=True)] = False,
    language: Language = None,
) -> None:
    """The whole Transformer: small enough to read, fast enough to ship."""
