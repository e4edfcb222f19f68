"""Other people's weights in and out: a published config and tensors become a module, and a module becomes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from ..config import FamilyConfig
from ..core import ClassHead, DecoderOnly, EncoderDecoder
from ..errors import ConfigError, HeedfulError, unknown
from .defaults import GenerationDefaults
from .names import carry_in, carry_out
from .published import Published
from .registry import FAMILIES, Family, family_of
from .weights import WeightsError

MOST_LAYERS = 1000
LONGEST_LABEL = 1000  # characters


class Imported(NamedTuple):
    """What a published checkpoint holds; the module is wired as its family says. `labels` are its classes' names."""

    module: Any
    config: FamilyConfig
    generation: GenerationDefaults
    labels: tuple[str, ...] = ()


class Exported(NamedTuple):
    """What a published checkpoint holds, as its files have it; tensors that are shared stand under every name.

    `generation` is empty where a model does not generate.
    """

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
    family, published = published_family(config)
    ours = published.read(config, family.config).changed(**changes)
    for field in fields(ours):  # no more modules than a checkpoint can fill
        most = min(MOST_LAYERS, len(tensors))
        if field.name.endswith("_layers") and getattr(ours, field.name) > most:
            there = f"there are only {len(tensors)} tensors" if most < MOST_LAYERS else f"at most {most} are read"
            raise ConfigError(f"{field.name}={getattr(ours, field.name)}, but {there}")
    defaults = GenerationDefaults.read(published, config, generation or {})
    module = _outline(family, ours)
    labels = _read_labels(config.get("id2label"), _n_classes(module))
    state = carry_in(tensors, published.names(ours), module.state_dict(keep_vars=True))
    module.load_state_dict(state, assign=True)
    return Imported(module.eval(), ours, defaults, labels)


def write_published(
    module: nn.Module,
    config: FamilyConfig,
    generation: GenerationDefaults | None = None,
    *,
    labels: Sequence[str] = (),
) -> Exported:
    """What `read_published` reads. The tensors are the module's own where their layout allows."""
    family = family_of(config.family)
    published = family.published
    if published is None:
        known = sorted(name for name, family in FAMILIES.items() if family.published is not None)
        raise ConfigError(f"the family {config.family!r} has no published form; {', '.join(known)} have one")
    state = module.state_dict()
    _refuse_other(state, _outline(family, config).state_dict())
    defaults = (generation or GenerationDefaults()).write(published)
    tokens = {key: value for key, value in defaults.items() if key.endswith("_token_id")}
    # What the config says of tokens is what the model computes: RoBERTa counts positions from its padding's id.
    written = tokens | published.write(config) | _write_labels(labels, _n_classes(module))
    generates = isinstance(module, EncoderDecoder | DecoderOnly)
    return Exported(written, defaults if generates else {}, carry_out(state, published.names(config)))


def published_family(config: Mapping[str, Any]) -> tuple[Family, Published]:
    """The family that a config.json is of."""
    known = {
        family.published.model_type: (family, family.published)
        for family in FAMILIES.values()
        if family.published is not None
    }
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or model_type not in known:
        raise ConfigError(unknown("model_type", model_type, known))
    return known[model_type]


def _outline(family: Family, config: FamilyConfig) -> nn.Module:
    """A model without values: every shape, and what is shared, before anything is allocated."""
    try:
        with torch.device("meta"):
            return family.build(config)
    except HeedfulError:
        raise
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:  # sizes that no tensor can have
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ConfigError(f"{config.family}: a model of these sizes cannot be built: {reason}") from None


def _refuse_other(state: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """A module that is not what its config says."""
    for name in dict.fromkeys((*wanted, *state)):
        has, should = (str(tuple(known[name].shape)) if name in known else "nothing" for known in (state, wanted))
        if has != should:
            raise WeightsError(f"the module is not what its config says: {name} is {has} and should be {should}")
    if empty := [name for name, tensor in state.items() if tensor.is_meta]:
        raise WeightsError(f"the module has no values to write: {empty[0]} is on the meta device")


def _n_classes(module: nn.Module) -> int:
    """How many classes a model tells apart; 0 where it has no head for that."""
    return next((part.out.out_features for part in module.modules() if isinstance(part, ClassHead)), 0)


def _read_labels(given: Any, n_classes: int) -> tuple[str, ...]:
    if not n_classes or given is None:
        return ()
    places = {str(place): place for place in range(n_classes)}
    if not isinstance(given, Mapping) or {str(key) for key in given} != places.keys() or len(given) != n_classes:
        raise ConfigError(f"id2label must name the classes 0 to {n_classes - 1}, each once, but is {given!r:.100}")
    return _checked_labels(given[key] for key in sorted(given, key=lambda key: places[str(key)]))


def _write_labels(labels: Sequence[str], n_classes: int) -> dict[str, Any]:
    if not labels:
        return {}
    if len(labels) != n_classes:
        raise ConfigError(f"the model tells {n_classes} classes apart, but {len(labels)} labels were given")
    names = _checked_labels(labels)
    return {
        "id2label": {str(place): name for place, name in enumerate(names)},
        "label2id": {name: place for place, name in enumerate(names)},
    }


def _checked_labels(labels: Any) -> tuple[str, ...]:
    found = tuple(labels)
    for label in found:
        if not isinstance(label, str) or len(label) > LONGEST_LABEL:
            raise ConfigError(f"a label is text of at most {LONGEST_LABEL} characters, not {label!r:.100}")
    return found
