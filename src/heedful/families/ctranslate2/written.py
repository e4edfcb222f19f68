"""A model as a folder that CTranslate2 loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ...core import DecoderOnly
from .folder import Model
from .outward import spec_of
from .survey import ExportError


def write_folder(model: Model, folder: str | Path, *, quantization: str | None = None) -> None:
    """model.bin, config.json and the vocabularies, into a folder that is there. `spec_of` says what is refused."""
    spec = spec_of(model.module)
    source, target = model.vocabularies.source, model.vocabularies.target
    if isinstance(model.module, DecoderOnly):
        sides = {"vocabulary": (target, spec.get_vocabulary_size())}
    else:
        rows = spec.get_source_vocabulary_size()[0]
        sides = {"source": (source, rows), "target": (target, spec.get_target_vocabulary_size())}
    for side, (tokens, size) in sides.items():
        _check_tokens(side, tokens, size)
    if isinstance(model.module, DecoderOnly):
        spec.register_vocabulary(list(target))
    else:
        spec.register_source_vocabulary(list(source))
        spec.register_target_vocabulary(list(target))
    _say(spec.config, model)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def _check_tokens(side: str, tokens: tuple[str, ...], size: int) -> None:
    """An id is a token's place there, so that every token must be another."""
    if len(tokens) != size:
        raise ExportError(f"the {side} has {len(tokens):,} tokens, but the model has weights for {size:,}")
    if len(set(tokens)) != size:
        twice = next(token for index, token in enumerate(tokens) if token in tokens[:index])
        raise ExportError(f"CTranslate2 tells tokens apart by their text, but the {side} has {twice!r} twice")


def _say(config: Any, model: Model) -> None:
    """The special tokens by their texts, which are the same on both sides there."""
    vocabularies, defaults = model.vocabularies, model.defaults
    source, target = vocabularies.source, vocabularies.target
    alone = isinstance(model.module, DecoderOnly)
    if len(defaults.end) != 1 or (defaults.start is None and not alone):
        raise ExportError(f"CTranslate2 has one start and one end, not {defaults.start} and {defaults.end}")
    end = target[defaults.end[0]]
    start = end if defaults.start is None else target[defaults.start]
    before, after = ([source[index] for index in around] for around in (vocabularies.before, vocabularies.after))
    begin = before[0] if before else start
    if before not in ([], [begin]) or after not in ([], [end]):
        raise ExportError(
            f"CTranslate2 can put one start before a source and {end!r} after it, not {before} and {after}"
        )
    # Texts that are no token become the unknown one, which must have a place; CTranslate2 would give it a new one.
    usual = ["<unk>", *([] if defaults.pad is None else [target[defaults.pad]]), *target]
    config.unk_token = next(token for token in usual if token in target and token in source)
    config.bos_token, config.eos_token = begin, end
    if not alone:
        config.decoder_start_token = start
        config.add_source_bos, config.add_source_eos = bool(before), bool(after)
