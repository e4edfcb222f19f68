"""JSON lines: an object a line, its texts under language codes, source and target, or within "translation"."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.data.pairs import Pair

from .files import InputFile
from .languages import Languages

ARRAY = re.compile(rb"\s*\[\s*\{")


def is_jsonl(head: bytes) -> bool:
    """Whether the first line is a JSON object, or the beginning of a very long one."""
    first, ended, _ = head.lstrip().partition(b"\n")
    if not ended:
        return first.startswith(b'{"')
    try:
        return isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        return False


def array_hint(path: Path) -> str:
    """What to do with a JSON array, which cannot be read piece by piece."""
    given, lines = shlex.quote(str(path)), shlex.quote(f"{path.with_suffix('')}-lines.jsonl")
    return f"a JSON array; one object a line is read, so turn it into that: jq -c '.[]' {given} > {lines}"


def read(file: InputFile, languages: Languages) -> Iterator[Pair]:
    """Null stands for a missing translation; a line that is not such an object is an error."""
    for line in file.lines():
        if line.fault or not line.text.strip():
            file.drop(line.fault or "empty", line.number)
            continue
        source, target = _texts(file, line.number, _parsed(file, line.number, line.text), languages)
        if source is None or target is None:
            file.drop("untranslated", line.number)
        else:
            yield file.pair(source, target, line.number)


def _parsed(file: InputFile, number: int, text: str) -> dict[str, Any]:
    if number == 1 and text.startswith("["):
        raise file.error(array_hint(file.path))
    try:
        row = json.loads(text)
    except RecursionError:
        raise file.error("the JSON is nested too deeply", number) from None
    except ValueError as error:
        raise file.error(f"not JSON: {error}", number) from None
    if isinstance(row, dict) and isinstance(row.get("translation"), dict):
        row = row["translation"]
    if not isinstance(row, dict):
        raise file.error(f"a JSON object was expected, not {type(row).__name__}", number)
    return row


def _texts(file: InputFile, number: int, row: dict[str, Any], languages: Languages) -> list[str | None]:
    names = list(row)
    places = languages.keys(names)
    if places is None:
        raise file.error(
            f"no key for {languages}; the keys are {', '.join(names[:10]) or 'none'}. Allowed are language codes, "
            "source and target, src and tgt, or these within translation",
            number,
        )
    texts = [row[names[place]] for place in places]
    for text in texts:
        if not isinstance(text, str | None):
            raise file.error(f"text was expected, not {type(text).__name__}", number)
    return texts
