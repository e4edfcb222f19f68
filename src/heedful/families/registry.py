"""From a name to a family, and from a config, a dict or a preset's name to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from torch import nn

from ..config import FILE_ENDINGS, FamilyConfig, read_mapping
from ..errors import ConfigError, unknown
from .hf_config import Published


@dataclass(frozen=True)
class Family:
    """One architecture: its config, how to build it, its sized presets, and how others publish it."""

    config: type[FamilyConfig]
    build: Callable[[Any], nn.Module]
    presets: Mapping[str, FamilyConfig] = field(default_factory=dict)
    published: Published | None = None


M = TypeVar("M", bound=nn.Module)
Spec = FamilyConfig | Mapping[str, Any] | Path | str
FAMILIES: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Make a family known by its config's tag. Preset names are unique over all families."""
    taken = {name for known in FAMILIES.values() for name in known.presets} & set(family.presets)
    if family.config.family in FAMILIES or taken:
        raise ValueError(f"{family.config.family!r} or its presets {sorted(taken)} are registered already")
    FAMILIES[family.config.family] = family
    return family


def presets() -> dict[str, FamilyConfig]:
    """Every preset by its name."""
    return {name: config for family in FAMILIES.values() for name, config in family.presets.items()}


def config_of(spec: Spec) -> FamilyConfig:
    """A config, the dict of one with its "family" (or "preset" and changes), a file of one, or a preset's name."""
    if isinstance(spec, FamilyConfig):
        return spec
    if isinstance(spec, Path) or (isinstance(spec, str) and Path(spec).suffix.lower() in FILE_ENDINGS):
        return config_of(read_mapping(spec))
    if isinstance(spec, str):
        known = presets()
        if spec not in known:
            raise ConfigError(f"{unknown('preset', spec, known)}; or give a file that ends in .json, .yaml or .yml")
        return known[spec]
    if not isinstance(spec, Mapping):
        raise ConfigError(f"a model is built from a config, a dict, a file or a preset's name, not from {spec!r}")
    if "preset" in spec:
        changes = {key: value for key, value in spec.items() if key != "preset"}
        return config_of(str(spec["preset"])).changed(**changes)
    if "family" not in spec:
        raise ConfigError(f'a config needs the key "family", one of: {", ".join(sorted(FAMILIES))}; or "preset"')
    return family_of(spec["family"]).config.from_dict(spec)


def family_of(name: object) -> Family:
    """A family by its tag."""
    if not isinstance(name, str) or name not in FAMILIES:
        raise ConfigError(unknown("family", name, FAMILIES))
    return FAMILIES[name]


def build(spec: Spec, **changes: Any) -> Any:
    """A model with fresh weights, an nn.Module wired as its family says.

    >>> heedful.build("base"); heedful.build("tiny", vocab_size=8000); heedful.build("run.yaml"); heedful.build(config)
    """
    config = config_of(spec)
    config = config.changed(**changes) if changes else config
    return family_of(config.family).build(config)


def initialize_normal(module: M, std: float) -> M:
    """Draw every matrix and table of a module anew, normal with one deviation (GPT-2, BERT, BART, LLaMA: 0.02)."""
    for parameter in module.parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter, std=std)
    return module
