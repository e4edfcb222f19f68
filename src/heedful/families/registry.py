"""The table of families, and `build`, which makes a model from a config, a dict, a file or a preset's name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from torch import nn

from .. import core
from ..config import FILE_ENDINGS, FamilyConfig, read_mapping
from ..errors import ConfigError, unknown
from .hf_config import Published

if TYPE_CHECKING:
    from .encoder_decoder import EncoderDecoderConfig
    from .encoder_only import EncoderOnlyConfig
    from .layers import DecoderOnlyConfig
    from .patchtst import PatchTSTConfig
    from .t5 import T5Config
    from .vit import ImageConfig


@dataclass(frozen=True)
class Family:
    """An architecture: its config class, its builder, its presets, and how to read published checkpoints of it."""

    config: type[FamilyConfig]
    build: Callable[[Any], nn.Module]
    presets: Mapping[str, FamilyConfig] = field(default_factory=dict)
    published: Published | None = None


Wiring = core.EncoderDecoder | core.EncoderOnly | core.DecoderOnly | core.Forecaster
Spec = FamilyConfig | Mapping[str, Any] | Path | str
FAMILIES: dict[str, Family] = {}


def register(
    config: type[FamilyConfig],
    build: Callable[[Any], nn.Module],
    *,
    presets: Mapping[str, FamilyConfig] | None = None,
    published: Published | None = None,
) -> Family:
    """Register a family under its config's tag. Preset names must be unique over all families."""
    family = Family(config, build, presets or {}, published)
    taken = {name for other in FAMILIES.values() for name in other.presets} & set(family.presets)
    if config.family in FAMILIES or taken:
        raise ValueError(f"{config.family!r} or its presets {sorted(taken)} are registered already")
    FAMILIES[config.family] = family
    return family


def presets() -> dict[str, FamilyConfig]:
    """Return the presets of all families by name."""
    return {name: config for family in FAMILIES.values() for name, config in family.presets.items()}


def config_of(spec: Spec) -> FamilyConfig:
    """Return the config that a spec stands for.

    Args:
        spec: A config, a preset's name, a dict with the key "family" (or "preset", and changes to it), or the path of a
            JSON or YAML file with such a dict.
    """
    if isinstance(spec, FamilyConfig):
        return spec
    if isinstance(spec, Path) or (isinstance(spec, str) and Path(spec).suffix.lower() in FILE_ENDINGS):
        return config_of(read_mapping(spec))
    if isinstance(spec, str):
        configs = presets()
        if spec not in configs:
            raise ConfigError(f"{unknown('preset', spec, configs)}; or give a file that ends in .json, .yaml or .yml")
        return configs[spec]
    if not isinstance(spec, Mapping):
        raise ConfigError(f"a model is built from a config, a dict, a file or a preset's name, not from {spec!r}")
    if "preset" in spec:
        changes = {key: value for key, value in spec.items() if key != "preset"}
        return config_of(str(spec["preset"])).changed(**changes)
    if "family" not in spec:
        raise ConfigError(f'a config needs the key "family", one of: {", ".join(sorted(FAMILIES))}; or "preset"')
    return family_of(spec["family"]).config.from_dict(spec)


def family_of(name: object) -> Family:
    """Return the family with this tag, or raise ConfigError with the nearest tag."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise ConfigError(unknown("family", name, FAMILIES))
    return FAMILIES[name]


# Preset names by the model class they build, for type checkers; a test compares them with the registered presets.
EncoderDecoderPreset = (
    Literal["tiny", "small", "base", "big", "recurrent", "recurrent-plain"]
    | Literal["bart-tiny", "bart-base", "bart-large", "marian-tiny", "marian-base", "marian-big"]
    | Literal["t5-tiny", "t5-small", "t5-base", "t5-large", "t5-3b", "t5-11b"]
    | Literal["t5-v1.1-small", "t5-v1.1-base", "t5-v1.1-large", "t5-v1.1-xl", "t5-v1.1-xxl"]
)
EncoderOnlyPreset = (
    Literal["bert-tiny", "bert-mini", "bert-small", "bert-medium", "bert-base", "bert-large"]
    | Literal["roberta-tiny", "roberta-base", "roberta-large", "distilbert-tiny", "distilbert-base"]
    | Literal["xlm-roberta-tiny", "xlm-roberta-base", "xlm-roberta-large"]
    | Literal["albert-tiny", "albert-base", "albert-large", "albert-xlarge", "albert-xxlarge"]
    | Literal["vit-tiny", "vit-small-16", "vit-base-16", "vit-base-32", "vit-large-16", "vit-huge-14"]
    | Literal["deit-tiny", "deit-small", "deit-base"]
)
DecoderOnlyPreset = (
    Literal["gpt2-tiny", "gpt2-mini", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl"]
    | Literal["opt-tiny", "opt-125m", "opt-1.3b", "opt-2.7b", "opt-6.7b"]
    | Literal["llama-tiny", "llama-7b", "llama-13b", "llama-2-7b", "llama-2-70b", "llama-3-8b"]
    | Literal["llama-3.1-8b", "llama-3.2-1b", "llama-3.2-3b"]
    | Literal["mistral-tiny", "mistral-7b", "mistral-7b-v0.2", "mistral-7b-v0.3"]
)
ForecasterPreset = Literal["patchtst-tiny", "patchtst-small", "patchtst-base", "patchtst-42", "patchtst-64"]


@overload
def build(spec: EncoderDecoderPreset | EncoderDecoderConfig | T5Config, **changes: Any) -> core.EncoderDecoder: ...
@overload
def build(spec: EncoderOnlyPreset | EncoderOnlyConfig | ImageConfig, **changes: Any) -> core.EncoderOnly: ...
@overload
def build(spec: DecoderOnlyPreset | DecoderOnlyConfig, **changes: Any) -> core.DecoderOnly: ...
@overload
def build(spec: ForecasterPreset | PatchTSTConfig, **changes: Any) -> core.Forecaster: ...
@overload
def build(spec: Spec, **changes: Any) -> Wiring: ...
def build(spec: Spec, **changes: Any) -> Any:
    """Build a model with random weights from a spec, which `config_of` reads, and changes to its config.

    >>> heedful.build("base"); heedful.build("tiny", vocab_size=8000); heedful.build("run.yaml"); heedful.build(config)
    """
    config = config_of(spec)
    config = config.changed(**changes) if changes else config
    return family_of(config.family).build(config)
