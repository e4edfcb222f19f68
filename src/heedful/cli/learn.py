"""`heedful learn`: opens the course, checks its exercises, and writes it as a static site or as notebooks."""

import re
import webbrowser
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Annotated, Any

import typer

from ..errors import ConfigError
from .console import Command, CommandGroup, console, echo, plain, say
from .language import current
from .options import option, with_language

EXAMPLE = "Example: heedful learn 3 --language ko"
EXERCISES = Path("exercises")  # the default folder of the learner's files
MARKS = {"right": ("✓", "green"), "unfinished": ("·", "yellow"), "wrong": ("✗", "red")}


class _LearnGroup(CommandGroup):
    """Without a subcommand the course is opened: `heedful learn 3` is `heedful learn open 3`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if not ctx.resilient_parsing and (not args or args[0] not in (*self.commands, "--help")):
            args = ["open", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(cls=_LearnGroup, help="Learn the Transformer: a course in the browser, with exercises.")


def _add(name: str, example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds a command with the option --language."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        app.command(name, cls=Command, epilog=f"Example: {example}")(with_language(command))
        return command

    return decorate


Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder to write.")]


@_add("open", "heedful learn open 3 --language ko")
def open_course(
    chapter: Annotated[int | None, typer.Argument(metavar="CHAPTER", help="The number of a chapter.")] = None,
    port: Annotated[int, option("The port on this machine; 0 takes a free one.", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, option("Only print the address.", "--no-browser")] = False,
) -> None:
    """Open the course in the browser; this is what `heedful learn` does by default. Ctrl-C ends it."""
    from ..learn.server import CourseServer

    language = current()
    try:
        server = CourseServer(port)
    except OSError as error:
        raise ConfigError(f"--port {port}: {error.strerror}; choose another, or 0 for a free one") from None
    with server:
        address = f"{language}/index.html" if chapter is None else f"{language}/{chapter:02}.html"
        if address not in server.pages:
            numbers = [str(int(page[3:5])) for page in server.pages if re.match(rf"{language}/\d\d\.html", page)]
            raise ConfigError(f"there is no chapter {chapter}; there are: {', '.join(numbers)}")
        url = f"http://127.0.0.1:{server.server_port}/{address}"
        say(f"{url} (Ctrl-C to end)")
        if not no_browser:
            Thread(target=webbrowser.open, args=[url], daemon=True).start()  # one in the terminal waits for its page
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("")


@_add("site", "heedful learn site public")
def site(folder: Folder) -> None:
    """Write the course and the documentation as a static site in both languages."""
    from ..learn.site import write_site

    say(f"wrote {write_site(folder)} pages to {folder}")


@_add("notebooks", "heedful learn notebooks notebooks")
def notebooks(folder: Folder) -> None:
    """Write every chapter as a Jupyter notebook, in both languages."""
    from ..learn.notebooks import write_notebooks

    say(f"wrote {write_notebooks(folder)} notebooks to {folder}")


@_add("start", "heedful learn start exercises --language ko")
def start(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder for the exercises.")] = EXERCISES,
) -> None:
    """Write a Python file with functions to complete for each exercise. A file that exists is not changed."""
    from ..learn import exercises

    written, existing = exercises.start(folder, current())
    say(f"wrote {len(written)} files to {folder}")
    if existing:
        say(f"already there and not changed: {', '.join(path.name for path in existing)}")


@_add("check", "heedful learn check 4 exercises")
def check(
    exercise: Annotated[
        str | None, typer.Argument(metavar="N", help="The number of an exercise; without it, all are checked.")
    ] = None,
    folder: Annotated[
        Path | None, typer.Argument(metavar="FOLDER", help="The folder of the exercises.", show_default=str(EXERCISES))
    ] = None,
) -> None:
    """Compare your functions with the real parts, and explain what is wrong. The exit code is 0 if all are right."""
    from ..learn import exercises

    if exercise is not None and folder is None and not exercise.isdecimal():
        folder, exercise = Path(exercise), None
    if exercise is not None and not exercise.isdecimal():
        raise ConfigError(f"an exercise is a number from 0 to {max(exercises.NAMES)}, not {exercise!r}")
    numbers = list(exercises.NAMES) if exercise is None else [int(exercise)]
    if numbers[0] not in exercises.NAMES:
        raise ConfigError(f"there is no exercise {numbers[0]}; the numbers go from 0 to {max(exercises.NAMES)}")
    folder = folder or (Path() if list(Path().glob("[01][0-9]_*.py")) else EXERCISES)
    if not folder.is_dir():
        raise ConfigError(f"there is no folder {folder}; `heedful learn start {folder}` writes the exercises into it")
    n_right = 0
    for result in exercises.check(folder, numbers):
        mark, style = MARKS[result.state]
        heading = f"{mark} {result.number}. {exercises.title(result.number, current())}: "
        console.print(plain(heading, style), end="", soft_wrap=True)
        echo(result.text(current()))
        n_right += result.state == "right"
    if len(numbers) > 1:
        say(f"{n_right} of {len(numbers)} exercises are right.")
    if n_right < len(numbers):
        raise typer.Exit(1)
