"""A CTranslate2 model's folder, in and out: model.bin, config.json where there is one, and its vocabularies."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from torch import nn

from ...core import DecoderOnly
from ...errors import DataError, unknown
from ..hf_config import GenerationDefaults
from ..weights import WeightsError
from .loader import read_module
from .model_bin import CTranslate2Error, Variables, read_binary
from .spec import ExportError, spec_of

HEADS = {"TransformerSpec": 8, "TransformerBase": 8, "TransformerBig": 16}  # of translators that do not say it
LANGUAGE_MODEL = "TransformerDecoderSpec"
ENDINGS = ("json", "txt")
FLAGS = {"source_bos": 0, "source_eos": 0, "target_bos": 1}  # of models without a config.json, with_ before them
CONFIG: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("unk_token", "bos_token", "eos_token"), (str,)),
    "decoder_start_token": (str, type(None)),
    **dict.fromkeys(("add_source_bos", "add_source_eos"), (bool,)),
    "layer_norm_epsilon": (int, float, type(None)),
}


@dataclass(frozen=True)
class Vocabularies:
    """The tokens of both sides by their ids, and what stands around a source; a language model has one side."""

    source: tuple[str, ...]
    target: tuple[str, ...]
    before: tuple[int, ...] = ()
    after: tuple[int, ...] = ()
    unknown: str = field(default="<unk>", compare=False)  # what a token counts as that is not among them

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """The ids of a source, as the encoder wants them."""
        places = {token: place for place, token in reversed(list(enumerate(self.source)))}
        if strange := [token for token in tokens if token not in places]:
            raise DataError(f"the vocabulary of the source has no token {strange[0]!r}")
        return [*self.before, *(places[token] for token in tokens), *self.after]

    def tokens(self, ids: Sequence[int]) -> list[str]:
        """The tokens of an answer."""
        return [self.target[index] for index in ids]


class Model(NamedTuple):
    """All that a CTranslate2 folder holds, as it is known here: the same in and out."""

    module: nn.Module  # an EncoderDecoder or a DecoderOnly
    vocabularies: Vocabularies
    defaults: GenerationDefaults


def from_ctranslate2(folder: str | Path) -> Model:
    """Read a model that CTranslate2 runs, without CTranslate2. Every variable is used, or the model refused."""
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
    return Model(module, *_special_tokens(config, flags, source, target))


def _special_tokens(
    config: dict[str, Any], flags: dict[str, bool], source: tuple[str, ...], target: tuple[str, ...]
) -> tuple[Vocabularies, GenerationDefaults]:
    """Their ids, and which of them stand around a source: from config.json, or the flags of models without one."""

    def place(token: str, tokens: tuple[str, ...]) -> int:
        if token not in tokens:
            raise CTranslate2Error(f"the special token {token!r} is not in the vocabulary")
        return tokens.index(token)

    begin, end = config.get("bos_token", "<s>"), config.get("eos_token", "</s>")
    before = (place(begin, source),) if config.get("add_source_bos", flags["source_bos"]) else ()
    after = (place(end, source),) if config.get("add_source_eos", flags["source_eos"]) else ()
    start = config.get("decoder_start_token", begin if flags["target_bos"] else end)
    start = None if start is None else place(start, target)
    defaults = GenerationDefaults(start=start, end=(place(end, target),))
    return Vocabularies(source, target, before, after, config.get("unk_token", "<unk>")), defaults


def _config(path: Path) -> dict[str, Any]:
    """What it says of what is used here, each of its type; older models have none."""
    if not path.exists():
        return {}
    config = _json(path)
    if not isinstance(config, dict):
        raise CTranslate2Error(f"{path} holds no mapping")
    for name, kinds in CONFIG.items():
        if name in config and not isinstance(config[name], kinds):
            raise CTranslate2Error(f"{path}: {name}={config[name]!r} is not of its type")
    if (epsilon := config.get("layer_norm_epsilon")) is not None and not 0 < epsilon < 1:
        raise CTranslate2Error(f"{path}: layer_norm_epsilon={epsilon!r} is not between 0 and 1")
    return config


def _vocabularies(folder: Path, module: Any, unknown_token: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if hasattr(module, "embedding"):
        one = _tokens(folder, ("vocabulary",), len(module.embedding.weight), unknown_token)
        return one, one
    sides = (("source", module.source_embedding), ("target", module.target_embedding))
    source, target = (
        _tokens(folder, ("shared_vocabulary", f"{side}_vocabulary"), len(embedding.weight), unknown_token)
        for side, embedding in sides
    )
    return source, target


def _tokens(folder: Path, names: Sequence[str], size: int, unknown_token: str) -> tuple[str, ...]:
    """A list in JSON, or one token a line. CTranslate2 adds the unknown token where a file leaves it out."""
    paths = [folder / f"{name}.{ending}" for name in names for ending in ENDINGS]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise CTranslate2Error(f"{folder} lacks a vocabulary: {' or '.join(path.name for path in paths)}")
    tokens = _json(path) if path.suffix == ".json" else _lines(path)
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise CTranslate2Error(f"{path} holds no list of tokens")
    if unknown_token not in tokens:
        tokens.append(unknown_token)
    if len(tokens) != size:
        raise CTranslate2Error(f"{path} has {len(tokens):,} tokens, but the model has weights for {size:,}")
    return tuple(tokens)


def _lines(path: Path) -> list[str]:
    """Only a line feed ends a line; a carriage return belongs to its token unless all lines have one."""
    lines = _text(path).removesuffix("\n").split("\n")
    return [line[:-1] for line in lines] if all(line.endswith("\r") for line in lines) else lines


def _json(path: Path) -> Any:
    try:
        return json.loads(_text(path))
    except (json.JSONDecodeError, RecursionError) as error:
        raise CTranslate2Error(f"{path} is no JSON: {error}") from None


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CTranslate2Error(f"{path} cannot be read: {error}") from None


def write_folder(model: Model, folder: str | Path, *, quantization: str | None = None) -> None:
    """model.bin, config.json and the vocabularies, into a folder that is there. `spec_of` says what is refused."""
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
