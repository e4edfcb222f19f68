"""Other people's weights in and out: a published config and tensors become a module, and a module becomes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..config import FamilyConfig
from ..errors import ConfigError, unknown
from .names import carry_in, carry_out
from .published import GenerationDefaults, Published
from .registry import FAMILIES, Family, family_of


class Imported(NamedTuple):
    """What a published checkpoint holds; the module is wired as its family says."""

    module: Any
    config: FamilyConfig
    generation: GenerationDefaults


class Exported(NamedTuple):
    """What a published checkpoint holds, as its files have it; tensors that are shared stand under every name."""

    config: dict[str, Any]
    generation: dict[str, Any]
    tensors: dict[str, Tensor]


def read_published(
    config: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
    generation: Mapping[str, Any] | None = None,
    **changes: Any,
) -> Imported:
    """A module in evaluation mode from a config.json, its tensors, and a generation_config.json where there is one.

    The tensors are taken over where their layout allows, not copied. `changes` are made to the family's config:
    another head, another dropout.
    """
    family, published = _family(config.get("model_type"))
    ours = published.read(config, family.config).changed(**changes)
    for field in fields(ours):  # no more modules than a checkpoint can fill
        if field.name.endswith("_layers") and getattr(ours, field.name) > len(tensors):
            raise ConfigError(f"{field.name}={getattr(ours, field.name)}, but there are only {len(tensors)} tensors")
    defaults = GenerationDefaults.read(published, config, generation or {})
    with torch.device("meta"):
        module = family.build(ours)
    state = carry_in(tensors, published.names(ours), module.state_dict(keep_vars=True))
    module.load_state_dict(state, assign=True)
    return Imported(module.eval(), ours, defaults)


def write_published(module: nn.Module, config: FamilyConfig, generation: GenerationDefaults | None = None) -> Exported:
    """What `read_published` reads. The tensors are the module's own where their layout allows."""
    published = family_of(config.family).published
    if published is None:
        known = sorted(name for name, family in FAMILIES.items() if family.published is not None)
        raise ConfigError(f"the family {config.family!r} has no published form; {', '.join(known)} have one")
    defaults = (generation or GenerationDefaults()).write(published)
    tokens = {key: value for key, value in defaults.items() if key.endswith("_token_id")}
    tensors = carry_out(module.state_dict(), published.names(config))
    return Exported(published.write(config) | tokens, defaults, tensors)


def _family(model_type: object) -> tuple[Family, Published]:
    known = {
        family.published.model_type: (family, family.published)
        for family in FAMILIES.values()
        if family.published is not None
    }
    if not isinstance(model_type, str) or model_type not in known:
        raise ConfigError(unknown("model_type", model_type, known))
    return known[model_type]
