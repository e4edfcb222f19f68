"""Exports bundles as folders that transformers loads; each is read back before it appears.

A predictor adds what its task needs: `generation_defaults`, `tokenizer_files`, `hf_roles` and `hf_files`.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..config import read_mapping
from ..data.published_tokenizer import PublishedTokenizer
from ..data.tokenizer import Tokenizer
from ..families import GenerationDefaults
from ..families.checkpoint_files import LayoutError
from ..families.ctranslate2 import ExportError
from ..families.hf_io import read_checkpoint, write_checkpoint
from ..files import new_folder, write_text
from . import load
from .bundle import CONFIG
from .predictor import Predictor
from .text_to_text import TextToTextGenerator


def export_huggingface(folder: str | Path, out: str | Path) -> list[str]:
    """Write a bundle in Hugging Face's layout into a new folder; return the names of its files.

    The folder is read back before it appears: every weight must be the same.
    """
    out, model = Path(out), load(folder)
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise LayoutError(f"{out} already exists and is not an empty folder; choose another one (--out)")
    labels = getattr(model.settings, "labels", ())
    with new_folder(out) as partial:
        write_checkpoint(partial, model.module, model.config, model.generation_defaults(), labels=labels)
        _check(model, partial)
        for name, tokenizer in model.tokenizer_files().items():
            _published(tokenizer, model).save(partial / name)
        for name, content in model.hf_files(read_mapping(partial / CONFIG)).items():
            write_text(partial / name, json.dumps(content, indent=2, ensure_ascii=False) + "\n")
        return sorted(str(path.relative_to(partial)) for path in partial.rglob("*") if path.is_file())


def _published(tokenizer: Tokenizer | PublishedTokenizer, model: Predictor[Any, Any]) -> PublishedTokenizer:
    """Return a tokenizer with the roles of its tokens and the names of the model's inputs, as transformers needs them.

    A tokenizer that was trained here adds the end token to a text.
    """
    if isinstance(tokenizer, Tokenizer):
        tokenizer = PublishedTokenizer(tokenizer.to_json()).surrounded((), (tokenizer.end,))
    defaults = model.generation_defaults() or GenerationDefaults()
    # The first token of a decoder is not what a text begins with.
    start = None if isinstance(model, TextToTextGenerator) else defaults.start
    special = {"bos_token": start, "eos_token": next(iter(defaults.end), None), "pad_token": defaults.pad}
    in_vocabulary = {key: index for key, index in special.items() if index is not None and index <= tokenizer.largest}
    segments = getattr(getattr(model.module, "embedding", None), "segments", None)
    inputs = ["token_type_ids"] if segments is not None and len(segments) > 1 else []
    tokenizer.roles = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": ["input_ids", *inputs, "attention_mask"],
        **{key: tokenizer.token_of(index) for key, index in in_vocabulary.items()},
        **model.hf_roles(),
        **tokenizer.roles,
    }
    return tokenizer


def _check(model: Predictor[Any, Any], folder: Path) -> None:
    config: Any = model.config
    # A published config does not name the head.
    head = {"head": config.head} if hasattr(config, "head") else {}
    again = read_checkpoint(folder, **head)
    written: Mapping[str, torch.Tensor] = again.module.state_dict()
    for name, tensor in model.module.state_dict().items():
        if not torch.equal(written[name], tensor.cpu()):
            raise ExportError(f"{name} differs after reading the export back; nothing was written")
    if again.config != config:
        raise ExportError(f"the model's config differs after reading the export back: {again.config}")
