"""`heedful serve`: starts the HTTP server."""

import stat
from dataclasses import fields
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..errors import ConfigError, MissingDependencyError
from ..serving.settings import Settings
from .console import say, warn
from .options import PRECISION, Device, option, panel

REQUIRED = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")
request_limit, total_limit, time_limit = panel("Request limits"), panel("Server limits"), panel("Time")


def serve(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="Folders of trained models; NAME=FOLDER sets a model's name."),
    ],
    host: Annotated[str, option("The address to listen on; 0.0.0.0 allows other machines.")] = Settings.host,
    port: Annotated[int, option("The port; 0 chooses any free one.")] = Settings.port,
    api_key_file: Annotated[
        Path | None, option("A file with one API key per line; every request then needs one of them.")
    ] = None,
    device: Device = Settings.device,
    precision: Annotated[Literal["float32", "bf16", "int8"], option(PRECISION)] = Settings.precision,
    look: Annotated[bool, option("Allow clients to look inside the models.")] = Settings.look,
    json_log: Annotated[bool, option("Log each request as a line of JSON.", "--log-json")] = False,
    trusted_proxy: Annotated[
        list[str] | None,
        option("Use the X-Forwarded-For header of this address or network. Repeatable.", metavar="ADDRESS"),
    ] = None,
    max_body: Annotated[int, request_limit("The maximum size of a body in bytes.")] = Settings.max_body,
    max_items: Annotated[int, request_limit("The maximum number of texts, images or series.")] = Settings.max_items,
    max_characters: Annotated[int, request_limit("The maximum characters of a text.")] = Settings.max_characters,
    max_new_tokens: Annotated[int, request_limit("The maximum tokens of a completion.")] = Settings.max_new_tokens,
    max_n: Annotated[int, request_limit("The maximum number of completions of a prompt.")] = Settings.max_n,
    max_alternatives: Annotated[
        int, request_limit("The maximum number of translations besides the best one.")
    ] = Settings.max_alternatives,
    max_concurrency: Annotated[
        int, total_limit("The maximum number of running requests; more are refused at once.")
    ] = Settings.max_concurrency,
    max_waiting: Annotated[int, total_limit("The maximum number of items waiting for a model.")] = Settings.max_waiting,
    max_work: Annotated[int, request_limit("The maximum tokens of work of a request.")] = Settings.max_work,
    max_client_work: Annotated[
        int, total_limit("The maximum tokens of work of a client's running requests.")
    ] = Settings.max_client_work,
    max_connections: Annotated[int, total_limit("The maximum number of connections.")] = Settings.max_connections,
    seconds: Annotated[float, time_limit("The seconds that a request may take.")] = Settings.seconds,
    receive_seconds: Annotated[
        float, time_limit("The seconds within which a request must arrive.")
    ] = Settings.receive_seconds,
    keep_alive: Annotated[int, time_limit("The seconds until an idle connection is closed.")] = Settings.keep_alive,
    drain_seconds: Annotated[
        float, time_limit("The seconds that running requests get to finish when the server stops.")
    ] = Settings.drain_seconds,
) -> None:
    """Serve models over HTTP, with the APIs of LibreTranslate and OpenAI, a generic API and a web page.

    By default, only this machine can connect (see --host). Ctrl-C or SIGTERM stops the server; running requests are
    answered first.
    """
    if missing := [name for name in REQUIRED if find_spec(name) is None]:
        raise MissingDependencyError(
            f"serving needs {', '.join(missing)}, which is not installed: pip install 'heedful[serve]'"
        )
    from ..serving.app import create_app
    from ..serving.models import Models
    from ..serving.server import address, listen, run

    names = {field.name for field in fields(Settings)}
    settings = Settings(
        api_keys=_read_keys(api_key_file) if api_key_file is not None else (),
        trusted_proxies=tuple(trusted_proxy or ()),
        **{name: value for name, value in context.params.items() if name in names},
    )
    with listen(settings) as listener:  # before the models are loaded, since the port may be in use
        loaded = Models.load(models, settings)
        for name, model in loaded.items():
            say(f"{name}: {model.task}")
        if not settings.api_keys and not address(listener).startswith(("http://127.", "http://[::1]:")):
            warn("warning: everyone who can reach this address can use the models; --api-key-file requires a key")
        say(f"listening on {address(listener)}; press Ctrl-C to stop")
        run(create_app(loaded, settings), listener)


def _read_keys(file: Path) -> tuple[str, ...]:
    """Read one key per line; skip empty lines and comments (#)."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: not a text file; write one API key per line") from None
    keys = tuple(line for line in lines if line and not line.startswith("#"))
    if not keys:
        raise ConfigError(f"{file}: contains no API key; write one per line, or leave out --api-key-file")
    if file.stat().st_mode & stat.S_IROTH:
        warn(f"warning: every user of this machine can read the API keys; change that: chmod 600 {file}")
    return keys
