"""Texts with a class each, from tables and JSON lines, one by one; and which columns or keys hold them."""

import codecs
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from ..errors import ConfigError
from .pairs import TextExample
from .readers.files import InputFile, find_files, suffix_of
from .readers.tables import ARRAY, array_hint, is_jsonl, table_rows
from .report import SplitReport, TextReport

TEXT, LABEL, OTHER = "text", "label", "-"
LINES = (".jsonl", ".ndjson")
ENDINGS = (".tsv", ".tab", ".txt", ".csv", *LINES)

# What headers usually say, the likeliest first.
PAIRS = (
    *(("text1", "text2"), ("text_a", "text_b"), ("sentence1", "sentence2"), ("sentence_a", "sentence_b")),
    *(("premise", "hypothesis"), ("question1", "question2"), ("question", "sentence")),
)
TEXTS = (
    *(TEXT, "texts", "document", "sentence", "review", "comment", "content", "body", "message", "utterance"),
    *("question", "query", "title", "headline", "tweet", "본문", "문장", "내용", "리뷰", "텍스트"),
)
LABELS = (
    *(LABEL, "labels", "class", "category", "target", "sentiment", "intent", "emotion", "topic", "gold_label"),
    *("tag", "rating", "라벨", "레이블", "분류", "감정"),
)


class ColumnPlaces(NamedTuple):
    """The columns of one or two texts and of the label."""

    texts: tuple[int, ...]
    label: int


@dataclass(frozen=True)
class TextColumns:
    """`names` are those of the header, the label's last; `order` says what columns without a header hold.

    With neither, the header's names must be among the usual ones.
    """

    names: tuple[str, ...] = ()
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Sequence[str] | None) -> Self:
        """Parse the setting: ("review", "stars") by name, or ("label", "-", "text") by order."""
        names = tuple(word.strip() for word in columns or ())
        if not names:
            return cls()
        if set(names) <= {TEXT, LABEL, OTHER}:
            if names.count(LABEL) != 1 or names.count(TEXT) not in (1, 2):
                raise ConfigError(f"--columns {','.join(names)}: there are one or two texts and one label")
            return cls(order=names)
        if len(names) not in (2, 3) or not all(names):
            raise ConfigError(
                f"--columns {','.join(names)}: give the names of one or two texts, then the label's (review,stars), "
                f"or for columns without names what each holds: {TEXT}, {LABEL}, or {OTHER} for something else"
            )
        return cls(names=names)

    def in_header(self, header: Sequence[str]) -> ColumnPlaces | None:
        """Return the columns that a header names, or None if it names none."""
        index = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
        if self.names:
            places = [index.get(name.lower()) for name in self.names]
            present = [place for place in places if place is not None]
            return ColumnPlaces(tuple(present[:-1]), present[-1]) if len(present) == len(places) else None
        label = next((index[name] for name in LABELS if name in index), None)
        pair = next(
            ((index[first], index[second]) for first, second in PAIRS if first in index and second in index), None
        )
        single = next(((index[name],) for name in TEXTS if name in index), None)
        texts = pair or single
        return None if label is None or texts is None else ColumnPlaces(texts, label)

    def in_order(self) -> ColumnPlaces | None:
        """Return the columns by their order, or None if no order is set."""
        if not self.order:
            return None
        texts = tuple(place for place, role in enumerate(self.order) if role == TEXT)
        return ColumnPlaces(texts, self.order.index(LABEL))

    def missing(self, header: Sequence[str]) -> str:
        """Return the error message for columns that were not found."""
        there = {name.strip().lower() for name in header}
        absent = [name for name in self.names if name.lower() not in there]
        wanted = f"named {', '.join(absent)}" if absent else "named as a text's and a label's usually are"
        listed = ", ".join(repr(name[:40]) for name in header[:12]) + (", …" if len(header) > 12 else "")
        return (
            f"no columns are {wanted}; there are {listed or 'none'}. "
            f"Name them, the label last: --columns review,stars; or where there is no header, "
            f"say what each column holds: --columns {TEXT},{LABEL}"
        )


@dataclass(frozen=True, slots=True)
class LabeledText(TextExample):
    """A text, or a pair of texts, with its class and its place in a file."""

    text: str
    second: str | None
    label: str
    file: str
    line: int

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,) if self.second is None else (self.text, self.second)


class TextRow(NamedTuple):
    """The cells of one row in the selected columns, unconverted: JSON may have any value as the label."""

    file: InputFile
    line: int
    texts: list[str]
    label: Any


def labeled_files(paths: Iterable[str | Path], report: SplitReport | None = None) -> list[Path]:
    """Return every file to read for these paths; in a folder, those with a known ending, packed or not."""
    return find_files(paths, ENDINGS, report, "table of texts")


def read_labeled_texts(
    paths: str | Path | Iterable[str | Path], *, columns: Sequence[str] | None = None, reading: TextReport | None = None
) -> Iterator[LabeledText]:
    """The labeled texts of files and folders, streamed; `reading` is told what is found and what is left out.

    Without `columns` (see TextColumns.of), a header or the keys of JSON lines say where text and label are.

    >>> read_labeled_texts("reviews.csv", columns=("review", "stars"))
    """
    reading = TextReport() if reading is None else reading
    path_list = [paths] if isinstance(paths, str | Path) else paths
    text_columns = TextColumns.of(columns)
    return _labeled(read_rows(path_list, text_columns, reading), reading)


def read_rows(paths: Iterable[str | Path], columns: TextColumns, reading: SplitReport) -> Iterator[TextRow]:
    """Yield the rows of files and folders; `reading` counts files and unusable rows."""
    return _stream([InputFile(path, reading) for path in labeled_files(paths, reading)], columns)


def sorted_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Return every label once, sorted; by value if all are numbers."""
    names = sorted(set(labels))
    try:
        worth = {name: float(name) for name in names}
    except ValueError:
        return tuple(names)
    return tuple(sorted(names, key=worth.__getitem__) if all(map(math.isfinite, worth.values())) else names)


def _labeled(rows: Iterable[TextRow], reading: TextReport) -> Iterator[LabeledText]:
    for file, number, texts, value in rows:
        label = _label(file, number, value)
        file.check_unicode(number, *texts, label)
        if not all(text.strip() for text in texts):
            file.drop("empty text", number)
        elif not label.strip():
            file.drop("no label", number)
        else:
            pair = file.pair(texts[0], label.strip(), number)
            example = LabeledText(pair.source, texts[1] if len(texts) > 1 else None, pair.target, pair.file, pair.line)
            reading.keep("\t".join(example.texts), label=example.label)
            yield example


def _stream(files: Sequence[InputFile], columns: TextColumns) -> Iterator[TextRow]:
    """Their formats are known by content where that is certain, then by name."""
    for file in files:
        head = file.head().removeprefix(codecs.BOM_UTF8)
        if not head.strip():
            raise file.error("the file is empty")
        if is_jsonl(head) or suffix_of(file.path) in LINES:
            file.begin("JSON lines")
            yield from _of_lines(file, columns)
        elif ARRAY.match(head):
            raise file.error(array_hint(file.path))
        elif rows := table_rows(file, head):
            yield from _of_table(file, columns, rows)
        else:
            raise file.error(f"not a table of texts: its lines have no tabs; the endings read are {', '.join(ENDINGS)}")


def _of_table(file: InputFile, columns: TextColumns, rows: Iterable[tuple[int, list[str]]]) -> Iterator[TextRow]:
    places, width = None, 0
    for number, cells in rows:
        if places is None:
            width, header = len(cells), columns.in_header(cells)
            places = _column_places(file, number, cells, header, columns)
            if header is not None:
                continue
        if len(cells) != width:
            file.drop("too few columns" if len(cells) < width else "too many columns", number)
            continue
        yield TextRow(file, number, [cells[place] for place in places.texts], cells[places.label])


def _column_places(
    file: InputFile, number: int, cells: Sequence[str], header: ColumnPlaces | None, columns: TextColumns
) -> ColumnPlaces:
    ordered = columns.in_order()
    if ordered is not None and max(ordered.label, *ordered.texts) >= len(cells):
        raise file.error(f"--columns {','.join(columns.order)}: there are only {len(cells)} columns", number)
    if header is not None and ordered is not None and header != ordered:
        order = ",".join(columns.order)
        raise file.error(f"the header names the columns {','.join(cells)}, but {order} was asked for", number)
    places = header or ordered
    if places is None:
        raise file.error(columns.missing(cells), number)
    return places


def _of_lines(file: InputFile, columns: TextColumns) -> Iterator[TextRow]:
    """Read objects with the keys of the first one; null and absent values count as missing."""
    texts: list[str] | None = None
    label = ""
    for number, row in file.json_rows():
        if texts is None:
            keys = list(row)
            places = columns.in_header(keys)
            if places is None:
                raise file.error(columns.missing(keys), number)
            texts, label = [keys[place] for place in places.texts], keys[places.label]
        values = [row.get(key) for key in texts]
        for key, value in zip(texts, values, strict=True):
            if not isinstance(value, str | None):
                raise file.error(f"a text was expected under {key!r}, not {type(value).__name__}", number)
        yield TextRow(file, number, [value or "" for value in values], row.get(label))


def _label(file: InputFile, number: int, value: Any) -> str:
    if isinstance(value, list | dict):
        raise file.error(f"one label was expected, not a {type(value).__name__}; a text has one class here", number)
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value)


def text_digest(*texts: str) -> bytes:
    """Return the digest that identifies a text for the validation split; several texts never equal one."""
    raw = [text.encode() for text in texts]
    if len(raw) == 1:
        return hashlib.blake2b(raw[0], digest_size=8).digest()
    combined = b"".join(b"%d:%b" % (len(part), part) for part in raw)
    return hashlib.blake2b(combined, digest_size=8, person=b"several").digest()
