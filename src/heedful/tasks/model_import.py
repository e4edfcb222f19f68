"""Imports published models: reads them strictly, chooses their task, and writes a bundle into a new folder.

`from_checkpoint` of a predictor reads a published folder; a text encoder's predictor names the `head` that it needs.
"""

import shutil
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core import DecoderOnly, EncoderDecoder, Forecaster, PatchEmbedding
from ..data.published_tokenizer import PublishedTokenizer, Unit, tokenizer_of
from ..errors import ConfigError, DataError
from ..families import Imported, PublishedWarning, describe
from ..families.checkpoint_files import LayoutError
from ..families.ctranslate2 import from_ctranslate2
from ..families.hf_io import read_checkpoint
from ..files import new_folder, write_text
from . import PREDICTORS, load
from .bundle import sized_tokenizer
from .embedding import MODULES, Embedder, pooling_of
from .forecasting import SeriesForecaster
from .images import ImageClassifier
from .language_model import CausalLanguageModel
from .masked import MaskedLanguageModel
from .run.reporting import imported_card
from .text_encoder import TextEncoderPredictor
from .text_generator import SOURCE, TARGET
from .text_to_text import TextToTextGenerator

BINARY = "model.bin"
CARD, AUTHORS_CARD = "README.md", "AUTHORS.md"
MAX_CARD_BYTES = 1 << 20  # of an authors' card that is copied
WIRING: dict[type, str] = {
    EncoderDecoder: TextToTextGenerator.task,
    DecoderOnly: CausalLanguageModel.task,
    Forecaster: SeriesForecaster.task,
}
# The head that each task of a text encoder needs.
HEADS: dict[str, str] = {
    name: predictor.head for name, predictor in PREDICTORS.items() if issubclass(predictor, TextEncoderPredictor)
}
IMPORTED_TASKS = (*WIRING.values(), *HEADS, ImageClassifier.task)


def import_model(folder: str | Path, out: str | Path, *, task: str | None = None, unit: Unit | None = None) -> Any:
    """Write a published model as a bundle into a new folder; return the loaded bundle.

    Args:
        folder: A folder in Hugging Face's layout (config.json, safetensors, tokenizer.json), or of CTranslate2.
        out: The new folder.
        task: For a text encoder, a task other than the one it was published for.
        unit: For a CTranslate2 model without a tokenizer.json, what its tokens are: "words" or "characters".

    >>> import_model("all-MiniLM-L6-v2", "minilm").predict(["A cat.", "A dog."])
    """
    folder, out = Path(folder), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise LayoutError(f"{out} already exists and is not an empty folder; choose another one (--out)")
    is_binary = (folder / BINARY).is_file() and not list(folder.glob("*.safetensors"))
    model = _from_ctranslate2(folder, task, unit) if is_binary else _from_huggingface(folder, task, unit)
    with new_folder(out) as partial:
        model.save(partial)
        card = folder / CARD
        # The authors' card is copied: it describes license and use.
        is_copied = card.is_file() and card.stat().st_size <= MAX_CARD_BYTES and _is_inside(card, folder)
        if is_copied:
            shutil.copyfile(card, partial / AUTHORS_CARD)
        write_text(partial / CARD, imported_card(model, AUTHORS_CARD if is_copied else None))
    return load(out)


def _is_inside(path: Path, folder: Path) -> bool:
    """Return whether a file is in a folder, or linked from a snapshot in the hub's cache to its own blobs."""
    places = (folder.resolve(), folder.resolve().parents[1] / "blobs" if folder.parent.name == "snapshots" else folder)
    return any(path.resolve().is_relative_to(place) for place in places)


def _from_huggingface(folder: Path, task: str | None, unit: Unit | None) -> Any:
    if unit is not None:
        raise ConfigError("--unit is for CTranslate2 models without a tokenizer; this model has one")
    checkpoint = read_checkpoint(folder)
    published = published_task(checkpoint)
    if published == MaskedLanguageModel.task and (folder / MODULES).is_file():
        published = Embedder.task  # sentence-transformers keeps the class of the original model
    if task not in (None, published) and not {task, published} <= HEADS.keys():
        others = f"; as a text encoder it can be imported for {', '.join(HEADS)}" if published in HEADS else ""
        raise ConfigError(f"{folder} is a model for {published}, and not for {task}{others}")
    task = task or published
    head = pooling_of(folder).head if task == Embedder.task else HEADS.get(task)
    if head is not None and head != getattr(checkpoint.config, "head", None):
        checkpoint = read_checkpoint(folder, head=head)
    return PREDICTORS[task].from_checkpoint(checkpoint, folder)


def published_task(checkpoint: Imported) -> str:
    """Return the task of a published model, by its wiring; of a text encoder, by its head."""
    module = checkpoint.module
    for kind, task in WIRING.items():
        if isinstance(module, kind):
            return task
    if isinstance(module.embedding, PatchEmbedding):
        return ImageClassifier.task
    tasks = {head: task for task, head in HEADS.items()}
    return tasks.get(getattr(checkpoint.config, "head", ""), Embedder.task)


def _from_ctranslate2(folder: Path, task: str | None, unit: Unit | None) -> Any:
    """Read a CTranslate2 model; its config follows from its parts."""
    module, vocabularies, defaults = from_ctranslate2(folder)
    checkpoint = Imported(module, describe(module), defaults)
    published = published_task(checkpoint)
    if task not in (None, published):
        raise ConfigError(f"{folder} is a model for {published}, and not for {task}")
    tokenizer = _tokenizer(folder / SOURCE, vocabularies.source, vocabularies.unknown, unit)
    source = tokenizer.surrounded(vocabularies.prefix, vocabularies.suffix)
    if published == CausalLanguageModel.task:
        return CausalLanguageModel.with_tokenizer(checkpoint, source)
    joint = vocabularies.source == vocabularies.target
    target = None if joint else _tokenizer(folder / TARGET, vocabularies.target, vocabularies.unknown, unit)
    return TextToTextGenerator.with_tokenizers(checkpoint, source, target)


def _tokenizer(path: Path, tokens: Sequence[str], unknown: str, unit: Unit | None) -> PublishedTokenizer:
    """Load the tokenizer in a file; without a file, create one from the vocabulary."""
    if unit is None and path.is_file():
        tokenizer = sized_tokenizer(path, len(tokens))
        for index, token in enumerate(tokens[: tokenizer.largest + 1]):
            if tokenizer.token_of(index) != token:
                raise DataError(
                    f"{path}: {tokenizer.token_of(index)!r} is token {index}, which in the model is {token!r}"
                )
        return tokenizer
    if unit is None:
        warnings.warn(
            f"{path} does not exist, so texts are read and written as tokens with spaces between them; "
            "if each character is a token, import with --unit characters",
            PublishedWarning,
            stacklevel=2,
        )
    return tokenizer_of(tokens, unknown, unit or "words")
