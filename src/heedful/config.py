"""Configurations: frozen, keyword-only dataclasses with strict reading and writing. This module imports no torch.

Every field is checked against its type when a config is created, in Python or from a file: an unknown key, a wrong
type or an invalid combination is a ConfigError that says what was given and what is allowed.
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin, get_type_hints

import yaml

from .errors import ConfigError, unknown
from .files import read_limited, write_text


@dataclass(frozen=True, kw_only=True)
class Config:
    """The base of every config. A field may be a config itself; `title` is the config's name in messages."""

    title: ClassVar[str]
    renamed: ClassVar[Mapping[str, str]] = {}  # former names of fields, for messages

    def __new__(cls, **values: Any) -> Self:
        """Check the keys here, before Python's TypeError, so that the error can suggest the nearest name."""
        names = [field.name for field in fields(cls)]
        for key in values:
            if key not in names and key in cls.renamed:
                raise ConfigError(f"{cls.title}: {key!r} is now called {cls.renamed[key]!r}")
            if key not in names:
                raise ConfigError(f"{cls.title}: {unknown('key', key, names)}")
        return super().__new__(cls)

    def __post_init__(self) -> None:
        hints = _hints(type(self))  # type: ignore[arg-type]  # mypy takes the class for an unhashable object
        for field in fields(self):
            value = _convert(getattr(self, field.name), hints[field.name], f"{self.title}.{field.name}")
            object.__setattr__(self, field.name, value)
        self.check()

    def check(self) -> None:
        """Raise ConfigError for values that are out of range or do not fit together."""

    def require(self, condition: bool, message: str) -> None:
        """Raise ConfigError with this message if the condition does not hold."""
        if not condition:
            raise ConfigError(f"{self.title}: {message}")

    def require_positive(self, *names: str) -> None:
        """Require that these fields are at least 1 or None."""
        for name in names:
            value = getattr(self, name)
            self.require(value is None or value >= 1, f"{name} must be at least 1, not {value}")

    def require_share(self, *names: str) -> None:
        """Require that these fields are at least 0 and below 1."""
        for name in names:
            self.require(0 <= getattr(self, name) < 1, f"{name} must be from 0 to below 1, not {getattr(self, name)}")

    def require_divisible(self, name: str, by: str, hint: str = "change one") -> None:
        """Require that one field is a multiple of another, which may be None."""
        number, divisor = getattr(self, name), getattr(self, by)
        is_divisible = divisor is None or number % divisor == 0
        self.require(is_divisible, f"{name}={number} is not divisible by {by}={divisor}; {hint}")

    def changed(self, **changes: Any) -> Self:
        """Return a copy with some fields changed, checked again."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict; a config in a field becomes a nested dict."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.to_dict() if isinstance(value, Config) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the config for a dict of `to_dict`; missing keys take their defaults."""
        for key in values:
            if not isinstance(key, str):
                raise ConfigError(f"{cls.title}: a key must be text, but {key!r} ({type(key).__name__}) was given")
        for field in fields(cls):
            if field.name not in values and field.default is MISSING and field.default_factory is MISSING:
                raise ConfigError(f"{cls.title}: {field.name} is missing")
        return cls(**values)

    def save(self, path: str | Path) -> None:
        """Write JSON or YAML, depending on the file name's ending."""
        write_mapping(path, self.to_dict())


class FamilyConfig(Config):
    """The base of every family's config. `family` is the tag that identifies the family in files."""

    family: ClassVar[str]

    def __init_subclass__(cls) -> None:
        cls.title = getattr(cls, "family", cls.__name__)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as a dict, the family's tag first."""
        return {"family": self.family, **super().to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the config for a dict of `to_dict`; missing keys take their defaults."""
        remaining = dict(values)
        tag = remaining.pop("family", cls.family)
        if tag != cls.family:
            raise ConfigError(f"this is a config of the family {tag!r}, not of {cls.family!r}")
        return super().from_dict(remaining)


_hints = cache(get_type_hints)  # finding the types of a class's fields takes longer than all checks


def _convert(value: Any, kind: Any, where: str) -> Any:
    """Return the value as `kind`, converting only int to float and list to tuple, or raise ConfigError."""
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
            raise _wrong_type(value, tuple, where)
        return tuple(_convert(item, arguments[0], f"{where}[{index}]") for index, item in enumerate(value))
    if isinstance(kind, type) and issubclass(kind, Config) and isinstance(value, Mapping):
        return kind.from_dict(value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if not -sys.float_info.max <= value <= sys.float_info.max:
            raise ConfigError(f"{where} must be a finite number, not {value}")
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _wrong_type(value, kind, where)
    return value


def _wrong_type(value: Any, kind: type, where: str) -> ConfigError:
    names = {tuple: "a list", int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    expected = names.get(kind, "a mapping")
    return ConfigError(f"{where} must be {expected}, but {value!r} ({type(value).__name__}) was given")


FILE_ENDINGS = (".json", ".yaml", ".yml")
MAX_BYTES = 16 << 20  # of a file
MAX_VALUES = 100_000  # of a YAML file


def read_mapping(path: str | Path) -> dict[str, Any]:
    """Read a JSON or YAML file as a dict; a repeated key is an error."""
    path = Path(path)
    read = partial(json.loads, object_pairs_hook=_unique) if _ending(path) == ".json" else _read_yaml
    try:
        values = read(read_limited(path, MAX_BYTES).decode("utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError) as error:  # of the parsers
        raise ConfigError(f"{path}: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: a config file must contain keys and values, not {type(values).__name__}")
    return values


def write_mapping(path: str | Path, values: Mapping[str, Any]) -> None:
    """Write a dict as JSON or YAML, depending on the file name's ending, atomically."""
    path = Path(path)
    if _ending(path) == ".json":
        text = json.dumps(values, indent=2, ensure_ascii=False) + "\n"
    else:
        text = yaml.safe_dump(_plain(values), sort_keys=False, allow_unicode=True)
    write_text(path, text)


def assign(values: dict[str, Any], assignment: str) -> None:
    """Apply an assignment such as "training.steps=20000" to nested values; the value is parsed as YAML."""
    path, sign, text = assignment.partition("=")
    *above, last = path.strip().split(".")
    if not sign or not all([*above, last]):
        raise ConfigError(f"a setting must look like training.steps=20000, not {assignment!r}")
    for name in above:
        values = values.setdefault(name, {})
        if not isinstance(values, dict):
            raise ConfigError(f"{assignment!r}: {name} is a single value and has no {last}")
    try:
        values[last] = _read_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{assignment!r:.200}: {' '.join(str(error).split())}") from None


def _ending(path: Path) -> str:
    ending = path.suffix.lower()
    if ending not in FILE_ENDINGS:
        raise ConfigError(f"{path}: a config file must end in .json, .yaml or .yml, not {ending or 'nothing'!r}")
    return ending


def _plain(value: Any) -> Any:
    """Convert tuples to lists, since safe YAML has no tuples."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _unique(pairs: list[tuple[Any, Any]]) -> dict[Any, Any]:
    values: dict[Any, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ConfigError(f"the key {key!r} is given twice")
        values[key] = value
    return values


class _StrictLoader(yaml.SafeLoader):
    """A loader of safe YAML that refuses a repeated key, limits what aliases repeat, and reads 1e-4 as a number."""

    _sizes: dict[int, int] | None = None

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Return the next node; ConfigError if the document has too many values with every alias written out."""
        self._sizes = {} if self._sizes is None else self._sizes
        node = super().compose_node(parent, index)
        if node is None:
            return None
        if id(node) not in self._sizes:  # not an alias of an earlier one
            children = node.value if isinstance(node, yaml.CollectionNode) else ()
            parts = [part for child in children for part in (child if isinstance(child, tuple) else (child,))]
            self._sizes[id(node)] = 1 + sum(self._sizes.get(id(part), MAX_VALUES) for part in parts)
        if max(self._sizes[id(node)], len(self._sizes)) > MAX_VALUES:
            raise ConfigError(f"more than {MAX_VALUES:,} values, where each alias counts as what it repeats")
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        names = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        _unique([(name, None) for name in names if isinstance(name, str)])
        return super().construct_mapping(node, deep=True)


_StrictLoader.add_constructor("tag:yaml.org,2002:map", _StrictLoader.construct_mapping)
_StrictLoader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?[0-9][0-9_]*(\.[0-9_]*)?[eE][-+]?[0-9]+$"), list("-+0123456789")
)


def _read_yaml(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_StrictLoader)  # a SafeLoader, which creates plain values only
    except (KeyError, AttributeError):  # so the library reports some values with a tag, such as !!bool 7
        raise ValueError("a value is not what its tag says") from None
