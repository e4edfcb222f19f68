"""`heedful train language_model`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..tasks.language_model.task import LanguageModelTask
from .running import Common, Out, Valid, launch, with_common

NAME = LanguageModelTask.name
EXAMPLE = "Example: heedful train language_model --data shakespeare.txt --characters --out runs/shakespeare"


@with_common
def language_model(
    out: Out,
    data: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE…", help='Text: .txt, .md, .jsonl (its "text"), .gz, folders. A file is a document.'),
    ] = None,
    valid: Valid = None,
    preset: Annotated[
        str | None, typer.Option(help="A sized model: gpt2-tiny, gpt2, llama-tiny, …; of any family that writes alone.")
    ] = None,
    characters: Annotated[
        bool, typer.Option("--characters", help="Every character is a token. Without it, pieces of words are (BPE).")
    ] = False,
    vocab_size: Annotated[int | None, typer.Option(min=1, help="How many pieces to learn; 8,000 usually.")] = None,
    context: Annotated[
        int | None, typer.Option(min=1, help="How many tokens the model sees at once; 256 for the tiny models.")
    ] = None,
    *,
    common: Common,
) -> None:
    """Train a language model, which continues text.

    Without --valid, the last tenth of the text is held out. Perplexity and bits per character are of all of it.
    Settings come from --config, then from the options, then from --set. A run that was stopped goes on with --resume.
    """

    def options(values: dict[str, Any]) -> None:
        if preset is not None:
            values["model"] = {"preset": preset}
        if context is not None:
            model = values.get("model", {})
            values["model"] = {**({"preset": model} if isinstance(model, str) else model), "max_length": context}
            values["context"] = None
        if characters:
            values.setdefault("tokenizer", {})["kind"] = "characters"
        if vocab_size is not None:
            values.setdefault("tokenizer", {})["vocab_size"] = vocab_size

    launch(
        LanguageModelTask(),
        out,
        common,
        data=data,
        valid=valid,
        options=options,
    )
