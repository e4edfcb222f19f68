"""Tab-separated text: a pair a line, further columns left alone, a header that names the languages understood."""

from __future__ import annotations

from collections.abc import Iterator

from heedful.data.pairs import Pair

from .files import InputFile
from .languages import Languages


def looks_tabbed(head: bytes) -> bool:
    """Whether every line has a tab, as far as can be seen. Likely, never certain: prose may hold tabs too."""
    *lines, last = [line for line in head.split(b"\n") if line.strip()] or [b""]
    return all(b"\t" in line for line in lines or [last])  # the last one may be cut off


def read(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Which columns: the header says it, or `columns`, or else the source comes first."""
    source, target = languages.places(languages.order) or (0, 1)
    started = False
    for line in file.sentences():
        columns = line.text.split("\t")
        if not started and line.text.strip():
            started = True
            if header := languages.keys(columns):
                if languages.columns and header != (source, target):
                    asked, named = ",".join(languages.columns), ",".join(columns)
                    raise file.error(f"the header names the columns {named}, but {asked} was asked for", line.number)
                source, target = header
                continue
            if len(columns) < 2:
                raise file.error("one column; two or more were expected, with tabs between them", line.number)
        if line.fault or not line.text.strip():
            file.drop(line.fault or "empty", line.number)
        elif len(columns) <= max(source, target):
            file.drop("too few columns", line.number)
        else:
            yield file.pair(columns[source], columns[target], line.number)
