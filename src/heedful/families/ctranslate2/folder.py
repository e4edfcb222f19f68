"""Reads and writes the folder of a CTranslate2 model: model.bin, config.json if there is one, and vocabularies."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from ...core import DecoderOnly
from ...errors import DataError, unknown
from ...files import read_limited
from ..checkpoint_files import quoted
from ..hf_config import GenerationDefaults
from ..weights import WeightsError
from .loader import read_module
from .model_bin import CTranslate2Error, Variables, read_binary
from .spec import ExportError, spec_of

HEADS = {"TransformerSpec": 8, "TransformerBase": 8, "TransformerBig": 16}  # the defaults of translation models
LANGUAGE_MODEL = "TransformerDecoderSpec"
ENDINGS = ("json", "txt")
FLAGS = {"source_bos": 0, "source_eos": 0, "target_bos": 1}  # variables "with_…" of models without a config.json
CONFIG: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("unk_token", "bos_token", "eos_token"), (str,)),
    "decoder_start_token": (str, type(None)),
    **dict.fromkeys(("add_source_bos", "add_source_eos"), (bool,)),
    "layer_norm_epsilon": (int, float, type(None)),
}


@dataclass(frozen=True)
class Vocabularies:
    """The tokens of both sides in the order of their ids; a language model has the same on both.

    `prefix` and `suffix` are the ids before and after every source.
    """

    source: tuple[str, ...]
    target: tuple[str, ...]
    prefix: tuple[int, ...] = ()
    suffix: tuple[int, ...] = ()
    unknown: str = field(default="<unk>", compare=False)  # the token that stands for all others

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """Return the ids of a source, with the prefix and the suffix."""
        ids = {token: index for index, token in reversed(list(enumerate(self.source)))}
        if unknown_tokens := [token for token in tokens if token not in ids]:
            raise DataError(f"the vocabulary of the source has no token {unknown_tokens[0]!r}")
        return [*self.prefix, *(ids[token] for token in tokens), *self.suffix]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """Return the target tokens of these ids."""
        return [self.target[index] for index in ids]


class Model(NamedTuple):
    """The contents of a CTranslate2 folder as Heedful's objects."""

    module: nn.Module  # an EncoderDecoder or a DecoderOnly
    vocabularies: Vocabularies
    defaults: GenerationDefaults


def from_ctranslate2(folder: str | Path) -> Model:
    """Read a model without CTranslate2; raise for a model with a variable that Heedful does not use."""
    folder = Path(folder)
    if not folder.is_dir():
        raise CTranslate2Error(f"{folder} is not a folder; a CTranslate2 model is a folder that holds a model.bin")
    binary, config = read_binary(folder / "model.bin"), _config(folder / "config.json")
    if binary.revision < 2 and binary.spec != LANGUAGE_MODEL:
        raise CTranslate2Error(f"{folder}: the model has revision {binary.revision}, and Heedful reads 2 and up")
    if binary.spec not in (*HEADS, LANGUAGE_MODEL):
        raise CTranslate2Error(f"{folder}: {unknown('specification', binary.spec, [*HEADS, LANGUAGE_MODEL])}")
    variables = Variables(binary.variables)
    flags = {name: bool(variables.number(f"with_{name}", default)) for name, default in FLAGS.items()}
    epsilon = config.get("layer_norm_epsilon")
    has_encoder, n_heads = binary.spec != LANGUAGE_MODEL, HEADS.get(binary.spec, 8)
    try:
        module = read_module(variables, has_encoder=has_encoder, n_heads=n_heads, epsilon=epsilon)
    except (WeightsError, ValueError) as error:
        raise WeightsError(f"{folder}: {error}") from None
    source, target = _vocabularies(folder, module, config.get("unk_token", "<unk>"))
    try:
        return Model(module, *_special_tokens(config, flags, source, target))
    except CTranslate2Error as error:
        raise CTranslate2Error(f"{folder}: {error}") from None


def _special_tokens(
    config: dict[str, Any], flags: dict[str, bool], source: tuple[str, ...], target: tuple[str, ...]
) -> tuple[Vocabularies, GenerationDefaults]:
    """Find the ids of the special tokens with config.json, or with the flags of models that have none."""

    def index_of(token: str, tokens: tuple[str, ...]) -> int:
        if token not in tokens:
            raise CTranslate2Error(f"the special token {token!r} is not in the vocabulary")
        return tokens.index(token)

    begin, end = config.get("bos_token", "<s>"), config.get("eos_token", "</s>")
    prefix = (index_of(begin, source),) if config.get("add_source_bos", flags["source_bos"]) else ()
    suffix = (index_of(end, source),) if config.get("add_source_eos", flags["source_eos"]) else ()
    start = config.get("decoder_start_token", begin if flags["target_bos"] else end)
    start = None if start is None else index_of(start, target)
    defaults = GenerationDefaults(start=start, end=(index_of(end, target),))
    return Vocabularies(source, target, prefix, suffix, config.get("unk_token", "<unk>")), defaults


def _config(path: Path) -> dict[str, Any]:
    """Read config.json and check the types of the keys that are used; older models have no such file."""
    if not path.exists():
        return {}
    config = _json(path)
    if not isinstance(config, dict):
        raise CTranslate2Error(f"{path} must hold a mapping")
    for name, kinds in CONFIG.items():
        if name in config and not isinstance(config[name], kinds):
            raise CTranslate2Error(f"{path}: {name}={quoted(config[name])} has the wrong type")
    if (epsilon := config.get("layer_norm_epsilon")) is not None and not 0 < epsilon < 1:
        raise CTranslate2Error(f"{path}: layer_norm_epsilon={quoted(epsilon)} is not between 0 and 1")
    return config


def _vocabularies(folder: Path, module: Any, unknown_token: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if hasattr(module, "embedding"):
        tokens = _tokens(folder, ("vocabulary",), len(module.embedding.weight), unknown_token)
        return tokens, tokens
    sides = (("source", module.source_embedding), ("target", module.target_embedding))
    source, target = (
        _tokens(folder, ("shared_vocabulary", f"{side}_vocabulary"), len(embedding.weight), unknown_token)
        for side, embedding in sides
    )
    return source, target


def _tokens(folder: Path, names: Sequence[str], size: int, unknown_token: str) -> tuple[str, ...]:
    """Read a JSON list, or a token per line; like CTranslate2, add the unknown token if it is missing."""
    paths = [folder / f"{name}.{ending}" for name in names for ending in ENDINGS]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise CTranslate2Error(f"{folder} lacks a vocabulary: {' or '.join(path.name for path in paths)}")
    tokens = _json(path) if path.suffix == ".json" else _lines(path)
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise CTranslate2Error(f"{path} must hold a list of tokens")
    if unknown_token not in tokens:
        tokens.append(unknown_token)
    if len(tokens) != size:
        raise CTranslate2Error(f"{path} has {len(tokens):,} tokens, but the model has weights for {size:,}")
    return tuple(tokens)


def _lines(path: Path) -> list[str]:
    """Split a text at line feeds; a carriage return belongs to its token unless all lines have one."""
    lines = _text(path).removesuffix("\n").split("\n")
    return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        raise CTranslate2Error(f"{path} is not JSON: {error}") from None


def _text(path: Path) -> str:
    try:
        return read_limited(path).decode("utf-8")
    except OSError as error:
        raise CTranslate2Error(f"{path} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CTranslate2Error(f"{path} cannot be read: {error}") from None


def write_folder(model: Model, folder: str | Path, *, quantization: str | None = None) -> None:
    """Write model.bin, config.json and the vocabularies into an existing folder; `spec_of` raises for other models."""
    spec = spec_of(model.module)
    source, target = model.vocabularies.source, model.vocabularies.target
    if isinstance(model.module, DecoderOnly):
        sides = {"vocabulary": (target, spec.get_vocabulary_size(), spec.register_vocabulary)}
    else:
        rows = spec.get_source_vocabulary_size()[0]
        sides = {
            "source": (source, rows, spec.register_source_vocabulary),
            "target": (target, spec.get_target_vocabulary_size(), spec.register_target_vocabulary),
        }
    for side, (tokens, size, register) in sides.items():
        _check_tokens(side, tokens, size)
        register(list(tokens))
    _write_config(spec.config, model)
    spec.validate()
    spec.optimize(quantization=quantization)
    spec.save(str(folder))


def _check_tokens(side: str, tokens: tuple[str, ...], size: int) -> None:
    """Raise unless there are as many different tokens as embeddings; CTranslate2 finds ids by text."""
    if len(tokens) != size:
        raise ExportError(f"the {side} has {len(tokens):,} tokens, but the model has weights for {size:,}")
    if len(set(tokens)) != size:
        twice = next(token for index, token in enumerate(tokens) if token in tokens[:index])
        raise ExportError(f"CTranslate2 identifies tokens by their text, but the {side} has {twice!r} twice")


def _write_config(config: Any, model: Model) -> None:
    """Set the special tokens by their texts, which CTranslate2 shares between both sides."""
    vocabularies, defaults = model.vocabularies, model.defaults
    source, target = vocabularies.source, vocabularies.target
    decoder_only = isinstance(model.module, DecoderOnly)
    if len(defaults.end) != 1 or (defaults.start is None and not decoder_only):
        raise ExportError(f"CTranslate2 has one start and one end, not {defaults.start} and {defaults.end}")
    end = target[defaults.end[0]]
    start = end if defaults.start is None else target[defaults.start]
    prefix, suffix = ([source[index] for index in ids] for ids in (vocabularies.prefix, vocabularies.suffix))
    begin = prefix[0] if prefix else start
    if prefix not in ([], [begin]) or suffix not in ([], [end]):
        raise ExportError(
            f"CTranslate2 can put one start before a source and {end!r} after it, not {prefix} and {suffix}"
        )
    # Other texts become the unknown token. CTranslate2 adds a new token unless the vocabulary has it.
    candidates = ["<unk>", *([] if defaults.pad is None else [target[defaults.pad]]), *target]
    config.unk_token = next(token for token in candidates if token in target and token in source)
    config.bos_token, config.eos_token = begin, end
    if not decoder_only:
        config.decoder_start_token = start
        config.add_source_bos, config.add_source_eos = bool(prefix), bool(suffix)
