"""How a published config.json becomes a family's config and back.

A setting that changes what a model computes is read, or has one value that is supported; any other value is
an error that names it. A key that is left out means what the family's default says. Other keys (training, labels,
bookkeeping) are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..config import FamilyConfig
from ..errors import ConfigError, unknown
from .names import Names

Given = Mapping[str, Any]


class Setting(NamedTuple):
    """One field of ours: the published keys that say it, how it is read from them (None: not said), and written."""

    keys: tuple[str, ...]
    read: Callable[[Given], Any]
    write: Callable[[Any], dict[str, Any]]


def same(*keys: str) -> Setting:
    """The same value under one key, or under several that must agree."""

    def read(given: Given) -> Any:
        values = {key: given[key] for key in keys if given.get(key) is not None}
        if len({repr(value) for value in values.values()}) > 1:
            said = " and ".join(f"{key}={value!r}" for key, value in values.items())
            raise ConfigError(f"{said} differ, which is not supported; both have one value here")
        return next(iter(values.values()), None)

    return Setting(keys, read, lambda value: dict.fromkeys(keys, value))


def own(key: str, usual: Callable[[Given], Any]) -> Setting:
    """A value that is None here where it is the usual one, which follows from others."""

    def read(given: Given) -> Any:
        return None if given.get(key) == usual(given) else given.get(key)

    return Setting((key,), read, lambda value: {} if value is None else {key: value})


NULL = object()  # what a setting reads where a key says null, which is more than leaving it out


def nullable(key: str) -> Setting:
    """The same value, or None where the key says null; left out, it means the family's default."""

    def read(given: Given) -> Any:
        return NULL if key in given and given[key] is None else given.get(key)

    return Setting((key,), read, lambda value: {key: value})


def words(key: str, table: Mapping[str, str]) -> Setting:
    """Another word for the same; of several published words for one of ours, the first is written."""

    def read(given: Given) -> Any:
        word = given.get(key)
        if word is None:
            return None
        if not isinstance(word, str) or word not in table:
            raise ConfigError(unknown(f"or unsupported {key}", word, table))
        return table[word]

    return Setting((key,), read, lambda value: {key: next(word for word, ours in table.items() if ours == value)})


ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "swish": "silu",
    "silu": "silu",
}


def _read_classes(given: Given) -> int | None:
    labels = given.get("id2label")
    return len(labels) if isinstance(labels, dict) else given.get("num_labels")


def _write_classes(n: int) -> dict[str, Any]:
    labels = {str(index): f"LABEL_{index}" for index in range(n)}
    return {"id2label": labels, "label2id": {label: int(index) for index, label in labels.items()}}


CLASSES = Setting(("id2label", "num_labels"), _read_classes, _write_classes)  # how many; their names are not a model's


@dataclass(frozen=True, kw_only=True)
class Published:
    """A family's published side.

    `architectures` are the classes whose checkpoints it reads, each with the fields of ours that it stands for; of
    those that stand for a config, the first is written. `settings` go by our field, `fixed` by their key: the one
    value supported. `usual` is what a key left out means there, where that is not our own default. `start` is the key
    of the token that a decoder is given first.
    """

    model_type: str
    architectures: tuple[tuple[str, Mapping[str, Any]], ...]
    settings: Mapping[str, Setting]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    names: Callable[[Any], Names]
    usual: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None

    def read(self, given: Given, config: type[FamilyConfig]) -> FamilyConfig:
        """The family's config, from a config.json."""
        given = {**self.usual, **given}
        implied = self._implied(given.get("architectures"))
        for key, wanted in self.fixed.items():
            if given.get(key) not in (None, wanted):
                raise ConfigError(f"{self.model_type}: {key}={given[key]!r} is not supported; only {wanted!r} is")
        values = {name: setting.read(given) for name, setting in self.settings.items()}
        said = {name: None if value is NULL else value for name, value in values.items() if value is not None}
        return config(**said, **implied)

    def write(self, config: FamilyConfig) -> dict[str, Any]:
        """A config.json from the family's config."""
        fitting = (
            name
            for name, implied in self.architectures
            if all(getattr(config, field) == value for field, value in implied.items())
        )
        written: dict[str, Any] = {"model_type": self.model_type, "architectures": [next(fitting)], **self.fixed}
        for name, setting in self.settings.items():
            written |= setting.write(getattr(config, name))
        return written

    def _implied(self, architectures: object) -> Mapping[str, Any]:
        known = dict(reversed(self.architectures))  # of several with one name, the first is read
        name = architectures[0] if isinstance(architectures, list) and architectures else self.architectures[0][0]
        if not isinstance(name, str) or name not in known:
            raise ConfigError(f"{self.model_type}: {unknown('architecture', name, known)}")
        return known[name]
