"""Texts with what they are to become, from tables and JSON lines, one by one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from ...data.labeled_texts import OTHER, ColumnPlaces, TextColumns, TextRow, read_rows
from ...data.pairs import Pair
from ...data.report import PairReport
from ...errors import ConfigError, DataError

SOURCE, TARGET, PREFIX = "source", "target", "prefix"
ROLES = {SOURCE, TARGET, PREFIX, OTHER}

# What headers usually say, the likeliest first.
SOURCES = (
    *(SOURCE, "input", "text", "document", "article", "dialogue", "question", "prompt", "content", "body"),
    *("본문", "원문", "질문"),
)
TARGETS = (
    *(TARGET, "output", "summary", "answer", "highlights", "response", "completion", "title", "headline"),
    *("요약", "번역", "답변", "제목"),
)
PREFIXES = (PREFIX, "task")
NAMED = 20  # prefixes that a reading lists


@dataclass(frozen=True, slots=True)
class Example:
    """A text, what stands before it, what it is to become, and where it stood."""

    prefix: str
    source: str
    target: str
    file: str
    line: int

    @property
    def text(self) -> str:
        """What the model reads."""
        return self.prefix + self.source

    @property
    def pair(self) -> Pair:
        return Pair(self.text, self.target, self.file, self.line)


class ExampleColumns(TextColumns):
    """Where a row has its source and its target, and its prefix if it says one: `texts=(source, prefix)`.

    `names` are those of the header: source, target, prefix.
    """

    @classmethod
    def of(cls, given: Sequence[str] | None) -> Self:
        """As a person writes them: ("article", "summary") by name, or ("target", "-", "source") by order."""
        words = tuple(word.strip() for word in given or ())
        if not words:
            return cls()
        if set(words) <= ROLES:
            if words.count(SOURCE) != 1 or words.count(TARGET) != 1 or words.count(PREFIX) > 1:
                raise ConfigError(f"--columns {','.join(words)}: there are one {SOURCE} and one {TARGET}")
            return cls(order=words)
        if len(words) not in (2, 3) or not all(words):
            raise ConfigError(
                f"--columns {','.join(words)}: give the names of the source and the target (article,summary), and of "
                f"the prefix if there is one; or for columns without names what each holds: {SOURCE}, {TARGET}, "
                f"{PREFIX}, or {OTHER} for something else"
            )
        return cls(names=words)

    def in_header(self, header: Sequence[str]) -> ColumnPlaces | None:
        """Where a header has them; None where it does not name them. A prefix nobody asked for is left alone."""
        found = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
        usual = [SOURCES, TARGETS, () if self.order and PREFIX not in self.order else PREFIXES]
        wanted = [*((name.lower(),) for name in self.names), ()] if self.names else usual
        source, target, prefix = (next((found[name] for name in names if name in found), None) for names in wanted[:3])
        if source is None or target is None or (len(self.names) == 3 and prefix is None):
            return None
        return ColumnPlaces((source,) if prefix is None else (source, prefix), target)

    def in_order(self) -> ColumnPlaces | None:
        """Where columns without names have them, if that was said."""
        if not self.order:
            return None
        texts = tuple(self.order.index(role) for role in (SOURCE, PREFIX) if role in self.order)
        return ColumnPlaces(texts, self.order.index(TARGET))

    def missing(self, found: Sequence[str]) -> str:
        """What to say where they are not found."""
        wanted = f"named {', '.join(self.names)}" if self.names else "named as a source and a target usually are"
        listed = ", ".join(repr(name[:40]) for name in found[:12]) + (", …" if len(found) > 12 else "")
        return (
            f"no columns are {wanted}; there are {listed or 'none'}. Name them: --columns article,summary; "
            f"or where there is no header, say what each column holds: --columns {SOURCE},{TARGET}"
        )


class ExampleReading(PairReport):
    """As of pairs; and how often a column said each prefix, as a note."""

    def __init__(self) -> None:
        super().__init__()
        self.prefixes: Counter[str] = Counter()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a JSON file."""
        listed = ", ".join(f"{prefix!r} {count:,}" for prefix, count in self.prefixes.most_common(NAMED))
        more = ", …" if len(self.prefixes) > NAMED else ""
        notes = [f"prefixes: {listed}{more}"] if listed else []
        return super().to_dict() | {"notes": [*notes, *self._all_notes()]}


def read_examples(
    paths: Iterable[str | Path],
    *,
    columns: Sequence[str] | None = None,
    prefix: str = "",
    reading: ExampleReading | None = None,
) -> Iterator[Example]:
    """The examples of files and folders, streamed; `reading` is told what is found and what is left out.

    Without `columns` (see ExampleColumns.of), a header or the keys of JSON lines say where they are. `prefix` stands
    before every source, unless a column says one for each: that one is followed by a space. The white space around a
    text is left out.

    >>> read_examples(["news.csv"], columns=("article", "summary"), prefix="summarize: ")
    """
    reading = ExampleReading() if reading is None else reading
    return _kept(read_rows(paths, ExampleColumns.of(columns), reading), prefix, reading)


def _kept(rows: Iterable[TextRow], prefix: str, reading: ExampleReading) -> Iterator[Example]:
    for row in rows:
        source, *own = (text.strip() for text in row.texts)
        target = _text(row)
        if own and prefix:
            raise row.file.error(
                f"a column says what stands before each text, and so does the setting prefix={prefix!r}; leave out one "
                "of them (--columns names the columns to use)",
                row.line,
            )
        if fault := _fault(row, source, target, own):
            row.file.drop(fault, row.line)
            continue
        pair = row.file.pair(source, target, row.line)
        found = Example(f"{own[0]} " if own else prefix, pair.source, pair.target, pair.file, pair.line)
        reading.keep(*found.pair.texts)
        reading.prefixes.update([found.prefix] if own else [])
        yield found


def _text(row: TextRow) -> str:
    if not isinstance(row.label, str | None):
        raise row.file.error(f"a text was expected as the target, not {type(row.label).__name__}", row.line)
    return (row.label or "").strip()


def _fault(row: TextRow, source: str, target: str, own: Sequence[str]) -> str | None:
    """Why a row is of no use, if it is of none."""
    try:
        "".join((source, target, *own)).encode()
    except UnicodeEncodeError:
        raise DataError(
            f"{row.file.name}:{row.line}: half a surrogate pair stands in it; it was damaged where it was written"
        ) from None
    for what, text in ((SOURCE, source), (TARGET, target), *((PREFIX, text) for text in own)):
        if not text:
            return f"empty {what}"
    return None
