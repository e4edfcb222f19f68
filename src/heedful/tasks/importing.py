"""Other people's models as bundles: read strictly, given a task, written into a new folder."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

from ..config import read_mapping
from ..core import DecoderOnly, EncoderDecoder, Forecaster, PatchEmbedding
from ..data.published_tokenizer import PublishedTokenizer, Unit, tokenizer_of
from ..errors import ConfigError, DataError, unknown
from ..families import Imported, PublishedWarning, describe
from ..families.checkpoint_files import LayoutError
from ..families.ctranslate2 import from_ctranslate2
from ..families.hf_io import read_checkpoint
from ..files import new_folder, write_text
from . import load
from .bundle import split_defaults
from .classification import Classifier, ClassifierSettings
from .embedding import Embedder, EmbedderSettings
from .forecasting import SeriesForecaster
from .images import ImageClassifier
from .language_model import LENGTH, CausalLanguageModel, LanguageModelSettings
from .masked import MaskedLanguageModel, MaskedLanguageModelSettings
from .question_answering import QuestionAnswerer, QuestionAnswererSettings
from .question_answering.predictor import MAX_TOKENS, STRIDE
from .run.reporting import imported_card
from .sentence_transformers import MODULES, lowers_case, pooling_of
from .tagging import Tagger, TaggerSettings
from .text_to_text import SOURCE, TARGET, TextToTextGenerator, TextToTextSettings

BINARY = "model.bin"
THEIRS = "README.md"
LARGEST_CARD = 1 << 20  # bytes of their own words that are taken along
MASKS = ("[MASK]", "<mask>")
USUAL_PROBLEM = "single_label_classification"
PROBLEMS: dict[str, Literal["one", "several", "score"]] = {
    USUAL_PROBLEM: "one",
    "multi_label_classification": "several",
    "regression": "score",
}


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
    model = _of_binary(folder, task, unit) if _is_binary(folder) else _of_checkpoint(folder, task, unit)
    with new_folder(out) as partial:
        model.save(partial)
        theirs = _their_words(folder, partial)
        write_text(partial / "README.md", imported_card(model, theirs))
    return load(out)


def _is_binary(folder: Path) -> bool:
    return (folder / BINARY).is_file() and not list(folder.glob("*.safetensors"))


def _of_checkpoint(folder: Path, task: str | None, unit: Unit | None) -> Any:
    if unit is not None:
        raise ConfigError("a unit is for the bare vocabularies of CTranslate2; this model has a tokeniser")
    found = read_checkpoint(folder)
    own = _own_task(found)
    if own == MaskedLanguageModel.task and (folder / MODULES).is_file():
        own = Embedder.task  # sentence-transformers keeps the class of the model that it was made from
    if task not in (None, own) and not {task, own} <= READERS.keys():
        others = f"; as a reader it serves {', '.join(READERS)}" if own in READERS else ""
        raise ConfigError(f"{folder} is a model for {own}, and not for {task}{others}")
    wanted = task or own
    head = pooling_of(folder).head if wanted == "embedding" else READERS.get(wanted)
    if head is not None and head != getattr(found.config, "head", None):
        found = read_checkpoint(folder, head=head)
    return MAKERS[wanted](found, folder)


def _own_task(found: Imported) -> str:
    """What the module is for, as it is wired."""
    module = found.module
    if isinstance(module, EncoderDecoder):
        return TextToTextGenerator.task
    if isinstance(module, DecoderOnly):
        return CausalLanguageModel.task
    if isinstance(module, Forecaster):
        return SeriesForecaster.task
    if isinstance(module.embedding, PatchEmbedding):
        return ImageClassifier.task
    tasks = {head: task for task, head in READERS.items()}
    return tasks.get(getattr(found.config, "head", ""), Embedder.task)


def _rewriter(found: Imported, folder: Path) -> TextToTextGenerator:
    tokens, generation = split_defaults(found.generation)
    target = _target(folder, found)
    settings = TextToTextSettings(joint=target is None, tokens=tokens, generation=generation)
    return TextToTextGenerator(found.config, found.module, _tokenizer(folder, found), settings, target)


def _continuer(found: Imported, folder: Path) -> CausalLanguageModel:
    tokens, generation = split_defaults(found.generation)
    if generation.max_new_tokens is None:
        generation = generation.changed(max_new_tokens=LENGTH + generation.min_new_tokens)
    settings = LanguageModelSettings(tokens=tokens, generation=generation)
    return CausalLanguageModel(found.config, found.module, _tokenizer(folder, found), settings)


def _filler(found: Imported, folder: Path) -> MaskedLanguageModel:
    tokenizer = _tokenizer(folder, found)
    usual = (name for name in MASKS if tokenizer.id_of(name) is not None)
    name = tokenizer.role("mask_token") or next(usual, None)
    if name is None:
        raise DataError(f"{folder}: no token of the tokeniser stands for a gap ({', '.join(MASKS)})")
    return MaskedLanguageModel(found.config, found.module, MaskedLanguageModelSettings(mask=name), tokenizer)


def _classifier(found: Imported, folder: Path) -> Classifier:
    n_classes: int = found.module.head.out.out_features
    said = read_mapping(folder / "config.json").get("problem_type") or (
        "regression" if n_classes == 1 else USUAL_PROBLEM
    )
    if said not in PROBLEMS:
        raise ConfigError(f"{folder}: {unknown('problem_type', said, PROBLEMS)}")
    settings = ClassifierSettings(labels=found.labels or tuple(map(str, range(n_classes))), means=PROBLEMS[said])
    return Classifier(found.config, found.module, settings, _tokenizer(folder, found))


def _question_answerer(found: Imported, folder: Path) -> QuestionAnswerer:
    """Whether it has learned to refuse, a checkpoint does not say: a threshold in its settings can be set later."""
    tokenizer, limit = _tokenizer(folder, found), found.module.encoder.positions.limit
    max_tokens = MAX_TOKENS if limit is None else min(limit, MAX_TOKENS)
    settings = QuestionAnswererSettings(max_tokens=max_tokens, stride=min(STRIDE, max_tokens // 2))
    return QuestionAnswerer(found.config, found.module, settings, tokenizer)


def _tagger(found: Imported, folder: Path) -> Tagger:
    n_classes: int = found.module.head.out.out_features
    settings = TaggerSettings(labels=found.labels or tuple(map(str, range(n_classes))))
    return Tagger(found.config, found.module, settings, _tokenizer(folder, found))


def _embedder(found: Imported, folder: Path) -> Embedder:
    settings = EmbedderSettings(normalised=pooling_of(folder).normalised)
    tokenizer = _tokenizer(folder, found)
    if lowers_case(folder) and tokenizer.encode("A") != tokenizer.encode("a"):
        raise ConfigError(f"{folder}: do_lower_case is set, which its {SOURCE} does not do; that is not supported")
    return Embedder(found.config, found.module, settings, tokenizer)


READERS = {
    MaskedLanguageModel.task: "words",
    Classifier.task: "classes",
    QuestionAnswerer.task: "span",
    Tagger.task: "token-classes",
    Embedder.task: "mean",
}  # and the head that each asks
MAKERS: dict[str, Callable[[Imported, Path], Any]] = {
    TextToTextGenerator.task: _rewriter,
    CausalLanguageModel.task: _continuer,
    MaskedLanguageModel.task: _filler,
    Classifier.task: _classifier,
    QuestionAnswerer.task: _question_answerer,
    Tagger.task: _tagger,
    Embedder.task: _embedder,
    ImageClassifier.task: ImageClassifier.of_checkpoint,
    SeriesForecaster.task: SeriesForecaster.of_checkpoint,
}


def _tokenizer(folder: Path, found: Imported) -> PublishedTokenizer:
    path = folder / SOURCE
    if not path.is_file():
        others = sorted(
            other.name for other in folder.iterdir() if other.suffix in (".model", ".spm", ".txt", ".vocab")
        )
        there = f"; {', '.join(others)} is read by other programs" if others else ""
        raise DataError(
            f"{folder} has no {SOURCE}{there}. transformers writes one: "
            f"AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        )
    tokenizer = PublishedTokenizer.load(path)
    first: Any = found.module.source_embedding if isinstance(found.module, EncoderDecoder) else found.module.embedding
    _check_size(tokenizer, len(first.weight), path)
    return tokenizer


def _target(folder: Path, found: Imported) -> PublishedTokenizer | None:
    """The tokeniser of what is written, where it is another than that of what is read."""
    path, module = folder / TARGET, found.module
    source, target = (len(table.weight) for table in (module.source_embedding, module.target_embedding))
    if path.is_file():
        tokenizer = PublishedTokenizer.load(path)
        _check_size(tokenizer, target, path)
        return tokenizer
    if source != target:
        raise DataError(
            f"{folder}: the model reads {source:,} tokens and writes {target:,}, so that it needs a tokeniser for each "
            f"side; there is no {TARGET}"
        )
    return None


def _check_size(tokenizer: PublishedTokenizer, size: int, path: Path) -> None:
    if tokenizer.largest >= size:
        raise DataError(
            f"{path} has ids up to {tokenizer.largest:,}, but the model has {size:,} tokens; they are not of one model"
        )


def _of_binary(folder: Path, task: str | None, unit: Unit | None) -> Any:
    """A model of CTranslate2; its parts say its config."""
    module, vocabularies, defaults = from_ctranslate2(folder)
    kind = TextToTextGenerator if isinstance(module, EncoderDecoder) else CausalLanguageModel
    if task not in (None, kind.task):
        raise ConfigError(f"{folder} is a model for {kind.task}, and not for {task}")
    config = describe(module)
    tokens, generation = split_defaults(defaults)
    joint = vocabularies.source == vocabularies.target
    names = ((SOURCE, vocabularies.source), (SOURCE if joint else TARGET, vocabularies.target))
    bare, target = (_listed(folder / name, side, vocabularies.unknown, unit) for name, side in names)
    source = bare.surrounded(vocabularies.before, vocabularies.after)
    if kind is CausalLanguageModel:
        settings = LanguageModelSettings(tokens=tokens, generation=generation.changed(max_new_tokens=LENGTH))
        return CausalLanguageModel(config, module, source, settings)
    return TextToTextGenerator(
        config, module, source, TextToTextSettings(joint=joint, tokens=tokens, generation=generation), target
    )


def _listed(path: Path, tokens: Sequence[str], unknown: str, unit: Unit | None) -> PublishedTokenizer:
    """The tokeniser in a file, or one for the tokens alone."""
    if unit is None and path.is_file():
        tokenizer = PublishedTokenizer.load(path)
        _check_size(tokenizer, len(tokens), path)
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


def _their_words(folder: Path, out: Path) -> str | None:
    """The authors' own card goes along, for what it says of licence and use; its name."""
    path = folder / THEIRS
    if not path.is_file() or path.stat().st_size > LARGEST_CARD:
        return None
    shutil.copyfile(path, out / "THEIRS.md")
    return "THEIRS.md"
