"""Sentences whose words have a tag each: CoNLL columns, CoNLL-U and JSON lines."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ConfigError
from .columns import are_numbers
from .pairs import TextExample
from .readers.files import InputFile, find_files
from .readers.tables import is_json
from .report import SplitReport

ENDINGS = (".conll", ".conllu", ".bio", ".iob", ".iob2", ".tsv", ".txt", ".jsonl", ".ndjson")
WORD, TAG, OTHER = "word", "tag", "-"
TOKENS = ("tokens", "words", "token", "word")  # keys of JSON lines
TAGS = ("tags", "ner_tags", "pos_tags", "labels", "tag", "ner")
CONLLU = re.compile(rb"\d+(-\d+)?\t[^\t\n]+(\t[^\t\n]*){8}\r?\n")  # ten columns, the first a number
DOCSTART = "-DOCSTART-"


@dataclass(frozen=True, slots=True)
class TaggedSentence(TextExample):
    """A text, the spans of its tokens, and the tag of each token."""

    text: str
    spans: tuple[tuple[int, int], ...]
    tags: tuple[str, ...]
    file: str
    line: int

    @property
    def tokens(self) -> list[str]:
        return [self.text[start:stop] for start, stop in self.spans]

    @property
    def texts(self) -> tuple[str, ...]:
        return (self.text,)


def join_tokens(tokens: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Join tokens to one text with spaces, and return it with the span of each.

    If a token is a space, as in corpora of single characters, they are joined without spaces.
    """
    between = "" if any(not word.strip() for word in tokens) else " "
    spans, start = [], 0
    for word in tokens:
        spans.append((start, start + len(word)))
        start += len(word) + len(between)
    return between.join(tokens), tuple(spans)


def tagged_files(paths: Iterable[str | Path], report: SplitReport | None = None) -> list[Path]:
    """Every file to read for these paths; in a folder, those with a known ending, packed or not."""
    return find_files(paths, ENDINGS, report, "file of tagged words")


def read_tagged(
    paths: Iterable[str | Path], *, columns: Sequence[str] | None = None, report: SplitReport | None = None
) -> Iterator[TaggedSentence]:
    """The sentences of files and folders, streamed.

    Args:
        paths: CoNLL columns (a word and its tags a line, an empty line between sentences), CoNLL-U, or JSON lines with
            a list of words and a list of tags.
        columns: What the columns hold in order: "word", "tag", or "-" for something else; for JSON lines, the keys of
            the words and of the tags. By default the first column is the word and the last one the tag.
        report: Is told which files are read, and what is left out and why.
    """
    report = SplitReport() if report is None else report
    for path in tagged_files(paths, report):
        yield from _read_file(InputFile(path, report), columns)


def _read_file(file: InputFile, columns: Sequence[str] | None) -> Iterator[TaggedSentence]:
    head = file.head()
    if not head.strip():
        raise file.error("the file is empty")
    if is_json(head):
        file.begin("JSON lines")
        return _of_lines(file, columns)
    first = next((line for line in head.splitlines(keepends=True) if line.strip() and not line.startswith(b"#")), b"")
    if columns is None and CONLLU.match(first):
        file.begin("CoNLL-U")
        return _of_columns(file, 1, 3)
    file.begin("CoNLL columns")
    return _of_columns(file, *_chosen(columns))


def _chosen(columns: Sequence[str] | None) -> tuple[int, int]:
    """Return the columns of the word and its tag; a negative number counts from the last."""
    if columns is None:
        return 0, -1
    if are_numbers(columns) and len(columns) == 2:
        return int(columns[0]) - 1, int(columns[1]) - 1
    if not set(columns) <= {WORD, TAG, OTHER} or columns.count(WORD) != 1 or columns.count(TAG) != 1:
        raise ConfigError(
            f"--columns {','.join(columns)}: say what each column holds: {WORD}, {TAG}, or {OTHER} for something else, "
            f"such as {WORD},{OTHER},{OTHER},{TAG}; or give the numbers of the word and the tag: 1,4"
        )
    return columns.index(WORD), columns.index(TAG)


def _of_columns(file: InputFile, word: int, tag: int) -> Iterator[TaggedSentence]:
    tokens: list[str] = []
    tags: list[str] = []
    begin = width = 0
    for number, text, fault in file.lines():
        if fault:
            raise file.error(fault, number)
        cells = text.split("\t") if "\t" in text else text.split()
        if not text.strip() or cells[0] == DOCSTART:
            yield from _sentence(file, begin, tokens, tags)
            tokens, tags = [], []
            continue
        if _is_comment(text, cells) or (word == 1 and not cells[0].isdigit()):  # 3-4, 5.1: no words of their own
            continue
        if not tokens:
            begin, width = number, len(cells)
        if len(cells) != width or width < 2 or max(word, tag) >= width:
            raise file.error(
                f"{len(cells)} columns where {max(width, 2, word + 1, tag + 1)} were expected: "
                "a word and its tag a line, an empty line between sentences",
                number,
            )
        tokens.append(cells[word])
        tags.append(cells[tag].strip())
    yield from _sentence(file, begin, tokens, tags)


def _is_comment(text: str, cells: Sequence[str]) -> bool:
    """Return True for "# text = …" or "## name<TAB>text" (KLUE); the token # has only columns beside it."""
    if not text.startswith("#"):
        return False
    return " " in cells[0] if "\t" in text else " = " in text or text.startswith("# new")


def _of_lines(file: InputFile, columns: Sequence[str] | None) -> Iterator[TaggedSentence]:
    for number, row in file.json_rows():
        tokens, tags = _listed(file, number, row, columns)
        if len(tokens) != len(tags):
            raise file.error(f"{len(tokens)} words and {len(tags)} tags; each word has one", number)
        yield from _sentence(file, number, tokens, tags)


def _listed(
    file: InputFile, number: int, row: dict[str, Any], columns: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    keys = list(row)
    candidates = (TOKENS, TAGS) if columns is None else tuple((name,) for name in columns)
    chosen = [key for names in candidates if (key := next((name for name in names if name in keys), None)) is not None]
    if len(chosen) != 2:
        raise file.error(
            f"no list of words and of tags; the keys are {', '.join(map(repr, keys[:12])) or 'none'}. "
            "Name them: --columns tokens,tags",
            number,
        )
    tokens, tags = (row[key] for key in chosen)
    for key, values in zip(chosen, (tokens, tags), strict=True):
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise file.error(f"a list of texts was expected under {key!r}: write tags by their names", number)
    return tokens, tags


def _sentence(file: InputFile, line: int, tokens: Sequence[str], tags: Sequence[str]) -> Iterator[TaggedSentence]:
    if not tokens:
        return
    if not all(tags):
        file.drop("a word without a tag", line)
        return
    text, spans = join_tokens(tokens)
    if not text.strip():
        file.drop("empty", line)
        return
    pair = file.pair(text, " ".join(tags), line)
    yield TaggedSentence(text, spans, tuple(tags), pair.file, pair.line)
