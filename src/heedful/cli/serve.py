"""`heedful serve`: models behind HTTP."""

from __future__ import annotations

import stat
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import ConfigError, MissingDependencyError
from ..serving.settings import Settings
from .console import say, warn

NEEDED = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")
ONE, ALL, TIME = "Limits of a request", "Limits of all together", "Time"


def serve(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="Folders of trained models; NAME=FOLDER gives one another name."),
    ],
    host: Annotated[str, typer.Option(help="Where to listen; 0.0.0.0 lets others in.")] = Settings.host,
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = Settings.port,
    api_key_file: Annotated[
        Path | None, typer.Option(help="A file with a key a line; every question then needs one of them.")
    ] = None,
    precision: Annotated[
        Literal["float32", "int8", "bf16"], typer.Option(help="Of models that write; int8 is faster and less exact.")
    ] = Settings.precision,
    look: Annotated[bool, typer.Option(help="Let people look inside the models.")] = Settings.look,
    json_log: Annotated[bool, typer.Option("--log-json", help="A line of JSON for each request.")] = False,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(metavar="ADDRESS", help="Believe this address or network about who asks. Repeatable."),
    ] = None,
    max_body: Annotated[int, typer.Option(help="Bytes.", rich_help_panel=ONE)] = Settings.max_body,
    max_items: Annotated[int, typer.Option(help="Texts, images or series.", rich_help_panel=ONE)] = Settings.max_items,
    max_characters: Annotated[
        int, typer.Option(help="Characters of one text.", rich_help_panel=ONE)
    ] = Settings.max_characters,
    max_new_tokens: Annotated[
        int, typer.Option(help="Tokens of one completion.", rich_help_panel=ONE)
    ] = Settings.max_new_tokens,
    max_n: Annotated[int, typer.Option(help="Completions of one prompt.", rich_help_panel=ONE)] = Settings.max_n,
    max_alternatives: Annotated[
        int, typer.Option(help="Translations beside the best.", rich_help_panel=ONE)
    ] = Settings.max_alternatives,
    max_concurrency: Annotated[
        int, typer.Option(help="Requests being answered; more are refused at once.", rich_help_panel=ALL)
    ] = Settings.max_concurrency,
    max_waiting: Annotated[
        int, typer.Option(help="Items that wait for one model.", rich_help_panel=ALL)
    ] = Settings.max_waiting,
    max_connections: Annotated[
        int, typer.Option(help="Open connections.", rich_help_panel=ALL)
    ] = Settings.max_connections,
    seconds: Annotated[float, typer.Option(help="For a whole request.", rich_help_panel=TIME)] = Settings.seconds,
    receive_seconds: Annotated[
        float, typer.Option(help="Until a request has arrived.", rich_help_panel=TIME)
    ] = Settings.receive_seconds,
    keep_alive: Annotated[
        int, typer.Option(help="Seconds that an idle connection stays open.", rich_help_panel=TIME)
    ] = Settings.keep_alive,
    drain_seconds: Annotated[
        float, typer.Option(help="For running requests, when the server is asked to stop.", rich_help_panel=TIME)
    ] = Settings.drain_seconds,
) -> None:
    """Serve models to clients of LibreTranslate and OpenAI, to other programs, and to people with a browser.

    Listens on this machine alone unless --host says otherwise. Ctrl-C or SIGTERM ends it: what runs is answered.
    """
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise MissingDependencyError(
            f"serving needs {', '.join(missing)}, which is not installed: pip install 'heedful[serve]'"
        )
    from ..serving.app import create_app
    from ..serving.models import Models
    from ..serving.server import address, listen
    from ..serving.server import serve as answer

    known = {field.name for field in fields(Settings)}
    settings = Settings(
        api_keys=_keys(api_key_file) if api_key_file is not None else (),
        trusted_proxies=tuple(trusted_proxy or ()),
        **{name: value for name, value in context.params.items() if name in known},
    )
    with listen(settings) as listening:  # before the models are loaded: a port in use is known at once
        loaded = Models.load(models, settings)
        for name, model in loaded.items():
            say(f"{name}: {model.task}")
        if not settings.api_keys and not address(listening).startswith(("http://127.", "http://[::1]:")):
            warn("warning: whoever reaches this address may use the models; --api-key-file asks for a key")
        say(f"listening at {address(listening)}; Ctrl-C ends")
        answer(create_app(loaded, settings), listening)


def _keys(file: Path) -> tuple[str, ...]:
    """One a line; empty lines and those that begin with # are none."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: keys are text, one a line; this file is none") from None
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise ConfigError(f"{file}: there is no key in it; write one a line, or leave out --api-key-file")
    if file.stat().st_mode & stat.S_IROTH:
        warn(f"warning: every user of this machine can read the keys; change that: chmod 600 {file}")
    return keys
