"""`heedful serve`: models behind HTTP."""

import stat
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import ConfigError, MissingDependencyError
from ..serving.settings import Settings
from .console import say, warn
from .options import option, panel

NEEDED = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")
request_limit, total_limit, time_limit = panel("Limits of a request"), panel("Limits of all together"), panel("Time")


def serve(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="Folders of trained models; NAME=FOLDER gives one another name."),
    ],
    host: Annotated[str, option("Where to listen; 0.0.0.0 lets others in.")] = Settings.host,
    port: Annotated[int, option("0 takes any that is free.")] = Settings.port,
    api_key_file: Annotated[
        Path | None, option("A file with a key a line; every question then needs one of them.")
    ] = None,
    precision: Annotated[
        Literal["float32", "int8", "bf16"], option("Of models that write; int8 is faster and less exact.")
    ] = Settings.precision,
    look: Annotated[bool, option("Let people look inside the models.")] = Settings.look,
    json_log: Annotated[bool, option("A line of JSON for each request.", "--log-json")] = False,
    trusted_proxy: Annotated[
        list[str] | None, option("Believe this address or network about who asks. Repeatable.", metavar="ADDRESS")
    ] = None,
    max_body: Annotated[int, request_limit("Bytes.")] = Settings.max_body,
    max_items: Annotated[int, request_limit("Texts, images or series.")] = Settings.max_items,
    max_characters: Annotated[int, request_limit("Characters of one text.")] = Settings.max_characters,
    max_new_tokens: Annotated[int, request_limit("Tokens of one completion.")] = Settings.max_new_tokens,
    max_n: Annotated[int, request_limit("Completions of one prompt.")] = Settings.max_n,
    max_alternatives: Annotated[int, request_limit("Translations beside the best.")] = Settings.max_alternatives,
    max_concurrency: Annotated[
        int, total_limit("Requests being answered; more are refused at once.")
    ] = Settings.max_concurrency,
    max_waiting: Annotated[int, total_limit("Items that wait for one model.")] = Settings.max_waiting,
    max_connections: Annotated[int, total_limit("Open connections.")] = Settings.max_connections,
    seconds: Annotated[float, time_limit("For a whole request.")] = Settings.seconds,
    receive_seconds: Annotated[float, time_limit("Until a request has arrived.")] = Settings.receive_seconds,
    keep_alive: Annotated[int, time_limit("Seconds that an idle connection stays open.")] = Settings.keep_alive,
    drain_seconds: Annotated[
        float, time_limit("For running requests, when the server is asked to stop.")
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
