"""The command line: how errors, warnings and signals are handled. The commands are in `app.py`."""

import io
import os
import signal
import sys
import warnings

from ..errors import ConfigError, HeedfulError
from .console import complain, translate_typer, warn
from .language import choose


def main() -> None:
    """Run a command. An error is one line; its exit code is 2 for wrong use, 1 for a failure, 128 + n for a signal."""
    arguments, debug, language = _common_options(sys.argv[1:])
    _configure_process()
    try:
        choose(language)
        from .app import app  # here, so that Ctrl-C during imports prints no traceback

        translate_typer()
        app(arguments)
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
    except (HeedfulError, OSError, MemoryError) as error:
        code = getattr(error, "code", None)  # set if the run was asked to stop, which is not an error
        if debug and not code:
            raise
        complain(_message(error) if code else f"error: {_message(error)}")
        sys.exit(code or (2 if isinstance(error, ConfigError) else 1))


def _common_options(arguments: list[str]) -> tuple[list[str], bool, str | None]:
    """Return the arguments without --debug and --language, whether --debug is given, and the language.

    They may stand before or after the command, but not behind a -- that ends the options.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options, rest, language = iter(arguments[:end]), list[str](), None
    for argument in options:
        name, _, value = argument.partition("=")
        if name == "--language" and (chosen := value or next(options, None)):
            language = chosen
        elif argument != "--debug":
            rest.append(argument)
    return [*rest, *arguments[end:]], "--debug" in arguments[:end], language


def _configure_process() -> None:
    """Set up output of any character, one-line warnings, a clean exit on SIGTERM, and threads that sleep when idle."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    warnings.showwarning = lambda message, *_, **__: warn(f"warning: {message}")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    # torch's threads wait for each other thousands of times a second, spinning. With one other busy process, this makes
    # training many times slower; with a short spin before sleeping, twice. Read when torch creates its threads.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, HeedfulError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) or "out of memory"
