"""`heedful translate`: Korean to English and back, with the translators that are installed with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .options import option, with_generation
from .predict import answer_inputs


@with_generation("beam", "precision", "max_new_tokens")
def translate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT|FILE|-…", help="Texts, files with one text per line, or - for standard input."),
    ] = None,
    to: Annotated[
        Literal["en", "ko"] | None, option("The target language; the default is English for Korean, else Korean.")
    ] = None,
    out: Annotated[Path | None, option("Write to this file instead of standard output.")] = None,
    scores: Annotated[
        bool, option("Write confidence and log-probability after each answer, separated by tabs.", "--scores")
    ] = False,
    *,
    overrides: dict[str, Any],
) -> None:
    """Translate Korean to English or English to Korean with the shipped translators: nothing to train or download.

    They know everyday sentences of some 380 words and common greetings. A warning names words that they do not know.
    [formal], [casual] or [plain] before an English text chooses the speech level of the Korean.
    """
    from ..tasks import translator
    from .distributed import joined_processes
    from .output import GeneratedOutput, OutputByScript, OutputFormat

    form: Literal["scores", "plain"] = "scores" if scores else "plain"
    with joined_processes() as group:
        model = translator("en-ko" if to == "ko" else "ko-en")
        output: OutputFormat = GeneratedOutput(model, form, overrides)
        if to is None:
            output = OutputByScript(
                GeneratedOutput(model, form, overrides), GeneratedOutput(translator("en-ko"), form, overrides)
            )
        answer_inputs(texts or ["-"], model, output, out, group)
