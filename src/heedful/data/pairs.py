"""A sentence pair, and which pairs are worth learning from.

What is dropped is counted, with the first places of each reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import ClassVar

from ..config import Config
from ..errors import DataError
from .languages import SCRIPTS, script_of
from .report import PairReport
from .tokenizer import nfc

_LETTER = re.compile(r"[^\W\d_]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SLACK = 20  # characters by which short texts may differ, whatever the ratio
_SHRINKS = 4  # at most so many code points become one in NFC
_ENOUGH = 1000  # pairs of a file after which its direction is judged


class TextExample:
    """Texts that belong together, and their place in a file."""

    __slots__ = ()
    file: str
    line: int

    @property
    def texts(self) -> tuple[str, ...]:
        """All its texts, which a tokenizer is trained on."""
        raise NotImplementedError

    @property
    def key(self) -> tuple[str, ...]:
        """The texts that identify it: two examples with the same key are never on both sides of the split."""
        return self.texts

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Pair(TextExample):
    """One sentence in both languages and its place in a file."""

    source: str
    target: str
    file: str
    line: int

    @property
    def texts(self) -> tuple[str, str]:
        return self.source, self.target


Rule = Callable[[Pair], bool]


@dataclass(frozen=True, kw_only=True)
class CleaningConfig(Config):
    """The conditions for keeping a pair."""

    title: ClassVar[str] = "data"

    max_characters: int = 1000  # Pairs with a longer text are dropped
    max_ratio: float = 5.0  # The longer text has at most this many times the characters of the shorter, plus 20
    drop_duplicates: bool = True  # Drop pairs that occurred before
    check_script: bool = True  # Drop texts without a letter of their language's script; swapped languages are an error

    def check(self) -> None:
        self.require_positive("max_characters", "max_ratio")


def tidy(text: str) -> str:
    """Normalize white space to single spaces, none at the ends, and characters to NFC."""
    return nfc(" ".join(text.split()))


def clean(
    pairs: Iterable[Pair],
    config: CleaningConfig,
    source_language: str,
    target_language: str,
    reading: PairReport | None = None,
) -> Iterator[Pair]:
    """Yield the pairs worth keeping, tidied.

    Raises:
        DataError: no pair is kept, or most of a file is in the wrong direction.
    """
    reading = PairReport() if reading is None else reading
    direction = _Direction(source_language, target_language, reading)
    rules = _rules(config, direction)
    any_kept = False
    for raw in pairs:
        # What will be dropped for its length anyway is not composed, since that can take very long.
        collapsed = [" ".join(text.split()) for text in raw.texts]
        source, target = (nfc(text) if len(text) <= _SHRINKS * config.max_characters else text for text in collapsed)
        pair = Pair(source, target, raw.file, raw.line)
        if fault := next((reason for reason, broken in rules if broken(pair)), None):
            reading.drop(fault, pair.place)
            continue
        any_kept = True
        reading.keep(*pair.texts)
        yield pair
    direction.check_file()
    if not any_kept:
        why = "; ".join(f"{reason}: {tally}" for reason, tally in reading.dropped.items())
        raise DataError(f"no sentence pair is left to use ({why or 'there was none'})")


def in_direction(
    pairs: Iterable[Pair], source_language: str, target_language: str, reading: PairReport
) -> Iterator[Pair]:
    """Yield all pairs unchanged; a DataError if most of a file's are in the wrong direction."""
    direction = _Direction(source_language, target_language, reading)
    for pair in pairs:
        direction.is_wrong(pair)
        yield pair
    direction.check_file()


def _rules(config: CleaningConfig, direction: _Direction) -> list[tuple[str, Rule]]:
    """Return the reasons to drop a pair, each with its test; the first that applies counts."""
    seen: set[int] = set()  # by 8 bytes each: that any two of a million are mistaken has a chance of 3e-8

    def is_uneven(pair: Pair) -> bool:
        shorter, longer = sorted((len(pair.source), len(pair.target)))
        return longer > config.max_ratio * shorter + _SLACK

    def is_duplicate(pair: Pair) -> bool:
        digest = blake2b(f"{pair.source}\0{pair.target}".encode(), digest_size=8).digest()
        before = len(seen)
        seen.add(int.from_bytes(digest, "big"))
        return len(seen) == before

    rules: list[tuple[str, Rule]] = [
        ("lone surrogate", lambda pair: bool(_SURROGATE.search(pair.source) or _SURROGATE.search(pair.target))),
        ("control character", lambda pair: bool(_CONTROL.search(pair.source) or _CONTROL.search(pair.target))),
        ("empty", lambda pair: not pair.source or not pair.target),
        ("too long", lambda pair: max(len(pair.source), len(pair.target)) > config.max_characters),
        ("too uneven", is_uneven),
    ]
    if config.check_script:
        rules.append(("wrong script", direction.is_wrong))
    if config.drop_duplicates:
        rules.append(("duplicate", is_duplicate))
    return rules


class _Direction:
    """Checks that texts are in the script of their language. A file in the other direction is an error."""

    def __init__(self, source: str, target: str, reading: PairReport) -> None:
        self._languages = source, target
        self._scripts = script_of(source), script_of(target)
        self._reading = reading
        self._file, self._seen, self._swapped = "", 0, 0

    def is_wrong(self, pair: Pair) -> bool:
        if pair.file != self._file:
            self.check_file()
            self._file, self._seen, self._swapped = pair.file, 0, 0
        source_script, target_script = self._scripts
        lacks = _lacks(pair.source, source_script), _lacks(pair.target, target_script)
        self._seen += 1
        if all(lacks) and not _lacks(pair.source, target_script) and not _lacks(pair.target, source_script):
            self._swapped += 1
        if self._seen == _ENOUGH:
            self.check_file()
        return any(lacks)

    def check_file(self) -> None:
        """Raise a DataError if most pairs of the current file are in the wrong direction."""
        if self._swapped * 2 <= self._seen:
            return
        source, target = self._languages
        other = {source: target, target: source}
        columns = ",".join(other.get(name, name) for name in self._reading.columns or (source, target))
        raise DataError(
            f"{self._file}: {self._swapped} of {self._seen} pairs are the wrong way round for {source} to {target}; "
            f"swap --source and --target, or give the order of the columns: --columns {columns}"
        )


def _lacks(text: str, script: str | None) -> bool:
    """Return True if a text has letters but none of this script."""
    return script is not None and not SCRIPTS[script].search(text) and bool(_LETTER.search(text))
