"""A bundle written as others publish: a folder that transformers loads, read back before it takes its place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..config import read_mapping
from ..data.images import RESAMPLING
from ..data.published_tokenizer import PublishedTokenizer
from ..data.tokenizer import Tokenizer
from ..families import GenerationDefaults
from ..families.checkpoint_files import LayoutError
from ..families.ctranslate2 import ExportError
from ..families.hf_io import read_checkpoint, write_checkpoint
from ..files import new_folder, write_text
from . import load
from .bundle import CONFIG, join_defaults
from .classification import Classifier
from .embedding import Embedder
from .images import ImageClassifier
from .images.predictor import PREPROCESSOR as PREPARING
from .images.predictor import ImageSettings
from .importing import PROBLEMS
from .language_model import CausalLanguageModel
from .masked import MaskedLanguageModel
from .sentence_transformers import Pooling, pooling_files
from .text_to_text import SOURCE, TARGET, TextToTextGenerator
from .translation.predictor import Translator

LONGEST = 512  # tokens of an answer, of models whose positions have no end


@dataclass(frozen=True)
class Published:
    """What was written."""

    folder: Path
    files: tuple[str, ...]


def export_huggingface(folder: str | Path, out: str | Path) -> Published:
    """Write a bundle in Hugging Face's layout into a new folder, and read it back: every weight is the same."""
    out, model = Path(out), load(folder)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise LayoutError(f"{out} is there already, and not an empty folder; choose another one (--out)")
    labels = getattr(model.settings, "labels", ())
    with new_folder(out) as partial:
        write_checkpoint(partial, model.module, model.config, _defaults(model), labels=labels)
        _check(model, partial)
        for name, tokenizer in _tokenizers(model).items():
            tokenizer.save(partial / name)
        for name, content in _beside(model, partial).items():
            write_text(partial / name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        files = tuple(sorted(str(path.relative_to(partial)) for path in partial.rglob("*") if path.is_file()))
    return Published(out, files)


def _beside(model: Any, folder: Path) -> dict[str, Any]:
    """What a task's settings say that neither weights nor tokeniser do, by the name of the file that says it."""
    if isinstance(model, Classifier):
        problem = next(name for name, means in PROBLEMS.items() if means == model.settings.means)
        return {CONFIG: read_mapping(folder / CONFIG) | {"problem_type": problem}}
    if isinstance(model, Embedder):
        config: Any = model.config
        return pooling_files(Pooling(config.head, model.settings.normalised), config.d_model)
    return {PREPARING: _preparing(model.settings)} if isinstance(model, ImageClassifier) else {}


def _preparing(settings: ImageSettings) -> dict[str, Any]:
    """How images become what the model reads, as transformers' processors say it."""
    sizes = {1: ("shortest_edge",), 2: ("height", "width")}
    said: dict[str, Any] = {
        "image_processor_type": f"{'DeiT' if settings.crop else 'ViT'}ImageProcessor",
        "do_resize": bool(settings.resize),
        "do_center_crop": bool(settings.crop),
        "do_rescale": True,
        "rescale_factor": settings.rescale,
        "resample": RESAMPLING.index(settings.resample),
        "do_normalize": True,
        "image_mean": list(settings.mean),
        "image_std": list(settings.std),
    }
    for key, size in (("size", settings.resize), ("crop_size", settings.crop)):
        if size:
            said[key] = dict(zip(sizes[len(size)], size, strict=True))
    return said


def _defaults(model: Any) -> GenerationDefaults | None:
    """Where a model says no length, as much as it has room for: transformers would stop after twenty tokens."""
    if isinstance(model, Translator):
        ours = model.target_tokenizer
        suppressed = (ours.pad, ours.start)
        tokens = GenerationDefaults(start=ours.start, end=(ours.end,), pad=ours.pad, suppress_tokens=suppressed)
    elif isinstance(model, TextToTextGenerator | CausalLanguageModel):
        tokens = model.settings.tokens
    else:
        return None
    generation = model.generation
    if generation.max_new_tokens is None:
        room = getattr(model.config, "max_length", LONGEST)  # of transformers' tables, even where ours have no end
        generation = generation.changed(max_new_tokens=max(room, generation.min_new_tokens + 1))
    return join_defaults(tokens, generation)


def _tokenizers(model: Any) -> dict[str, PublishedTokenizer]:
    """By the names of their files. One that was trained here adds the end that a source has."""
    joint = getattr(model.settings, "joint", True)
    sides = {SOURCE: getattr(model, "tokenizer", None), TARGET: None if joint else model.target_tokenizer}
    return {name: _published(tokenizer, model) for name, tokenizer in sides.items() if tokenizer is not None}


def _published(tokenizer: Tokenizer | PublishedTokenizer, model: Any) -> PublishedTokenizer:
    """With the roles of its tokens, and what else of it is given to a model, which transformers wants to know."""
    if isinstance(tokenizer, Tokenizer):
        tokenizer = PublishedTokenizer(tokenizer.to_json()).surrounded((), (tokenizer.end,))
    defaults = _defaults(model) or GenerationDefaults()
    start = (
        None if isinstance(model, TextToTextGenerator) else defaults.start
    )  # its decoder's is not what a text begins with
    special = {"bos_token": start, "eos_token": next(iter(defaults.end), None), "pad_token": defaults.pad}
    known = {key: index for key, index in special.items() if index is not None and index <= tokenizer.largest}
    roles: dict[str, Any] = {key: tokenizer.token_of(index) for key, index in known.items()}
    if isinstance(model, MaskedLanguageModel):
        roles["mask_token"] = model.settings.mask
    segments = getattr(getattr(model.module, "embedding", None), "segments", None)
    told_apart = ["token_type_ids"] if segments is not None and len(segments) > 1 else []
    usual = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", *told_apart, "attention_mask"],
    }
    tokenizer.roles = {**usual, **roles, **tokenizer.roles}
    return tokenizer


def _check(model: Any, folder: Path) -> None:
    again = read_checkpoint(folder, **_head(model.config))
    found: Mapping[str, torch.Tensor] = again.module.state_dict()
    for name, tensor in model.module.state_dict().items():
        if not torch.equal(found[name], tensor.cpu()):
            raise ExportError(f"{name} did not come back as it was written; nothing was written")
    if again.config != model.config:
        raise ExportError(f"the model's config does not come back as it was written: {again.config}")


def _head(config: Any) -> dict[str, Any]:
    """What a published config does not say: what one class of transformers is read for."""
    return {"head": config.head} if hasattr(config, "head") else {}
