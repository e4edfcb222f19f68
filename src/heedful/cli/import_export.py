"""`heedful import` and `heedful export`: models from other programs, and for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ..errors import ConfigError
from .console import say
from .options import option

if TYPE_CHECKING:
    from ..tasks.ctranslate2_export import Agreement

TextTask = Literal["text-to-text", "language_model", "masked", "classification", "question-answering", "tagging"]
ImportTask = Literal[TextTask, "embedding", "images", "forecasting"]
Quantization = Literal["int8", "int8_float16", "int8_bfloat16", "int16", "float16", "bfloat16"]


def import_(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="config.json, safetensors and tokenizer.json; or a CTranslate2 model."),
    ],
    out: Annotated[Path, option("A new folder, for the model as Heedful keeps it.")],
    task: Annotated[
        ImportTask | None, option("What a reader such as BERT shall do, if not what it was published for.")
    ] = None,
    unit: Annotated[
        Literal["words", "characters"] | None,
        option("What the tokens of a CTranslate2 model are, where it has no tokenizer.json."),
    ] = None,
) -> None:
    """Take over a published model, with exactly the weights it has. Every tensor is used, or the model refused."""
    from ..tasks.model_import import import_model

    model = import_model(folder, out, task=task, unit=unit)
    parameters = sum(parameter.numel() for parameter in model.module.parameters())
    say(
        f"wrote {out}: a model for {model.task}, of the family {model.config.family}, {parameters:,} parameters",
        "green",
    )


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="The folder of a trained model.")],
    to: Annotated[
        Literal["hf", "ctranslate2"], option("hf: a folder that transformers loads. ctranslate2: one for that engine.")
    ],
    out: Annotated[Path, option("A new folder.")],
    quantization: Annotated[Quantization | None, option("For ctranslate2: smaller and less exact weights.")] = None,
) -> None:
    """Write a trained model for another program, and check what was written before it takes its place."""
    from ..tasks.ctranslate2_export import export_ctranslate2
    from ..tasks.hf_export import export_huggingface

    if to == "hf":
        if quantization is not None:
            raise ConfigError("--quantization is for ctranslate2; weights for transformers are written as they are")
        _say_written(out, export_huggingface(model, out))
        say("checked: read back, every weight is the same", "green")
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
        f"checked in {precision}: {agreement.scored} log-probabilities differ by at most {agreement.largest:.1e}, "
        f"on average {agreement.mean:.1e}; {same} of {agreement.answers} answers are the same (beam {beams})"
    )
