"""A bundle written as others publish: a folder that transformers loads, read back before it takes its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..data.published_tokenizer import PublishedTokenizer
from ..data.tokenizer import Tokenizer
from ..families import GenerationDefaults
from ..families.checkpoint import LayoutError, read_checkpoint, write_checkpoint
from ..families.ctranslate2 import ExportError
from ..files import new_folder
from . import load
from .text_to_text import SOURCE, TARGET
from .tokens import put_together
from .translation.translator import Translator


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
        files = tuple(sorted(path.name for path in partial.iterdir()))
    return Published(out, files)


def _defaults(model: Any) -> GenerationDefaults | None:
    if isinstance(model, Translator):
        ours = model.target_tokenizer
        tokens = GenerationDefaults(start=ours.start, end=(ours.end,), pad=ours.pad, banned=(ours.pad, ours.start))
        return put_together(tokens, model.settings.generation)
    if not hasattr(model.settings, "tokens"):
        return None
    return put_together(model.settings.tokens, model.settings.generation)


def _tokenizers(model: Any) -> dict[str, PublishedTokenizer]:
    """By the names of their files. One that was trained here adds the end that a source has."""
    joint = getattr(model.settings, "joint", True)
    sides = {SOURCE: getattr(model, "tokenizer", None), TARGET: None if joint else model.target_tokenizer}
    return {name: _published(tokenizer, model) for name, tokenizer in sides.items() if tokenizer is not None}


def _published(tokenizer: Tokenizer | PublishedTokenizer, model: Any) -> PublishedTokenizer:
    """With the roles of its tokens, which transformers wants to know."""
    if isinstance(tokenizer, Tokenizer):
        tokenizer = PublishedTokenizer(tokenizer.to_json()).surrounded((), (tokenizer.end,))
    defaults = _defaults(model) or GenerationDefaults()
    special = {"bos_token": defaults.start, "eos_token": next(iter(defaults.end), None), "pad_token": defaults.pad}
    roles = {key: tokenizer.token_of(index) for key, index in special.items() if index is not None}
    tokenizer.roles = {"tokenizer_class": "PreTrainedTokenizerFast", **roles, **tokenizer.roles}
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
