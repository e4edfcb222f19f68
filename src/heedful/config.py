"""Configurations: frozen, keyword-only dataclasses, strict on the way in and on the way out. No torch here.

Every field is checked against its type when a config is made, from Python as from a file: a wrong key,
a wrong type or an impossible pair is a ConfigError that says what was given and what is allowed.
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import yaml

from .errors import ConfigError, unknown
from .files import write_text


@dataclass(frozen=True, kw_only=True)
class Config:
    """The base of every config. A field may be a config itself; `title` is how messages call it."""

    title: ClassVar[str]
    renamed: ClassVar[Mapping[str, str]] = {}  # former names of fields, for messages

    def __new__(cls, **values: Any) -> Self:
        """Before Python's own complaint about a keyword: ours, with the nearest name."""
        _refuse_unknown_keys(cls, values)
        return super().__new__(cls)

    def __post_init__(self) -> None:
        hints = _hints(type(self))  # type: ignore[arg-type]  # a class has the hash of classes, not that of its objects
        for field in fields(self):
            value = _convert(getattr(self, field.name), hints[field.name], f"{self.title}.{field.name}")
            object.__setattr__(self, field.name, value)
        self.check()

    def check(self) -> None:
        """Raise ConfigError for values that are each right and impossible together."""

    def require(self, holds: bool, message: str) -> None:
        """For `check`: refuse with the title in front."""
        if not holds:
            raise ConfigError(f"{self.title}: {message}")

    def require_positive(self, *names: str) -> None:
        """For `check`: these fields are at least 1, or None where that is allowed."""
        for name in names:
            value = getattr(self, name)
            self.require(value is None or value >= 1, f"{name} must be at least 1, not {value}")

    def require_share(self, *names: str) -> None:
        """For `check`: these fields are from 0 to below 1."""
        for name in names:
            self.require(0 <= getattr(self, name) < 1, f"{name} must be from 0 to below 1, not {getattr(self, name)}")

    def require_divisible(self, name: str, by: str, hint: str = "change one") -> None:
        """For `check`: one field is a multiple of another, which may be None."""
        whole, part = getattr(self, name), getattr(self, by)
        self.require(part is None or whole % part == 0, f"{name}={whole} is not divisible by {by}={part}; {hint}")

    def changed(self, **changes: Any) -> Self:
        """The same config with some fields changed, checked again."""
        _refuse_unknown_keys(type(self), changes)
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; a config within becomes a dict within."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.to_dict() if isinstance(value, Config) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config that `to_dict` wrote; missing keys take their defaults."""
        for key in values:
            if not isinstance(key, str):
                raise ConfigError(f"{cls.title}: a key is text, but {key!r} ({type(key).__name__}) was given")
        for field in fields(cls):
            if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
                raise ConfigError(f"{cls.title}: {field.name} is missing")
        return cls(**values)

    def save(self, path: str | Path) -> None:
        """Write JSON or YAML, by the name's ending."""
        write_mapping(path, self.to_dict())


class FamilyConfig(Config):
    """The base of every family's config. `family` is the tag by which a file says which one it holds."""

    family: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.title = getattr(cls, "family", cls.__name__)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, the family's tag first."""
        return {"family": self.family, **super().to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The config that `to_dict` wrote; missing keys take their defaults."""
        given = dict(values)
        tag = given.pop("family", cls.family)
        if tag != cls.family:
            raise ConfigError(f"this is a config of the family {tag!r}, not of {cls.family!r}")
        return super().from_dict(given)


def _refuse_unknown_keys(cls: type[Config], given: Mapping[str, Any]) -> None:
    known = [field.name for field in fields(cls)]
    for key in given:
        if key not in known and key in cls.renamed:
            raise ConfigError(f"{cls.title}: {key!r} is now called {cls.renamed[key]!r}")
        if key not in known:
            raise ConfigError(f"{cls.title}: {unknown('key', key, known)}")


@cache
def _hints(kind: type) -> dict[str, Any]:
    """What its fields may be; to find out takes longer than all checks."""
    return get_type_hints(kind)


def _convert(value: Any, kind: Any, where: str) -> Any:
    """The value as `kind`, or a ConfigError. The only changes made: int to float, list to tuple."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if value is None and NoneType in arguments:
            return None
        (inner,) = [argument for argument in arguments if argument is not NoneType]
        return _convert(value, inner, where)
    if origin is Literal:
        if value not in arguments:
            raise ConfigError(f"{where}: {unknown('value', value, map(str, arguments))}")
        return value
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise _wrong_type(value, "a list", where)
        return tuple(_convert(item, arguments[0], f"{where}[{index}]") for index, item in enumerate(value))
    if isinstance(kind, type) and issubclass(kind, Config) and isinstance(value, Mapping):
        return kind.from_dict(value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not -sys.float_info.max <= value <= sys.float_info.max:
            raise ConfigError(f"{where} must be a finite number, not {value}")
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong_type(
            value,
            {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(kind, "a mapping"),
            where,
        )
    return value


def _wrong_type(value: Any, wanted: str, where: str) -> ConfigError:
    return ConfigError(f"{where} must be {wanted}, but {value!r} ({type(value).__name__}) was given")


FILE_ENDINGS = (".json", ".yaml", ".yml")


def read_mapping(path: str | Path) -> dict[str, Any]:
    """A JSON or YAML file as a dict. A key given twice is an error, not the last one's win."""
    path = Path(path)
    read = _read_json if _ending(path) == ".json" else _read_yaml
    try:
        values = read(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError) as error:  # whatever a parser says
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: a config file holds keys and values, not {type(values).__name__}")
    return values


def write_mapping(path: str | Path, values: Mapping[str, Any]) -> None:
    """A dict as JSON or YAML, by the name's ending; the file is whole or not there."""
    path = Path(path)
    if _ending(path) == ".json":
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    else:
        text = yaml.safe_dump(_plain(values), sort_keys=False, allow_unicode=True)
    write_text(path, text)


def assign(values: dict[str, Any], assignment: str) -> None:
    """Put "training.steps=20000" into nested values; what stands behind the sign is read as YAML."""
    path, sign, text = assignment.partition("=")
    *above, last = path.strip().split(".")
    if not sign or not all([*above, last]):
        raise ConfigError(f"a setting looks like training.steps=20000, not {assignment!r}")
    for name in above:
        values = values.setdefault(name, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{assignment!r}: {name} is a single value and holds no {last}")
    try:
        values[last] = _read_yaml(text)
    except (yaml.YAMLError, ValueError) as error:
        raise ConfigError(f"{assignment!r}: {' '.join(str(error).split())}") from None


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in FILE_ENDINGS:
        raise ConfigError(f"{path}: a config file ends in .json, .yaml or .yml, not {ending or 'nothing'!r}")
    return ending


def _plain(value: Any) -> Any:
    """YAML's safe form knows lists, not tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _once(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ConfigError(f"the key {key!r} is given twice")
        found[key] = value
    return found


def _read_json(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_once)


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML that refuses a repeated key and reads 1e-4 as the number people mean."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        _once([(name, None) for name in names if isinstance(name, str)])
        return super().construct_mapping(node, deep=True)


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _StrictLoader.construct_mapping)
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _read_yaml(text: str) -> Any:
    return yaml.load(text, Loader=_StrictLoader)  # a SafeLoader: nothing but plain values can come out
