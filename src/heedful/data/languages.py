"""Language codes: how they match, what they are called, and in which script a language is written."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources

from ..errors import DataError
from .columns import are_numbers

CODE = re.compile(r"[a-z]{2,3}([-_][a-z0-9]{1,8})*", re.IGNORECASE)

_TABLE = json.loads(resources.files("heedful.data").joinpath("languages.json").read_text(encoding="utf-8"))

# The letters of each script, and the languages written in it alone; a language that is in none is not checked.
SCRIPTS: dict[str, re.Pattern[str]] = {name: re.compile(row["letters"]) for name, row in _TABLE["scripts"].items()}
_SCRIPT_OF = {code: name for name, row in _TABLE["scripts"].items() for code in row["languages"].split()}


def script_of(code: str) -> str | None:
    """Return the one script a language is written in, a key of SCRIPTS, or None if unknown."""
    return _SCRIPT_OF.get(_parts(code)[0])


def matches(language: str, tag: str) -> bool:
    """Return True if a tag is of the language: ko matches ko and ko-KR, pt-BR matches pt_BR and not pt."""
    parts = _parts(language)
    return _parts(tag)[: len(parts)] == parts


def _parts(code: str) -> list[str]:
    return re.split("[-_.@]", code.strip().lower())  # gettext also writes ko_KR.UTF-8 and sr@latin


@dataclass(frozen=True)
class Languages:
    """The translation direction. `columns` names the languages of unnamed columns in their order."""

    source: str
    target: str
    columns: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for code in (self.source, self.target):
            if not CODE.fullmatch(code):
                raise DataError(f"{code!r} is not a language code; it looks like ko, en or pt-BR")
        if matches(self.source, self.target) or matches(self.target, self.source):
            raise DataError(f"source and target are the same language: {self.source!r} and {self.target!r}")
        if self.places(self.order) is None:
            raise DataError(
                f"the columns {','.join(self.columns)} do not name both languages; say for example "
                f"{self.source},{self.target} or {self.target},{self.source}, and anything for a column to leave out, "
                f"or give the numbers of the two columns, {self.source} first: 2,1"
            )

    def __str__(self) -> str:
        return f"{self.source} and {self.target}"

    @property
    def order(self) -> tuple[str, ...]:
        """The languages of unnamed columns: by default the source first."""
        return self.columns or (self.source, self.target)

    def knows(self, word: str) -> bool:
        """Return True if a word is a language code: one of these two or one in the table."""
        return any(matches(wanted, word) for wanted in (self.source, self.target)) or script_of(word) is not None

    def places(self, names: Sequence[str]) -> tuple[int, int] | None:
        """Return where source and target stand among these names, or None; two numbers say it, counted from 1."""
        if names == self.columns and len(names) == 2 and are_numbers(names):
            return int(names[0]) - 1, int(names[1]) - 1
        source = next((place for place, name in enumerate(names) if _names(self.source, name)), None)
        target = next((place for place, name in enumerate(names) if _names(self.target, name)), None)
        return None if source is None or target is None or source == target else (source, target)

    def guess(self, columns: Mapping[int, Sequence[str]]) -> tuple[int, int] | None:
        """Return the columns of source and target among columns of texts, by their scripts; the source comes first."""
        places: list[int] = []
        for code in (self.source, self.target):
            script = script_of(code)
            suitable = (
                place
                for place, cells in columns.items()
                if script is None or 2 * sum(bool(SCRIPTS[script].search(cell)) for cell in cells) >= len(cells)
            )
            places += [next((place for place in suitable if place not in places), -1)]
        return None if -1 in places else (places[0], places[1])

    def keys(self, names: Sequence[str]) -> tuple[int, int] | None:
        """Return the same as `places`; names such as source and target count too, with the languages of `order`."""
        lowered = [name.strip().lower() for name in names]
        for first, second in (("source", "target"), ("src", "tgt")):
            if first in lowered and second in lowered:
                source, target = self.places(self.order) or (0, 1)
                both = (self.source, self.target) if source < target else (self.target, self.source)
                lowered[lowered.index(first)], lowered[lowered.index(second)] = both
                break
        return self.places(names) or self.places(lowered)


def _names(wanted: str, name: str) -> bool:
    name = name.strip().lower()
    return matches(wanted, name) or name in _TABLE["names"].get(_parts(wanted)[0], "").split()  # beside its code
