"""Which columns of a table, or keys of JSON objects, hold what a task reads: by name, number or order, or guessed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from ..errors import ConfigError, DataError

OTHER = "-"  # in an order of columns, what is not read
FEW, MANY = 5, 20  # rows that say nothing about what is usual, and rows that say much
BEGINNING = 8  # characters; where most cells share them, they are some remark
HEADER_WORDS = 3  # that the name of a column has at most


class ColumnPlaces(NamedTuple):
    """The columns of the texts (two that belong together, or one and its prefix) and of the label or target."""

    texts: tuple[int, ...]
    label: int


class Selected(NamedTuple):
    """The selected columns, whether the first row names them, what was guessed, and what is probably wrong."""

    places: ColumnPlaces
    has_header: bool
    note: str
    caution: str


@dataclass(frozen=True)
class TableKind:
    """What the tables of a task hold: a text and a class, or a text and another one, perhaps with a prefix."""

    text: str
    label: str
    names: Mapping[str, Sequence[str]]  # the usual ones in headers, the likeliest first
    example: str  # of names for --columns
    prefix: str | None = None  # what may stand before a text; without it, labels are classes, also of two texts
    pairs: Sequence[tuple[str, str]] = ()  # usual names of two texts

    def roles(self, count: int) -> tuple[str, ...]:
        """Return what two or three columns are, in the order of --columns."""
        several = (self.text, self.text, self.label) if self.prefix is None else (self.text, self.label, self.prefix)
        return several if count == 3 else (self.text, self.label)

    def places(self, roles: Mapping[int, str]) -> ColumnPlaces | None:
        """Return the columns in the order of their use; None without a text or a label."""
        texts = [place for role in (self.text, self.prefix) for place, each in roles.items() if each == role]
        label = next((place for place, role in roles.items() if role == self.label), None)
        return None if label is None or self.text not in roles.values() else ColumnPlaces(tuple(texts), label)


class ColumnProfile:
    """What the cells of a column are like. Numbers are no texts."""

    def __init__(self, cells: Sequence[Any]) -> None:
        self.cells = [str(cell) if isinstance(cell, str | int | float) else "" for cell in cells]
        self.n, self.distinct = len(cells), len({*self.cells})
        self.length = sum(map(len, self.cells)) / self.n
        self.repeats = 2 * self.distinct <= self.n  # as classes do
        alike = Counter(cell[:BEGINNING] for cell in self.cells).most_common(1)[0][1]
        self.is_text = 2 * sum(any(map(str.isalpha, cell)) for cell in self.cells) > self.n
        self.is_remark = 2 * alike > self.n >= FEW  # such as an attribution
        self.is_odd = not self.is_text and self.n >= MANY


@dataclass(frozen=True)
class ColumnSelection:
    """The option --columns for a kind of table: names (or numbers from 1), or what each column in `order` holds.

    With neither, the header's names must be among the usual ones, or the columns are guessed.
    """

    kind: TableKind
    names: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, kind: TableKind, columns: Sequence[str] | None) -> Self:
        """Parse the option: ("review", "stars") by name, ("2", "1") by number, or ("label", "-", "text") by order."""
        names = tuple(column.strip() for column in columns or ())
        two, three = kind.roles(2), kind.roles(3)
        if sorted(role for role in names if role != OTHER) in (sorted(two), sorted(three)):
            return cls(kind, order=names)
        are_distinct = len({*names} - {""}) == len(names) in (2, 3)
        if names and (not are_distinct or {*names} <= {*two, *three, OTHER}):
            raise ConfigError(
                f"--columns {','.join(names)}: give the names ({kind.example}) or numbers (2,1) of {' and '.join(two)} "
                f"or {', '.join(three)}; or say for each column which it holds, and {OTHER} for something else"
            )
        return cls(kind, names=names)

    def select(self, header: Sequence[str], rows: Sequence[Sequence[Any]], *, has_keys: bool = False) -> Selected:
        """Select the columns of a table from its first row, or its keys, and some of the next rows, all as wide.

        Raises:
            DataError: The columns are not there, or cannot be guessed.
        """
        kind, profiles = self.kind, [ColumnProfile(cells) for cells in zip(*(rows or [header]), strict=True)]
        index = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
        roles = self._roles_by_name(index)
        in_header, by_option = kind.places(roles), kind.places(dict(enumerate(self.order)))
        if len(self.order) > len(header):
            order = ",".join(self.order)
            raise DataError(f"{order}: there are only {len(header)} columns; {self._remedy(header, profiles)}")
        if by_option and in_header and by_option != in_header:
            order = ",".join(self.order)
            raise DataError(f"the header names the columns {','.join(header)}, but {order} was asked for; leave it out")
        if self.names:
            numbers = {str(number): number - 1 for number in range(1, len(header) + 1)} | index
            if absent := [name for name in self.names if name.lower() not in numbers]:
                raise DataError(f"no columns are named {', '.join(absent)}; {self._remedy(header, profiles)}")
            columns = [numbers[name.lower()] for name in self.names]
            by_option = kind.places(dict(zip(columns, kind.roles(len(columns)), strict=True)))
            has_keys = has_keys or any(name.lower() in index for name in self.names)
        if in_header is None and rows and not has_keys:  # a name that stands in other rows too is none
            roles = {place: role for place, role in roles.items() if header[place] not in profiles[place].cells}
        places = by_option or in_header
        guesses: list[tuple[int, int]] = []
        if places is None:
            guesses = list(self._guesses(profiles, {role: place for place, role in reversed(roles.items())}))
            if len(guesses) != 1:
                usually = f"named as a {kind.text}'s and a {kind.label}'s usually are"
                raise DataError(f"no columns are {usually}; {self._remedy(header, profiles)}")
            places = kind.places({**roles, guesses[0][0]: kind.text, guesses[0][1]: kind.label})
        assert places is not None  # it has a text and a label
        has_header = has_keys or bool(roles) or self._is_header(header, profiles, places)
        note = ""
        for text, label in guesses:
            note = (
                f"guessed: column {text + 1} ({header[text]!r:.40}) is the {kind.text}, column {label + 1} "
                f"({header[label]!r:.40}) the {kind.label}, and the first row is "
                f"{'a header' if has_header else 'an example'} (the other way round: --columns {label + 1},{text + 1})"
            )
        return Selected(places, has_header, note, self._doubt(header, profiles, places))

    def _roles_by_name(self, index: Mapping[str, int]) -> dict[int, str]:
        """Return what the columns with usual names hold; an order that has no prefix leaves it out."""
        ignored = self.kind.prefix if self.order and self.kind.prefix not in self.order else None
        pair = next(((a, b) for a, b in self.kind.pairs if a in index and b in index), ())
        roles = {index[name]: self.kind.text for name in pair}
        for role, names in self.kind.names.items():
            place = next((index[name] for name in names if name in index), None)
            if place is not None and role != ignored and role not in roles.values():
                roles.setdefault(place, role)
        return roles

    def _guesses(self, profiles: Sequence[ColumnProfile], fixed: Mapping[str, int]) -> Iterator[tuple[int, int]]:
        """Yield the columns that could be the text and the label; those with usual names are known."""
        free = [place for place in range(len(profiles)) if place not in fixed.values()]
        texts = [place for place in texts_among(profiles) if place in free]
        text, label = fixed.get(self.kind.text), fixed.get(self.kind.label)
        if self.kind.prefix is not None:
            rest = free if len(profiles) == 2 else texts
            if len(rest) == (text is None) + (label is None):
                yield rest[0] if text is None else text, rest[-1] if label is None else label
            return
        texts = [place for place in free if profiles[place].is_text and not profiles[place].repeats] or texts
        longest = max((profiles[place].length for place in texts), default=0)
        texts = [place for place in texts if 2 * profiles[place].length > longest] if text is None else [text]
        labels = [
            place for place in free if profiles[place].repeats and (profiles[place].distinct > 1 or len(free) < 3)
        ]
        labels = labels or [place for place in free if len(profiles) == 2 and profiles[place].n < MANY]
        for first in texts:
            for second in labels if label is None else [label]:
                a, b = profiles[first], profiles[second]
                if first != second and (a.distinct, a.length) > (b.distinct, b.length):
                    yield first, second

    def _is_header(self, header: Sequence[str], profiles: Sequence[ColumnProfile], places: ColumnPlaces) -> bool:
        """Whether a first row without usual names is a header: its label is none of the classes, its text is short."""
        text, label = header[places.texts[0]], profiles[places.label]
        is_new = label.repeats and label.n >= FEW and header[places.label] not in label.cells
        is_short = len(text.split()) <= HEADER_WORDS and len(text) < profiles[places.texts[0]].length
        return self.kind.prefix is None and is_new and is_short

    def _doubt(self, header: Sequence[str], profiles: Sequence[ColumnProfile], places: ColumnPlaces) -> str:
        """Return a warning if a column obviously holds something else than what it is read as."""
        text, label = places.texts[0], places.label
        others = [place for place in texts_among(profiles) if place not in (text, label)]
        others += [label] if self.kind.prefix is None and profiles[label].is_text else []
        better = next(iter(others), None)
        if profiles[text].is_odd and better is not None:
            other = text if better == label else label
            return (
                f"column {text + 1}, read as the {self.kind.text}, has no words ({profiles[text].cells[0]!r:.40}), but "
                f"column {better + 1} does; if that is the {self.kind.text}: --columns {better + 1},{other + 1}"
            )
        if (
            self.kind.prefix is None
            and profiles[label].n >= MANY
            and profiles[label].distinct > 0.9 * profiles[label].n
        ):
            return (
                f"nearly every row has a {self.kind.label} of its own in column {label + 1}, such as "
                f"{profiles[label].cells[0]!r:.40}; if these are no classes, say which are: --columns {text + 1},…"
            )
        return ""

    def _remedy(self, header: Sequence[str], profiles: Sequence[ColumnProfile]) -> str:
        """Return what columns there are, and an option that selects two."""
        there = "there are " + ", ".join(f"{place} {name!r:.40}" for place, name in enumerate(header, 1))
        if len(header) < 2:
            return f"{there}, and two are needed"
        text, *rest = sorted(range(len(header)), key=lambda place: -profiles[place].length)
        label = min(rest, key=lambda place: (profiles[place].distinct == 1, profiles[place].distinct))
        text, label = (text, label) if self.kind.prefix is None else sorted((text, rest[0]))
        return (
            f"{there}. Give the names or numbers of the {self.kind.text} and the {self.kind.label}, in this order: "
            f"--columns {text + 1},{label + 1}"
        )


def texts_among(profiles: Sequence[ColumnProfile]) -> list[int]:
    """Return the columns of texts; of more than two, those that are no remarks."""
    texts = [place for place, profile in enumerate(profiles) if profile.is_text]
    real = [place for place in texts if not profiles[place].is_remark]
    return real if len(texts) > 2 <= len(real) else texts


def are_numbers(columns: Sequence[str] | None) -> bool:
    """Whether columns are given by numbers that count from 1."""
    return bool(columns) and all(name.isdecimal() and int(name) > 0 for name in columns or ())
