"""Converts between a published config.json and a family's config, and reads and writes generation defaults.

Every key that changes what a model computes is either read or has one supported value; any other value is an error
that names the key. A missing key means the family's default. Other keys (training, bookkeeping) are ignored.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

from ..config import Config, FamilyConfig
from ..errors import ConfigError, unknown
from .weight_map import WeightMap

HFConfig = Mapping[str, Any]


class Setting(NamedTuple):
    """A config field: its published keys, and how to read it (None if it is missing) and write it."""

    keys: tuple[str, ...]
    read: Callable[[HFConfig], Any]
    write: Callable[[Any], dict[str, Any]]


def setting(*keys: str) -> Setting:
    """Read the same value from one key, or from several that must agree."""

    def read(hf: HFConfig) -> Any:
        values = {key: hf[key] for key in keys if hf.get(key) is not None}
        if len({repr(value) for value in values.values()}) > 1:
            pairs = " and ".join(f"{key}={value!r}" for key, value in values.items())
            raise ConfigError(f"{pairs} differ, which is not supported; give both the same value")
        return next(iter(values.values()), None)

    return Setting(keys, read, lambda value: dict.fromkeys(keys, value))


def derived(key: str, default: Callable[[HFConfig], Any]) -> Setting:
    """Read a value that is None here if it equals a default computed from other keys."""

    def read(hf: HFConfig) -> Any:
        return None if hf.get(key) == default(hf) else hf.get(key)

    return Setting((key,), read, lambda value: {} if value is None else {key: value})


NULL = object()  # what a setting reads for a null, which differs from a missing key


def optional(key: str) -> Setting:
    """Read the same value, or None for null; a missing key means the family's default."""

    def read(hf: HFConfig) -> Any:
        return NULL if key in hf and hf[key] is None else hf.get(key)

    return Setting((key,), read, lambda value: {key: value})


def enum(key: str, table: Mapping[Any, str]) -> Setting:
    """Map published values to Heedful's; of several that mean the same, the first is written."""

    def read(hf: HFConfig) -> Any:
        value = hf.get(key)
        if value is None and (key not in hf or None not in table):
            return None
        if not isinstance(value, str | bool | None) or value not in table:
            raise ConfigError(unknown(f"or unsupported {key}", value, map(str, table)))
        return table[value]

    return Setting((key,), read, lambda value: {key: next(hf for hf, name in table.items() if name == value)})


def unpublished(default: Any, refusal: str) -> Setting:
    """Declare a field without a key: only its default can be written, others raise `refusal` with the `{value}`."""

    def write(value: Any) -> dict[str, Any]:
        if value != default:
            raise ConfigError(refusal.format(value=value))
        return {}

    return Setting((), lambda hf: None, write)


ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "swish": "silu",
    "silu": "silu",
}


def _read_classes(hf: HFConfig) -> int | None:
    labels = hf.get("id2label")
    return len(labels) if isinstance(labels, dict) else hf.get("num_labels")


def labels_to_hf(labels: Iterable[str]) -> dict[str, Any]:
    """Return the keys of config.json that name the classes."""
    names = dict(enumerate(labels))
    return {
        "id2label": {str(index): name for index, name in names.items()},
        "label2id": {name: index for index, name in names.items()},
    }


CLASSES = Setting(  # only their number; labels belong to tasks
    ("id2label", "num_labels"), _read_classes, lambda n: labels_to_hf(f"LABEL_{index}" for index in range(n))
)

COMMON = {  # as most classes of transformers have them
    **{name: setting(name) for name in ("vocab_size", "dropout", "attention_dropout")},
    "d_model": setting("hidden_size"),
    "n_heads": setting("num_attention_heads"),
    "d_ff": setting("intermediate_size"),
    "n_layers": setting("num_hidden_layers"),
    "max_length": setting("max_position_embeddings"),
    "activation": enum("hidden_act", ACTIVATIONS),
    "n_classes": CLASSES,
}


def settings_of(config: type[FamilyConfig], *same: str, **settings: Setting | str) -> dict[str, Setting]:
    """Return how the fields of a config are read and written.

    Args:
        config: The class of the config.
        *same: Fields whose keys have the same names.
        **settings: Other fields, each with its key or its setting. Those that are in neither are read as `COMMON` says,
            or not at all.
    """
    keys = {name: name for name in same} | settings
    table = COMMON | {name: setting(value) if isinstance(value, str) else value for name, value in keys.items()}
    return {field.name: table[field.name] for field in fields(config) if field.name in table}


@dataclass(frozen=True, kw_only=True)
class Published:
    """How a family's checkpoints are published.

    Attributes:
        model_type: The value of the key "model_type".
        architectures: The classes of transformers that are read, each with the config fields that it implies. Of
            several that fit a config, the first is written.
        settings: How to read and write each config field.
        fixed: Keys with the one value that is supported; None means the key must be missing.
        names: The weight map of a config.
        hf_defaults: The values of missing keys in transformers, where they differ from Heedful's defaults.
        start: The key of the first token of a decoder, for encoder-decoders.
    """

    model_type: str
    architectures: tuple[tuple[str, Mapping[str, Any]], ...]
    settings: Mapping[str, Setting]
    fixed: Mapping[str, Any] = field(default_factory=dict)
    names: Callable[[Any], WeightMap]
    hf_defaults: Mapping[str, Any] = field(default_factory=dict)
    start: str | None = None

    def read(self, hf: HFConfig, config: type[FamilyConfig]) -> FamilyConfig:
        """Return the family's config for the contents of a config.json."""
        hf = {**self.hf_defaults, **hf}
        implied = self._implied(hf.get("architectures"))
        for key, value in self.fixed.items():
            if hf.get(key) not in (None, value):
                hint = "leave it out" if value is None else f"only {value!r} is"
                raise ConfigError(f"{self.model_type}: {key}={hf[key]!r} is not supported; {hint}")
        values = {name: setting.read(hf) for name, setting in self.settings.items()}
        values = {name: None if value is NULL else value for name, value in values.items() if value is not None}
        return config(**values, **implied)

    def write(self, config: FamilyConfig) -> dict[str, Any]:
        """Return the contents of config.json for a config."""
        architectures = (
            name
            for name, implied in self.architectures
            if all(getattr(config, field) == value for field, value in implied.items())
        )
        written: dict[str, Any] = {"model_type": self.model_type, "architectures": [next(architectures)]}
        written |= {key: value for key, value in self.fixed.items() if value is not None}
        for name, setting in self.settings.items():
            written |= setting.write(getattr(config, name))
        return written

    def _implied(self, architectures: object) -> Mapping[str, Any]:
        fields = dict(reversed(self.architectures))  # of several with one name, the first is read
        name = architectures[0] if isinstance(architectures, list) and architectures else self.architectures[0][0]
        if not isinstance(name, str) or name not in fields:
            raise ConfigError(f"{self.model_type}: {unknown('architecture', name, fields)}")
        return fields[name]


GENERATION_KEYS = {
    "pad": "pad_token_id",
    "forced_first": "forced_bos_token_id",
    "forced_last": "forced_eos_token_id",
    "beam": "num_beams",
    "length_penalty": "length_penalty",
    "max_new_tokens": "max_new_tokens",
    "min_new_tokens": "min_new_tokens",
    "repetition_penalty": "repetition_penalty",
    "no_repeat_ngram_size": "no_repeat_ngram_size",
}
SAMPLING_KEYS = ("temperature", "top_k", "top_p", "min_p")
OFF = {"no_repeat_ngram_size": 0, "top_k": 0, "top_p": 1, "min_p": 0}  # published values that stand for None
HF_TOP_K = 50  # the default of transformers when sampling is on
NEUTRAL: dict[str, Any] = {
    "suppress_tokens": [],
    "begin_suppress_tokens": [],
    "forced_decoder_ids": [],
    "force_words_ids": [],
    "sequence_bias": {},
    "stop_strings": [],
    "num_beam_groups": 1,
    "diversity_penalty": 0,
    "encoder_no_repeat_ngram_size": 0,
    "encoder_repetition_penalty": 1,
    "exponential_decay_length_penalty": [],
    "guidance_scale": 1,
    "penalty_alpha": 0,
    "dola_layers": [],
    "watermarking_config": {},
}  # unsupported settings of generation, with the value that has no effect
NEUTRAL_SAMPLING: dict[str, Any] = {"typical_p": 1, "epsilon_cutoff": 0, "eta_cutoff": 0, "top_h": 1, "num_beams": 1}


class PublishedWarning(UserWarning):
    """A published checkpoint that is read, but has unsupported settings or an unsafe format."""


@dataclass(frozen=True, kw_only=True)
class GenerationDefaults(Config):
    """The special tokens of a model and its authors' settings of generation.

    `forced_first` always follows `start`, `forced_last` ends an output that reaches its maximum length, and
    `suppress_tokens` are never generated. The other fields are settings of `heedful.generate`.
    """

    title: ClassVar[str] = "generation defaults"

    start: int | None = None
    end: tuple[int, ...] = ()
    pad: int | None = None
    forced_first: int | None = None
    forced_last: int | None = None
    suppress_tokens: tuple[int, ...] = ()
    beam: int = 1
    length_penalty: float = 1.0
    max_new_tokens: int | None = None
    min_new_tokens: int = 0
    sample: bool = False
    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repetition_penalty: float = 1.0
    no_repeat_ngram_size: int | None = None

    def check(self) -> None:
        self.require_positive("beam", "max_new_tokens", "top_k", "no_repeat_ngram_size")
        self.require(self.min_new_tokens >= 0, f"min_new_tokens cannot be negative: {self.min_new_tokens}")
        self.require(
            self.max_new_tokens is None or self.max_new_tokens > self.min_new_tokens,
            f"max_new_tokens={self.max_new_tokens} must be more than min_new_tokens={self.min_new_tokens}, "
            "since it counts the end",
        )
        self.require(
            abs(self.length_penalty) <= 10, f"length_penalty goes from -10 to 10, but is {self.length_penalty}"
        )
        for name in ("temperature", "repetition_penalty"):
            self.require(getattr(self, name) > 0, f"{name} is more than 0, but is {getattr(self, name)}")
        for name in ("top_p", "min_p"):
            share = getattr(self, name)
            self.require(share is None or 0 < share <= 1, f"{name} is more than 0 and at most 1, but is {share}")
        self.require(not self.sample or self.beam == 1, f"sampling has no beam, but beam is {self.beam}")
        for name in ("temperature", "top_k", "top_p", "min_p"):
            self.require(
                self.sample or getattr(self, name) == getattr(type(self), name), f"{name} is for sampling, which is off"
            )

    @classmethod
    def read(cls, published: Published, *files: HFConfig) -> GenerationDefaults:
        """Read config.json and then generation_config.json, which overrides it; warn about unsupported settings.

        For encoder-decoders, `max_length` and `min_length` count the start token. For other models they count the
        prompt and are ignored. Settings of sampling are read only if sampling is on.
        """
        hf = {key: value for file in files for key, value in file.items() if value is not None}
        banned = hf.get("bad_words_ids", [])
        if not isinstance(banned, list) or not all(isinstance(tokens, list) and len(tokens) == 1 for tokens in banned):
            raise ConfigError(
                f"bad_words_ids={banned!r} is not supported; only a list of single tokens is, as [[5], [9]]"
            )
        end = hf.get("eos_token_id", [])
        start = hf.get(published.start) if published.start else None
        sample = hf.get("do_sample", False)
        if ignored := list(_unsupported(hf, sample is True)):
            warnings.warn(
                f"these generation settings are not supported and ignored: {', '.join(ignored)}",
                PublishedWarning,
                stacklevel=2,
            )
        values = {name: hf[key] for name, key in GENERATION_KEYS.items() if key in hf}
        for name in ("max_new_tokens", "min_new_tokens"):
            length = _length(hf, name, published)
            values |= {} if length is None else {name: length}
        if sample is True:
            values |= {"beam": 1, "top_k": HF_TOP_K, **{key: hf[key] for key in SAMPLING_KEYS if key in hf}}
        for name, off in OFF.items():
            if values.get(name) == off and not isinstance(values[name], bool):  # the config refuses bools itself
                values[name] = None
        return cls(
            start=hf.get("bos_token_id") if start is None else start,
            end=tuple(end) if isinstance(end, list | tuple) else (end,),
            suppress_tokens=tuple(tokens[0] for tokens in banned),
            sample=sample,
            **values,
        )

    def write(self, published: Published) -> dict[str, Any]:
        """Return the contents of generation_config.json, without settings that have their default."""
        written = {
            published.start or "bos_token_id": self.start,
            "eos_token_id": self.end[0] if len(self.end) == 1 else list(self.end),
            "bad_words_ids": [[token] for token in self.suppress_tokens],
        }
        keys = GENERATION_KEYS | ({name: name for name in SAMPLING_KEYS} if self.sample else {})
        for name, key in keys.items():
            value = getattr(self, name)
            written[key] = None if value == getattr(type(self), name) else value
        if self.sample:
            written |= {"do_sample": True, "top_k": self.top_k or 0}
        return {key: value for key, value in written.items() if value not in (None, [])}


def _length(hf: HFConfig, name: str, published: Published) -> Any:
    """Return a number of new tokens; older files count the start token too, as `max_length` or `min_length`."""
    key = name.replace("new_tokens", "length")
    new, length = hf.get(name), hf.get(key)
    if new is not None or published.start is None or length is None:
        return new
    if type(length) is not int:
        raise ConfigError(f"{key} must be a whole number, but {length!r} was given")
    return length - 1 if name == "max_new_tokens" else max(0, length - 1)


def _unsupported(hf: HFConfig, sample: bool) -> Iterator[str]:
    for key, neutral in (NEUTRAL | NEUTRAL_SAMPLING if sample else NEUTRAL).items():
        if hf.get(key) and hf[key] != neutral:
            yield f"{key} with do_sample" if key == "num_beams" else key
