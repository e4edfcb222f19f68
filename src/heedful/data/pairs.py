"""A sentence pair, and which pairs are worth learning from.

What is dropped is counted, with the first places of each reason.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

from ..config import Config
from ..errors import DataError
from .languages import SCRIPTS, script_of
from .report import PairReport, quantile
from .tokenizer import nfc

_LETTER = re.compile(r"[^\W\d_]")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_SLACK = 20  # characters by which short texts may differ, whatever the ratio
_SHRINKS = 4  # at most so many code points become one in NFC
_ENOUGH = 1000  # pairs of a file after which its direction is judged
_FEW = 100  # pairs whose lengths say nothing of what is usual
_LEAST_LIMITS: dict[str, Any] = {
    "max_characters": 1000,
    "max_ratio": 5.0,
    "check_script": True,
}  # the least where none is set
_MAX_CHARACTERS = 20_000  # of any text where no limit is set
_MAX_FOREIGN = 0.2  # the share of texts in another script from which on this is no accident
_BINS = 10  # in which the logarithm of a length or a ratio is counted, for a factor of e


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

    max_characters: int | None = None  # Pairs with a longer text are dropped; None: 1000, or what the data needs
    max_ratio: float | None = None  # The longer text has at most so many times the other's characters; None: 5, or more
    drop_duplicates: bool = True  # Drop pairs that occurred before
    check_script: bool | None = None  # Drop texts in another script than their language's; None: unless many are

    def check(self) -> None:
        self.require_positive("max_characters", "max_ratio")

    @property
    def limits(self) -> dict[str, Any]:
        """The limits that are set, and do not follow from the data."""
        return {name: value for name in _LEAST_LIMITS if (value := getattr(self, name)) is not None}


def tidy(text: str) -> str:
    """Normalize white space to single spaces, none at the ends, and characters to NFC."""
    return nfc(" ".join(text.split()))


def clean(
    pairs: Iterable[Pair],
    config: CleaningConfig,
    source_language: str,
    target_language: str,
    reading: PairReport | None = None,
    store: Callable[[Iterable[Pair]], Iterable[Pair]] = list,
) -> Iterable[Pair]:
    """Return the pairs worth keeping, tidied, which can be read several times.

    The limits that no setting sets follow from all pairs, which `store` keeps until these limits are known.

    Raises:
        DataError: no pair is kept, or most of a file is in the wrong direction.
    """
    reading = PairReport() if reading is None else reading
    direction = _Direction(source_language, target_language, reading)
    distribution = _Distribution()
    clean_pairs = CleanPairs(store(_tidied(pairs, config, direction, distribution, reading)), [])
    limits = distribution.limits(config)
    if unusual := {name: value for name, value in limits.items() if value != _LEAST_LIMITS[name]}:
        values = ", ".join(f"data.{name}={str(value).lower()}" for name, value in unusual.items())
        reading.notes += [f"limits that fit the data: {values}"]
    rules = _limit_rules(limits, direction.lacks_script)
    for pair in clean_pairs.pairs:
        if fault := next((reason for reason, broken in rules if broken(pair)), None):
            reading.drop_kept(fault, pair.place, *pair.texts)
            name, needed = _SETTINGS[fault]
            reading.advise(fault, f"data.{name}", needed(pair), pair.texts)
    clean_pairs.rules += [rule for rule in rules if rule[0] in reading.dropped]
    if not reading.kept:
        why = "; ".join(f"{reason}: {tally}" for reason, tally in reading.dropped.items())
        raise DataError(f"no sentence pair is left to use ({why or 'there was none'})")
    return clean_pairs


@dataclass
class CleanPairs:
    """Those of some pairs that break no rule."""

    pairs: Iterable[Pair]
    rules: list[tuple[str, Rule]]

    def __iter__(self) -> Iterator[Pair]:
        return (pair for pair in self.pairs if not any(broken(pair) for _, broken in self.rules))


def _tidied(
    pairs: Iterable[Pair],
    config: CleaningConfig,
    direction: _Direction,
    distribution: _Distribution,
    reading: PairReport,
) -> Iterator[Pair]:
    """Yield the pairs that break no rule but those whose limits follow from the data."""
    longest = _SHRINKS * (config.max_characters or _MAX_CHARACTERS)
    rules = _rules(config, direction)
    for raw in pairs:
        # What will be dropped for its length anyway is not composed, since that can take very long.
        collapsed = [" ".join(text.split()) for text in raw.texts]
        source, target = (nfc(text) if len(text) <= longest else text for text in collapsed)
        pair = Pair(source, target, raw.file, raw.line)
        if fault := next((reason for reason, broken in rules if broken(pair)), None):
            reading.drop(fault, pair.place)
            continue
        distribution.add(pair, is_foreign=direction.lacks_script(pair))
        reading.keep(*pair.texts)
        yield pair
    direction.check_file()


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

    def is_duplicate(pair: Pair) -> bool:
        digest = blake2b(f"{pair.source}\0{pair.target}".encode(), digest_size=8).digest()
        before = len(seen)
        seen.add(int.from_bytes(digest, "big"))
        return len(seen) == before

    rules: list[tuple[str, Rule]] = [
        ("lone surrogate", lambda pair: bool(_SURROGATE.search(pair.source) or _SURROGATE.search(pair.target))),
        ("control character", lambda pair: bool(_CONTROL.search(pair.source) or _CONTROL.search(pair.target))),
        ("empty", lambda pair: not pair.source or not pair.target),
        *_limit_rules(config.limits, direction.is_wrong),
    ]
    if config.check_script is None:  # whatever is decided later, a file in the wrong direction is noticed at once
        rules.append((WRONG_SCRIPT, lambda pair: direction.is_wrong(pair) and False))
    if config.drop_duplicates:
        rules.append(("duplicate", is_duplicate))
    return rules


def _length(pair: Pair) -> int:
    return max(map(len, pair.texts))


def _unevenness(pair: Pair) -> float:
    return (_length(pair) - _SLACK) / min(map(len, pair.texts))


TOO_LONG, TOO_UNEVEN, WRONG_SCRIPT = "too long", "too uneven", "wrong script"
# The setting for each reason, and its value that would keep a pair.
_SETTINGS: dict[str, tuple[str, Callable[[Pair], int | str]]] = {
    TOO_LONG: ("max_characters", _length),
    TOO_UNEVEN: ("max_ratio", lambda pair: math.ceil(_unevenness(pair))),
    WRONG_SCRIPT: ("check_script", lambda pair: "false"),
}


def _limit_rules(limits: Mapping[str, Any], is_foreign: Rule) -> list[tuple[str, Rule]]:
    """Return the rules for these limits of lengths and scripts."""
    rules: dict[str, Rule] = {
        TOO_LONG: lambda pair: _length(pair) > limits["max_characters"],
        TOO_UNEVEN: lambda pair: _unevenness(pair) > limits["max_ratio"],
        WRONG_SCRIPT: is_foreign,
    }
    return [(reason, rule) for reason, rule in rules.items() if limits.get(_SETTINGS[reason][0])]


class _Distribution:
    """How long the texts of all pairs are, how uneven, and how many are in another script than their language's."""

    def __init__(self) -> None:
        self._lengths: Counter[int] = Counter()  # in logarithmic bins
        self._ratios: Counter[int] = Counter()
        self._longest, self._most_uneven, self._n_foreign = 0, 0.0, 0

    def add(self, pair: Pair, *, is_foreign: bool) -> None:
        length = _length(pair)
        self._lengths[math.ceil(_BINS * math.log(length))] += 1
        self._ratios[math.ceil(_BINS * math.log(length / min(map(len, pair.texts))))] += 1
        self._longest = max(self._longest, length)
        self._most_uneven = max(self._most_uneven, _unevenness(pair))
        self._n_foreign += is_foreign

    def limits(self, config: CleaningConfig) -> dict[str, Any]:
        """Return the limits that are not set. What a tenth of the pairs exceed is no fault of theirs."""
        fence = math.ceil(_fence(self._lengths)), round(_fence(self._ratios), 1)
        fitting = {
            "max_characters": max(_LEAST_LIMITS["max_characters"], min(self._longest, fence[0], _MAX_CHARACTERS)),
            "max_ratio": max(_LEAST_LIMITS["max_ratio"], min(math.ceil(self._most_uneven), fence[1])),
            "check_script": self._n_foreign < _MAX_FOREIGN * self._lengths.total() or self._lengths.total() < _FEW,
        }
        return {name: value for name, value in fitting.items() if name not in config.limits}


def _fence(bins: Counter[int]) -> float:
    """Return the value beyond which pairs are outliers, from counted logarithms; of few pairs 0.

    Nine tenths are below it, with half the distance to the lowest tenth to spare.
    """
    low, high = quantile(bins, 0.1), quantile(bins, 0.9)
    return math.exp((high + (high - low) / 2) / _BINS) if bins.total() >= _FEW else 0.0


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
        self._seen += 1
        if all(map(_lacks, pair.texts, self._scripts)) and not any(map(_lacks, pair.texts, self._scripts[::-1])):
            self._swapped += 1
        if self._seen == _ENOUGH:
            self.check_file()
        return self.lacks_script(pair)

    def lacks_script(self, pair: Pair) -> bool:
        """Return True if a text is not in the script of its language."""
        return any(map(_lacks, pair.texts, self._scripts))

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
