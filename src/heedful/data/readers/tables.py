"""Sentence pairs from tables, JSON lines and parallel text: a pair a row, an object a line, or a line in each file."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from ...errors import DataError
from ..columns import ColumnProfile, texts_among
from ..languages import Languages
from ..pairs import Pair
from .files import ARRAY, InputFile, OtherLanguageError, TableRow, suffix_of

N_SAMPLED = 1000  # rows that are looked at before columns are selected
DELIMITERS = {",": "comma-separated text", ";": "semicolon-separated text", "\t": "tab-separated text"}


def looks_tabbed(head: bytes) -> bool:
    """Return True if every line has a tab. This is likely, never certain: prose may contain tabs too."""
    *lines, last = [line for line in head.split(b"\n") if line.strip()] or [b""]
    return all(b"\t" in line for line in lines or [last])  # the last one may be cut off


def read_tabs(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Read one row per line, with tabs between its columns."""
    return _pairs(file, languages, file.tabbed_rows(), "tabs")


def read_commas(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Read comma- or semicolon-separated rows as spreadsheets write them, with quotes around special cells.

    More than two columns must be named: in such tables the source is seldom the first.
    """
    rows = file.quoted_rows(delimiter_of(file.head()) or ",")
    return _pairs(file, languages, rows, "commas", unnamed=2)


def _pairs(
    file: InputFile, languages: Languages, rows: Iterable[TableRow], between: str, unnamed: int | None = None
) -> Iterator[Pair]:
    """Select the columns by the header, or by `columns`, or else with the source first."""
    source, target = languages.places(languages.order) or (0, 1)
    filled = file.filled_rows(rows)
    sample = list(islice(filled, N_SAMPLED))
    for number, columns in sample[:1]:
        width = len(columns)
        if header := languages.keys(columns):
            if languages.columns and header != (source, target):
                order, named = ",".join(languages.columns), ",".join(columns)
                raise file.error(
                    f"the header names the columns {named}, but {order} was asked for; leave it out", number
                )
            source, target = header
            sample = sample[1:]
        elif width < 2:
            raise file.error(f"one column; two or more were expected, with {between} between them", number)
        profiles = [
            ColumnProfile(cells) for cells in zip(*(row for _, row in sample if len(row) == width), strict=True)
        ]
        if not header and not languages.columns and width > 2:
            guess = languages.guess({place: profiles[place].cells for place in texts_among(profiles)})
            if guess is None and unnamed:
                raise OtherLanguageError(
                    f"{file.name}:{number}: {width} columns, {','.join(columns)[:100]}, and none is named "
                    f"{languages}; give their numbers, {languages.source} first: --columns 1,2"
                )
            source, target = guess or (source, target)
            file.tell(
                f"guessed: column {source + 1} is {languages.source}, column {target + 1} {languages.target}, and the "
                f"others are not read (the other way round: --columns {target + 1},{source + 1})"
            )
        for place, code in ((source, languages.source), (target, languages.target)):
            if place < len(profiles) and profiles[place].is_odd:
                cell = profiles[place].cells[0]
                file.tell(
                    caution=f"column {place + 1} is read as {code} and holds hardly any words, such as {cell!r:.40}"
                )
    for number, columns in chain(sample, filled):
        if len(columns) <= max(source, target):
            file.drop("too few columns", number)
        else:
            yield file.pair(columns[source], columns[target], number)


def table_rows(file: InputFile, head: bytes) -> Iterator[tuple[int, list[str]]] | None:
    """Begin to read a comma- or tab-separated table, detected by content and name; None for another file."""
    ending, tabbed = suffix_of(file.path), looks_tabbed(head)
    delimiter = delimiter_of(head, is_certain=ending == ".csv")
    if (ending == ".csv" and not (tabbed and b"," not in head.lstrip().split(b"\n")[0])) or (delimiter and not tabbed):
        file.begin(DELIMITERS[delimiter or ","])
        return file.filled_rows(file.quoted_rows(delimiter or ","))
    if tabbed or ending in (".tsv", ".tab"):
        file.begin("tab-separated text")
        return file.filled_rows(file.tabbed_rows())
    return None


def delimiter_of(head: bytes, *, is_certain: bool = True) -> str | None:
    """Return what stands between the cells of a table with quoted cells; None if there is none.

    Unless it is certain that this is such a table, all rows must have the same number of cells.
    """
    lines = head.decode(errors="ignore").strip().splitlines()[:-1] or [head.decode(errors="ignore").strip()]

    def evenness(delimiter: str) -> float:
        width, count = Counter(map(len, csv.reader(lines, delimiter=delimiter))).most_common(1)[0]
        return count / len(lines) if width > 1 else 0.0

    best = max(DELIMITERS, key=evenness)
    return best if evenness(best) > (0.0 if is_certain else 0.999) and (is_certain or len(lines) > 1) else None


def is_json(head: bytes) -> bool:
    """Return True for an array of JSON objects, or a JSON object in the first line, which may be very long."""
    if ARRAY.match(head):
        return True
    first, ended, _ = head.lstrip().partition(b"\n")
    if not ended:
        return first.startswith(b'{"')
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def read_jsonl(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Read JSON objects with both texts. Null means a missing translation; a line of another form is an error."""
    for number, row in file.json_rows():
        inner = row.get("translation")
        source, target = _texts(file, number, inner if isinstance(inner, dict) else row, languages)
        if source is None or target is None:
            file.drop("untranslated", number)
        else:
            yield file.pair(source, target, number)


def _texts(file: InputFile, number: int, row: dict[str, Any], languages: Languages) -> list[str | None]:
    names = list(row)
    places = languages.keys(names)
    if places is None:
        error = file.error(
            f"no key for {languages}; the keys are {', '.join(names[:10]) or 'none'}. Allowed are language codes, "
            "source and target, src and tgt, or these within translation",
            number,
        )
        raise OtherLanguageError(str(error)) if number == 1 else error
    texts = [row[names[place]] for place in places]
    for text in texts:
        if not isinstance(text, str | None):
            raise file.error(f"text was expected, not {type(text).__name__}", number)
    return texts


def code_in(path: Path, languages: Languages) -> re.Match[str] | None:
    """Return the language code that ends a name, as in train.en, train.en.gz or en.txt."""
    codes = "|".join(re.escape(code) for code in (languages.source, languages.target))
    return re.search(rf"(?<![^._-])(?:{codes})(?=(\.txt)?(\.gz)?$)", path.name, re.IGNORECASE)


def partner_of(file: InputFile, languages: Languages) -> Path:
    """Return the file of the other language beside this one, packed or not."""
    code = code_in(file.path, languages)
    if code is None:
        raise file.error(f"no language code ends the name, neither {languages.source} nor {languages.target}")
    other = languages.target if _is_source(code, languages) else languages.source
    other = other.upper() if code[0].isupper() else other
    twin = file.path.name[: code.start()] + other + file.path.name[code.end() :]
    repacked = twin.removesuffix(".gz") if twin.endswith(".gz") else f"{twin}.gz"
    for name in (twin, repacked):
        if (path := file.path.with_name(name)).exists():
            return path
    raise file.error(f"this is one side of a pair of files, but there is neither {twin} nor {repacked} beside it")


def _is_source(code: re.Match[str], languages: Languages) -> bool:
    return code[0].lower() == languages.source.lower()


def read_parallel(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Line n of the one file beside line n of the other."""
    code, other = code_in(file.path, languages), file.beside(partner_of(file, languages))
    source, target = (file, other) if code and _is_source(code, languages) else (other, file)
    sources = targets = 0
    for first, second in zip_longest(source.sentences(), target.sentences()):
        sources, targets = sources + (first is not None), targets + (second is not None)
        if first is None or second is None:
            continue  # the longer one is still counted to its end
        if fault := first.fault or second.fault:
            file.drop(fault, first.number)
        else:
            yield file.pair(first.text, second.text, first.number)
    if sources != targets:
        raise DataError(
            f"{source.name} has {sources} lines, but {target.name} has {targets}; "
            "each line needs its translation on the same line of the other file"
        )
