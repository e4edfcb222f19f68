"""`heedful import` and `heedful export`: convert models from and to the formats of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import ConfigError
from .console import say
from .options import Model, option

if TYPE_CHECKING:
    from ..tasks.ctranslate2_export import Agreement

TextTask = Literal["text-to-text", "language-model", "masked-lm", "classification", "question-answering", "tagging"]
ImportTask = Literal[TextTask, "embedding", "images", "forecasting"]
Quantization = Literal["int8", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"]


def import_(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A model in Hugging Face's format (config.json, safetensors, tokenizer.json) or CTranslate2's.",
        ),
    ],
    out: Annotated[Path, option("The folder to create for the converted model.")],
    task: Annotated[
        ImportTask | None, option("The task of an encoder such as BERT; the default is what it was published for.")
    ] = None,
    unit: Annotated[
        Literal["words", "characters"] | None,
        option("For a CTranslate2 model without tokenizer.json: what one token is."),
    ] = None,
) -> None:
    """Convert a published model to Heedful's format, without changing its weights.

    The model is refused if it has a tensor that Heedful would not use.
    """
    from ..tasks.model_import import import_model

    model = import_model(folder, out, task=task, unit=unit)
    parameters = sum(parameter.numel() for parameter in model.module.parameters())
    say(
        f"wrote {out}: a {model.config.family} model for {model.task} with {parameters:,} parameters",
        "green",
    )


def export(
    model: Model,
    to: Annotated[Literal["hf", "ctranslate2"], option("The format: hf (Hugging Face transformers) or ctranslate2.")],
    out: Annotated[Path, option("The folder to create for the converted model.")],
    quantization: Annotated[
        Quantization | None, option("For ctranslate2: quantize the weights, which makes them smaller and less precise.")
    ] = None,
) -> None:
    """Convert a trained model to another program's format and verify the result."""
    from ..tasks.ctranslate2_export import export_ctranslate2
    from ..tasks.hf_export import export_huggingface

    if to == "hf":
        if quantization is not None:
            raise ConfigError("--quantization is for --to ctranslate2; leave it out")
        _say_written(out, export_huggingface(model, out))
        say("verified: all weights are equal when read back", "green")
        return
    done = export_ctranslate2(model, out, quantization=quantization)
    _say_written(done.folder, done.files)
    say(_comparison("float32", done.exact), "green")
    if done.quantized is not None:
        say(_comparison(str(quantization), done.quantized))


def _say_written(folder: Path, files: Sequence[str]) -> None:
    size = sum((folder / name).stat().st_size for name in files)
    say(f"wrote {folder} ({size / 1e6:,.1f} MB): {', '.join(files)}")


def _comparison(precision: str, agreement: Agreement) -> str:
    from ..tasks.ctranslate2_export import BEAMS

    same = agreement.answers - len(agreement.different)
    beams = " and ".join(map(str, BEAMS))
    return (
        f"verified in {precision}: {agreement.scored} log-probabilities differ by at most {agreement.largest:.1e}, "
        f"on average {agreement.mean:.1e}; {same} of {agreement.answers} answers are equal (beam {beams})"
    )
