"""Pairs of texts: read from tables and JSON lines, split, and encoded into token stores."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Self, TextIO

from tokenizers import AddedToken
from tokenizers import Tokenizer as FastTokenizer

from ...config import read_mapping, write_mapping
from ...data.labeled_texts import OTHER, ColumnPlaces, TextColumns, TextRow, read_rows, text_digest
from ...data.pairs import Pair
from ...data.published_tokenizer import NAME, PublishedTokenizer, truncate
from ...data.report import PairReport
from ...data.store import Encoded, TokenStore
from ...data.text_tokenizers import END_NAME, PAD_NAME, START_NAME
from ...data.tokenizer import END, PAD, START, Tokenizer
from ...errors import ConfigError, DataError
from ...families import GenerationDefaults
from ...families.weights import weights_of
from ..run import DataReport, Files, TrainingData
from ..run.task import START as START_WEIGHTS
from ..run.task import Split, write_start_weights
from ..seq2seq import split_pairs
from .config import TextToTextConfig, read_base

SOURCE, TARGET, PREFIX = "source", "target", "prefix"
EMPTY = ("empty source", "empty target", "empty prefix")  # why a row is dropped
ROLES = {SOURCE, TARGET, PREFIX, OTHER}

# Common column names in headers, the likeliest first.
SOURCES = (
    *(SOURCE, "input", "text", "document", "article", "dialogue", "question", "prompt", "content", "body"),
    *("본문", "원문", "질문"),
)
TARGETS = (
    *(TARGET, "output", "summary", "answer", "highlights", "response", "completion", "title", "headline"),
    *("요약", "번역", "답변", "제목"),
)
PREFIXES = (PREFIX, "task")
MAX_PREFIXES = 20  # that a report lists

TOKENS, TEXTS = "tokens.json", "valid.jsonl"  # in a run's data folder
OWN_ROLES = {"pad_token": PAD_NAME, "bos_token": START_NAME, "eos_token": END_NAME}
OWN_TOKENS = GenerationDefaults(start=START, end=(END,), pad=PAD, suppress_tokens=(PAD, START))


@dataclass(frozen=True, slots=True)
class TextToTextExample(Pair):
    """A pair whose source stands behind a prefix."""

    prefix: str = ""

    @property
    def text(self) -> str:
        """The prefix and the source, which the model reads together."""
        return self.prefix + self.source

    @property
    def texts(self) -> tuple[str, str]:
        return self.text, self.target


class ExampleColumns(TextColumns):
    """Which columns hold the source, the target and, if there is one, the prefix: `texts=(source, prefix)`.

    `names` are the header's names of source, target and prefix.
    """

    @classmethod
    def of(cls, columns: Sequence[str] | None) -> Self:
        """Parse the option --columns: ("article", "summary") by name, or ("target", "-", "source") by order."""
        columns = tuple(column.strip() for column in columns or ())
        if not columns:
            return cls()
        if set(columns) <= ROLES:
            if columns.count(SOURCE) != 1 or columns.count(TARGET) != 1 or columns.count(PREFIX) > 1:
                raise ConfigError(f"--columns {','.join(columns)}: name exactly one {SOURCE} and one {TARGET}")
            return cls(order=columns)
        if len(columns) not in (2, 3) or not all(columns):
            raise ConfigError(
                f"--columns {','.join(columns)}: give the names of the source and the target (article,summary), and "
                f"of the prefix if there is one; or for columns without names what each holds: {SOURCE}, {TARGET}, "
                f"{PREFIX}, or {OTHER} for something else"
            )
        return cls(names=columns)

    def in_header(self, header: Sequence[str]) -> ColumnPlaces | None:
        """Return their places in a header; None where it does not name them. A prefix that is not used is ignored."""
        places = {name.strip().lower(): place for place, name in reversed(list(enumerate(header)))}
        common = [SOURCES, TARGETS, () if self.order and PREFIX not in self.order else PREFIXES]
        choices = [*((name.lower(),) for name in self.names), ()] if self.names else common
        source, target, prefix = (
            next((places[name] for name in names if name in places), None) for names in choices[:3]
        )
        if source is None or target is None or (len(self.names) == 3 and prefix is None):
            return None
        return ColumnPlaces((source,) if prefix is None else (source, prefix), target)

    def in_order(self) -> ColumnPlaces | None:
        """Return their places among columns without names; None where the option does not say them."""
        if not self.order:
            return None
        texts = tuple(self.order.index(role) for role in (SOURCE, PREFIX) if role in self.order)
        return ColumnPlaces(texts, self.order.index(TARGET))

    def missing(self, header: Sequence[str]) -> str:
        """Return the message for a header without them."""
        names = f"named {', '.join(self.names)}" if self.names else "named as a source and a target usually are"
        present = ", ".join(repr(name[:40]) for name in header[:12]) + (", …" if len(header) > 12 else "")
        return (
            f"no columns are {names}; there are {present or 'none'}. Name them: --columns article,summary; "
            f"or where there is no header, say what each column holds: --columns {SOURCE},{TARGET}"
        )


class ExampleReading(PairReport):
    """A report of pairs that also counts the prefixes of a column."""

    def __init__(self) -> None:
        super().__init__()
        self.prefixes: Counter[str] = Counter()

    def to_dict(self) -> dict[str, Any]:
        prefixes = ", ".join(f"{prefix!r} {count:,}" for prefix, count in self.prefixes.most_common(MAX_PREFIXES))
        more = ", …" if len(self.prefixes) > MAX_PREFIXES else ""
        notes = [f"prefixes: {prefixes}{more}"] if prefixes else []
        return super().to_dict() | {"notes": [*notes, *self._all_notes()]}


def read_examples(
    paths: Iterable[str | Path],
    *,
    columns: Sequence[str] | None = None,
    prefix: str = "",
    reading: ExampleReading | None = None,
) -> Iterator[TextToTextExample]:
    """Yield the examples of files and folders, and count in `reading` what is kept and dropped.

    Without `columns` (see ExampleColumns.of), a header or the keys of JSON lines name them. `prefix` stands before
    every source, unless a column has one for each, which a space follows. White space around a text is removed.

    >>> read_examples(["news.csv"], columns=("article", "summary"), prefix="summarize: ")
    """
    reading = ExampleReading() if reading is None else reading
    rows = read_rows(paths, ExampleColumns.of(columns), reading)  # errors in `columns` are raised at once
    return (example for row in rows if (example := _example(row, prefix, reading)) is not None)


def _example(row: TextRow, prefix: str, reading: ExampleReading) -> TextToTextExample | None:
    """Return the example of a row; None for a row without a source or a target, which is counted as dropped."""
    if not isinstance(row.label, str | None):
        raise row.file.error(f"a text was expected as the target, not {type(row.label).__name__}", row.line)
    source, *prefixes = (text.strip() for text in row.texts)
    target = (row.label or "").strip()
    if prefixes and prefix:
        raise row.file.error(
            f"a column says what stands before each text, and so does the setting prefix={prefix!r}; leave out one "
            "of them (--columns names the columns to use)",
            row.line,
        )
    try:
        "".join((source, target, *prefixes)).encode()
    except UnicodeEncodeError:
        raise row.file.error(
            "half a surrogate pair stands in it; it was damaged where it was written", row.line
        ) from None
    for reason, text in zip(EMPTY, (source, target, *prefixes), strict=False):
        if not text:
            row.file.drop(reason, row.line)
            return None
    pair = row.file.pair(source, target, row.line)
    prefix = f"{prefixes[0]} " if prefixes else prefix
    example = TextToTextExample(pair.source, pair.target, pair.file, pair.line, prefix)
    reading.keep(*example.texts)
    reading.prefixes.update([prefix] if prefixes else [])
    return example


# The metadata are the special tokens.
ExampleData = TrainingData[TokenStore, PublishedTokenizer, GenerationDefaults]


def read_tokens(folder: Path) -> GenerationDefaults:
    """Return the tokens that begin, end and pad the texts of a run."""
    try:
        return GenerationDefaults.from_dict(read_mapping(folder / TOKENS))
    except ConfigError as error:
        raise DataError(f"{folder / TOKENS} cannot be read: {error}") from None


def validation_texts(folder: Path) -> Iterator[TextToTextExample]:
    """Yield the examples for validation, as they were read."""
    try:
        with (folder / TEXTS).open(encoding="utf-8") as file:
            for line in file:
                yield TextToTextExample(*json.loads(line))
    except (OSError, ValueError, TypeError) as error:
        raise DataError(f"{folder / TEXTS} cannot be read: {error}") from None


def split_text_pairs(
    files: Files, prefix: str, holdout: int
) -> tuple[Split[TextToTextExample], DataReport[ExampleReading]]:
    """Read everything once, and choose the sources for validation, whatever their order."""

    def read(paths: Sequence[str], reading: ExampleReading | None) -> Iterator[TextToTextExample]:
        return read_examples(paths, columns=files.columns, prefix=prefix, reading=reading)

    return split_pairs(files, read, ExampleReading, digest=lambda example: text_digest(example.text), holdout=holdout)


def create_tokenizer(config: TextToTextConfig, folder: Path, texts: Iterable[str]) -> None:
    """Write the base's tokenizer, tokens and weights; without a base, a tokenizer trained on the texts."""
    if config.base is not None:
        base = read_base(config.base)
        tokenizer, tokens = base.tokenizer, base.settings.tokens
        write_start_weights(folder / START_WEIGHTS, weights_of(base.module))
    else:
        pieces = config.tokenizer
        trained = Tokenizer.train(texts, vocab_size=pieces.vocab_size, min_frequency=pieces.min_frequency)
        fast = FastTokenizer.from_str(trained.to_json())
        names = (PAD_NAME, START_NAME, END_NAME)
        fast.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
        tokenizer, tokens = PublishedTokenizer(fast.to_str(), OWN_ROLES).surrounded((), (END,)), OWN_TOKENS
        (folder / START_WEIGHTS).unlink(missing_ok=True)
    tokenizer.save(folder / NAME)
    write_mapping(folder / TOKENS, tokens.to_dict())


def encode_examples(
    config: TextToTextConfig,
    tokenizer: PublishedTokenizer,
    tokens: GenerationDefaults,
    examples: Iterable[TextToTextExample],
    reading: ExampleReading,
    copy: TextIO | None = None,
) -> Iterator[Encoded]:
    """Yield the rows of a store, without the end tokens that a batch adds.

    Examples that are too long are cut or dropped, and counted in `reading`; the others are also written to `copy`.
    """
    special, first = {tokens.pad, *tokens.end}, tokens.forced_first
    unknown = tokenizer.id_of(tokenizer.role("unk_token") or "<unk>")
    limit = config.source_limit
    for example in examples:
        source, target = tokenizer.encode(example.text), tokenizer.encode(example.target)
        target = target if first is None or target[:1] == [first] else [first, *target]
        is_long = len(source) > limit
        reason = None
        if is_long and not config.data.cut:
            reason = "too many tokens in the source"
        elif len(target) > config.target_limit:
            reason = "too many tokens in the target"
        elif not special.isdisjoint(target[:-1]):
            reason = "a special token inside the target"
        if reason is not None:
            reading.drop_kept(reason, example.place, *example.texts)
            continue
        if is_long:
            source = truncate(tokenizer, source, limit)
            reading.note(f"sources truncated at {limit} tokens", example.place)
        if unknown is not None and unknown in target[:-1]:
            reading.note("targets with characters that the tokenizer does not know", example.place)
        if copy is not None:
            copy.write(f"{json.dumps(astuple(example))}\n")
        yield source[:-1], target[:-1], (example.file, example.line)
