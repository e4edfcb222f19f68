"""Other people's models as bundles: read strictly, given a task, written into a new folder.

A predictor says what it takes from a published folder (`from_checkpoint`); a text encoder's task, which `head` it asks.
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
from .embedding import Embedder
from .forecasting import SeriesForecaster
from .images import ImageClassifier
from .language_model import CausalLanguageModel
from .masked import MaskedLanguageModel
from .run.reporting import imported_card
from .sentence_transformers import MODULES, pooling_of
from .text_encoder import TextEncoderPredictor
from .text_generator import SOURCE, TARGET
from .text_to_text import TextToTextGenerator

BINARY = "model.bin"
CARD, AUTHORS_CARD = "README.md", "THEIRS.md"
LARGEST_CARD = 1 << 20  # bytes of the authors' card that are taken along
WIRING: dict[type, str] = {
    EncoderDecoder: TextToTextGenerator.task,
    DecoderOnly: CausalLanguageModel.task,
    Forecaster: SeriesForecaster.task,
}
# Every task of a text encoder, and the head that it asks.
HEADS: dict[str, str] = {
    name: predictor.head for name, predictor in PREDICTORS.items() if issubclass(predictor, TextEncoderPredictor)
}
IMPORTED_TASKS = (*WIRING.values(), *HEADS, ImageClassifier.task)


def import_model(folder: str | Path, out: str | Path, *, task: str | None = None, unit: Unit | None = None) -> Any:
    """A published model as a bundle in a new folder; the bundle, loaded.

    `folder` has Hugging Face's layout (config.json, safetensors, tokenizer.json), or is a model of CTranslate2.
    A reader serves several tasks: `task` says which, where not the one it was published for. `unit` is what the
    tokens of a CTranslate2 model are, where its folder has no tokenizer.json: "words" or "characters".

    >>> import_model("all-MiniLM-L6-v2", "minilm").predict(["A cat.", "A dog."])
    """
    folder, out = Path(folder), Path(out)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise LayoutError(f"{out} is there already, and not an empty folder; choose another one (--out)")
    is_binary = (folder / BINARY).is_file() and not list(folder.glob("*.safetensors"))
    model = _from_ctranslate2(folder, task, unit) if is_binary else _from_huggingface(folder, task, unit)
    with new_folder(out) as partial:
        model.save(partial)
        card = folder / CARD
        # The authors' own card goes along, for what it says of license and use.
        taken_along = card.is_file() and card.stat().st_size <= LARGEST_CARD
        if taken_along:
            shutil.copyfile(card, partial / AUTHORS_CARD)
        write_text(partial / CARD, imported_card(model, AUTHORS_CARD if taken_along else None))
    return load(out)


def _from_huggingface(folder: Path, task: str | None, unit: Unit | None) -> Any:
    if unit is not None:
        raise ConfigError("a unit is for the bare vocabularies of CTranslate2; this model has a tokeniser")
    checkpoint = read_checkpoint(folder)
    published = published_task(checkpoint)
    if published == MaskedLanguageModel.task and (folder / MODULES).is_file():
        published = Embedder.task  # sentence-transformers keeps the class of the model that it was made from
    if task not in (None, published) and not {task, published} <= HEADS.keys():
        others = f"; as a reader it serves {', '.join(HEADS)}" if published in HEADS else ""
        raise ConfigError(f"{folder} is a model for {published}, and not for {task}{others}")
    task = task or published
    head = pooling_of(folder).head if task == Embedder.task else HEADS.get(task)
    if head is not None and head != getattr(checkpoint.config, "head", None):
        checkpoint = read_checkpoint(folder, head=head)
    return PREDICTORS[task].from_checkpoint(checkpoint, folder)


def published_task(checkpoint: Imported) -> str:
    """What a module is for, as it is wired; a text encoder, by its head."""
    module = checkpoint.module
    for kind, task in WIRING.items():
        if isinstance(module, kind):
            return task
    if isinstance(module.embedding, PatchEmbedding):
        return ImageClassifier.task
    tasks = {head: task for task, head in HEADS.items()}
    return tasks.get(getattr(checkpoint.config, "head", ""), Embedder.task)


def _from_ctranslate2(folder: Path, task: str | None, unit: Unit | None) -> Any:
    """A model of CTranslate2; its parts say its config."""
    module, vocabularies, defaults = from_ctranslate2(folder)
    checkpoint = Imported(module, describe(module), defaults)
    published = published_task(checkpoint)
    if task not in (None, published):
        raise ConfigError(f"{folder} is a model for {published}, and not for {task}")
    bare = _listed(folder / SOURCE, vocabularies.source, vocabularies.unknown, unit)
    source = bare.surrounded(vocabularies.prefix, vocabularies.suffix)
    if published == CausalLanguageModel.task:
        return CausalLanguageModel.with_tokenizer(checkpoint, source)
    joint = vocabularies.source == vocabularies.target
    target = None if joint else _listed(folder / TARGET, vocabularies.target, vocabularies.unknown, unit)
    return TextToTextGenerator.with_tokenizers(checkpoint, source, target)


def _listed(path: Path, tokens: Sequence[str], unknown: str, unit: Unit | None) -> PublishedTokenizer:
    """The tokenizer in a file, or one for the tokens alone."""
    if unit is None and path.is_file():
        tokenizer = sized_tokenizer(path, len(tokens))
        for index, token in enumerate(tokens[: tokenizer.largest + 1]):
            if tokenizer.token_of(index) != token:
                raise DataError(f"{path}: {tokenizer.token_of(index)!r} stands where the model has {token!r}")
        return tokenizer
    if unit is None:
        warnings.warn(
            f"{path} is not there, so texts are read and written as tokens with spaces between them; if each character "
            "is a token, import with --unit characters",
            PublishedWarning,
            stacklevel=2,
        )
    return tokenizer_of(tokens, unknown, unit or "words")
