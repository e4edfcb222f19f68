"""How a published config.json becomes a family's config and back, and what it says about generating.

A setting that changes what a model computes is read, or has one value that is supported; any other value is
an error that names it. A key that is left out means what the family's default says. Other keys (training, labels,
bookkeeping) are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from ..config import Config, FamilyConfig
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


@dataclass(frozen=True, kw_only=True)
class Published:
    """A family's published side.

    `architectures` are the classes whose checkpoints it reads, each with the fields of ours that it stands for; of
    those that stand for a config, the first is written. `settings` go by our field, `fixed` by their key: the one
    value supported. `start` is the key of the token that a decoder is given first.
    """

    model_type: str
    architectures: tuple[tuple[str, Mapping[str, Any]], ...]
    settings: Mapping[str, Setting]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    names: Callable[[Any], Names]
    start: str | None = None

    def read(self, given: Given, config: type[FamilyConfig]) -> FamilyConfig:
        """The family's config, from a config.json."""
        implied = self._implied(given.get("architectures"))
        for key, wanted in self.fixed.items():
            if given.get(key) not in (None, wanted):
                raise ConfigError(f"{self.model_type}: {key}={given[key]!r} is not supported; only {wanted!r} is")
        values = {name: setting.read(given) for name, setting in self.settings.items()}
        return config(**{name: value for name, value in values.items() if value is not None}, **implied)

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
        if name not in known:
            raise ConfigError(f"{self.model_type}: {unknown('architecture', name, known)}")
        return known[name]


@dataclass(frozen=True, kw_only=True)
class GenerationDefaults(Config):
    """The tokens a model was trained to begin, end and pad with, and how widely its authors searched.

    `forced_first` is always written after `start`, `forced_last` where an answer reaches its limit; `banned` never.
    """

    title: ClassVar[str] = "generation defaults"

    start: int | None = None
    end: tuple[int, ...] = ()
    pad: int | None = None
    forced_first: int | None = None
    forced_last: int | None = None
    banned: tuple[int, ...] = ()
    beam: int = 1
    length_penalty: float = 1.0

    @classmethod
    def read(cls, published: Published, *files: Given) -> GenerationDefaults:
        """From config.json and generation_config.json, the later one's word counting."""
        given = {key: value for file in files for key, value in file.items() if value is not None}
        banned = given.get("bad_words_ids", [])
        if not isinstance(banned, list) or not all(isinstance(word, list) and len(word) == 1 for word in banned):
            raise ConfigError(
                f"bad_words_ids={banned!r} is not supported; only a list of single tokens is, as [[5], [9]]"
            )
        end = given.get("eos_token_id", [])
        start = given.get(published.start) if published.start else None
        return cls(
            start=given.get("bos_token_id") if start is None else start,
            end=tuple(end) if isinstance(end, list | tuple) else (end,),
            pad=given.get("pad_token_id"),
            forced_first=given.get("forced_bos_token_id"),
            forced_last=given.get("forced_eos_token_id"),
            banned=tuple(word[0] for word in banned),
            beam=given.get("num_beams", 1),
            length_penalty=given.get("length_penalty", 1.0),
        )

    def write(self, published: Published) -> dict[str, Any]:
        """A generation_config.json, without what is usual."""
        written = {
            published.start or "bos_token_id": self.start,
            "eos_token_id": self.end[0] if len(self.end) == 1 else list(self.end),
            "pad_token_id": self.pad,
            "forced_bos_token_id": self.forced_first,
            "forced_eos_token_id": self.forced_last,
            "bad_words_ids": [[token] for token in self.banned],
            "num_beams": None if self.beam == 1 else self.beam,
            "length_penalty": None if self.length_penalty == 1 else self.length_penalty,
        }
        return {key: value for key, value in written.items() if value not in (None, [])}
