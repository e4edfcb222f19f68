"""From a name to a family, and from a config, a dict or a preset's name to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import nn

from ..config import Config
from ..errors import ConfigError, unknown


@dataclass(frozen=True)
class Family:
    """One architecture: its config, how to build it, and its sized presets."""

    config: type[Config]
    build: Callable[[Any], nn.Module]
    presets: Mapping[str, Config] = field(default_factory=dict)


FAMILIES: dict[str, Family] = {}


def register(family: Family) -> Family:
    """Make a family known by its config's tag. Preset names are unique over all families."""
    taken = {name for known in FAMILIES.values() for name in known.presets} & set(family.presets)
    if family.config.family in FAMILIES or taken:
        raise ValueError(f"{family.config.family!r} or its presets {sorted(taken)} are registered already")
    FAMILIES[family.config.family] = family
    return family


def presets() -> dict[str, Config]:
    """Every preset by its name."""
    return {name: config for family in FAMILIES.values() for name, config in family.presets.items()}


def config_of(spec: Config | Mapping[str, Any] | str) -> Config:
    """A config, the dict of one with its "family", or the name of a preset, as a config."""
    if isinstance(spec, Config):
        return spec
    if isinstance(spec, str):
        known = presets()
        if spec not in known:
            raise ConfigError(unknown("preset", spec, known))
        return known[spec]
    if "family" not in spec:
        raise ConfigError(f'a config needs the key "family", one of: {", ".join(sorted(FAMILIES))}')
    name = spec["family"]
    if name not in FAMILIES:
        raise ConfigError(unknown("family", name, FAMILIES))
    return FAMILIES[name].config.from_dict(spec)


def build(spec: Config | Mapping[str, Any] | str, **changes: Any) -> nn.Module:
    """A model with fresh weights: heedful.build("base"), heedful.build("tiny", vocab_size=8000), or from a config."""
    config = config_of(spec)
    config = config.changed(**changes) if changes else config
    return FAMILIES[config.family].build(config)
