"""A model written for another program, and proved against our own engine before it takes its place."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..data.store import TokenStore
from ..errors import ConfigError
from ..families import GenerationDefaults
from ..families.ctranslate2 import ExportError, Model, Vocabularies, library, write_folder
from ..files import new_folder
from ..training.errors import FolderError
from . import load
from .agreement import Agreement, Pair, compare, fitting, made_up
from .run.task import DATA
from .translation.data import SOURCE, TARGET
from .translation.predictor import Translator

EXACT = 1e-4  # what a log-probability may be off in float32
ROUGH = 0.25  # what those of a quantised model may be off on average
SENTENCES = 4  # real ones that are compared, where the model's folder has some


@dataclass(frozen=True)
class Exported:
    """What was written, and how it compared: in float32, and as it was quantised, where it was."""

    folder: Path
    files: tuple[str, ...]
    exact: Agreement
    quantised: Agreement | None


def export_ctranslate2(folder: str | Path, out: str | Path, *, quantization: str | None = None) -> Exported:
    """Write a translator's bundle as a folder that CTranslate2 loads; its tokenisers go with it.

    CTranslate2 is handed the pieces of a sentence without the end, which it adds.
    """
    folder, translator = Path(folder), load(folder)
    if not isinstance(translator, Translator):
        raise ExportError(f"{folder} is a model for {translator.task}; only translators are written for CTranslate2")
    names = [SOURCE] if translator.settings.joint else [SOURCE, TARGET]
    tokens = [_tokens(folder / name) for name in names]
    ours = translator.target_tokenizer
    model = Model(
        translator.module,
        Vocabularies(tokens[0], tokens[-1], after=(translator.tokenizer.end,)),
        GenerationDefaults(start=ours.start, end=(ours.end,), pad=ours.pad),
    )
    copies = [folder / name for name in names]
    return write_ctranslate2(model, out, quantization=quantization, examples=_examples(folder), beside=copies)


def write_ctranslate2(
    model: Model,
    out: str | Path,
    *,
    quantization: str | None = None,
    examples: Sequence[Pair] = (),
    beside: Sequence[Path] = (),
) -> Exported:
    """Write any model whose parts CTranslate2 has a place for, into a new folder, once both engines agree.

    They are compared on random tokens and on the `examples`. Files named in `beside` are copied into the folder.
    """
    out = Path(out)
    _check(model, out, quantization)
    pairs = [*made_up(model), *fitting(model, examples)]
    with new_folder(out) as partial:
        write_folder(model, partial)
        exact = compare(model, partial, pairs)
        _refuse_if(exact.different or not exact.largest <= EXACT, exact, "float32")
        quantised = None
        if quantization is not None:
            write_folder(model, partial, quantization=quantization)
            quantised = compare(model, partial, pairs)
            _refuse_if(not quantised.mean <= ROUGH, quantised, quantization)
        for path in beside:
            shutil.copyfile(path, partial / path.name)
        files = tuple(sorted(path.name for path in partial.iterdir()))
    return Exported(out, files, exact, quantised)


def _check(model: Model, out: Path, quantization: str | None) -> None:
    accepted = library().specs.model_spec.ACCEPTED_MODEL_TYPES
    if quantization not in (None, *accepted):
        raise ConfigError(f"unknown quantization {quantization!r}; allowed: {', '.join(accepted)}")
    if model.module.training:
        raise ExportError("the model is being trained, with dropout; call module.eval() first")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise FolderError(f"{out} is there already, and not an empty folder; choose another one (--out)")


def _refuse_if(apart: object, found: Agreement, precision: str) -> None:
    if apart:
        answers = f"; {'; '.join(found.different[:2])}" if found.different else ""
        raise ExportError(
            f"CTranslate2 does not compute what the model does, so nothing was written: in {precision} the "
            f"log-probabilities are up to {found.largest:.1e} and on average {found.mean:.1e} apart, most at "
            f"{found.worst}{answers}"
        )


def _tokens(path: Path) -> tuple[str, ...]:
    """Every token by its id, as a tokenizer.json of ours holds them."""
    places: dict[str, int] = json.loads(path.read_text(encoding="utf-8"))["model"]["vocab"]
    return tuple(sorted(places, key=places.__getitem__))


def _examples(folder: Path) -> list[Pair]:
    """Some of the validation sentences that a run's folder keeps."""
    if not (folder / DATA / "valid").is_dir():
        return []
    store = TokenStore(folder / DATA / "valid")
    rows = [store[index * len(store) // SENTENCES] for index in range(min(SENTENCES, len(store)))]
    return [Pair(source.tolist(), target.tolist()) for source, target in rows]
