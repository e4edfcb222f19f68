"""Texts with a class each, from tables and JSON lines, one by one; and which columns or keys hold them."""

import codecs
import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import DataError
from .columns import ColumnSelection, TableKind
from .pairs import TextExample
from .readers.files import InputFile, find_files, suffix_of
from .readers.tables import N_SAMPLED, is_json, table_rows
from .report import SplitReport, TextReport

TEXT, LABEL = "text", "label"
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
LABELED = TableKind(TEXT, LABEL, {TEXT: TEXTS, LABEL: LABELS}, "review,stars", pairs=PAIRS)


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

    Without `columns` (see ColumnSelection.of), a header, the keys of JSON objects or what the columns hold say where
    text and label are.

    >>> read_labeled_texts("reviews.csv", columns=("review", "stars"))
    """
    reading = TextReport() if reading is None else reading
    path_list = [paths] if isinstance(paths, str | Path) else paths
    return _labeled(read_rows(path_list, ColumnSelection.of(LABELED, columns), reading), reading)


def read_rows(paths: Iterable[str | Path], columns: ColumnSelection, reading: SplitReport) -> Iterator[TextRow]:
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


def _stream(files: Sequence[InputFile], selection: ColumnSelection) -> Iterator[TextRow]:
    """Their formats are known by content where that is certain, then by name."""
    for file in files:
        head = file.head().removeprefix(codecs.BOM_UTF8)
        if not head.strip():
            raise file.error("the file is empty")
        if is_json(head) or suffix_of(file.path) in (".json", *LINES):
            file.begin("JSON")
            yield from _of_objects(file, selection)
        elif rows := table_rows(file, head):
            yield from _selected(file, selection, rows)
        else:
            raise file.error(f"not a table of texts: its lines have no tabs; the endings read are {', '.join(ENDINGS)}")


def _selected(
    file: InputFile,
    selection: ColumnSelection,
    rows: Iterator[tuple[int, Sequence[Any]]],
    keys: list[str] | None = None,
) -> Iterator[TextRow]:
    """Yield the selected cells of all rows; the first one is a header, if there are no keys and it looks like one."""
    sample = list(islice(rows, N_SAMPLED))
    if not sample:
        return
    number, cells = sample[0]
    header, others = (keys, sample) if keys else (cells, sample[1:])
    try:
        selected = selection.select(
            header, [cells for _, cells in others if len(cells) == len(header)], has_keys=bool(keys)
        )
    except DataError as error:
        raise file.error(str(error), number) from None
    file.tell(selected.note, selected.caution)
    texts, label = selected.places
    for number, cells in chain(others if selected.has_header else sample, rows):
        if len(cells) != len(header):
            file.drop("too few columns" if len(cells) < len(header) else "too many columns", number)
            continue
        values = [cells[place] for place in texts]
        for place, value in zip(texts, values, strict=True):
            if not isinstance(value, str | None):
                raise file.error(f"a text was expected under {header[place]!r}, not {type(value).__name__}", number)
        yield TextRow(file, number, [value or "" for value in values], cells[label])


def _of_objects(file: InputFile, selection: ColumnSelection) -> Iterator[TextRow]:
    """Read objects with the keys of the first one; null and absent values count as missing."""
    rows = file.json_rows()
    if first := next(rows, None):
        keys = list(first[1])
        cells = ((number, [row.get(key) for key in keys]) for number, row in chain([first], rows))
        yield from _selected(file, selection, cells, keys)


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
