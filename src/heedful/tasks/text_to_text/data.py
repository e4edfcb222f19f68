"""Texts with what they are to become: read from tables and JSON lines, divided, and encoded into token stores."""

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
    """As of pairs; and how often a column said each prefix, and what else is worth knowing."""

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
) -> Iterator[TextToTextExample]:
    """The examples of files and folders, streamed; `reading` is told what is found and what is left out.

    Without `columns` (see ExampleColumns.of), a header or the keys of JSON lines say where they are. `prefix` stands
    before every source, unless a column says one for each: that one is followed by a space. The white space around a
    text is left out.

    >>> read_examples(["news.csv"], columns=("article", "summary"), prefix="summarize: ")
    """
    reading = ExampleReading() if reading is None else reading
    return _kept(read_rows(paths, ExampleColumns.of(columns), reading), prefix, reading)


def _kept(rows: Iterable[TextRow], prefix: str, reading: ExampleReading) -> Iterator[TextToTextExample]:
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
        found = TextToTextExample(pair.source, pair.target, pair.file, pair.line, f"{own[0]} " if own else prefix)
        reading.keep(*found.texts)
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


# The metadata are the tokens that begin, end and pad.
ExampleData = TrainingData[TokenStore, PublishedTokenizer, GenerationDefaults]


def read_tokens(folder: Path) -> GenerationDefaults:
    """The tokens that begin, end and pad in a run."""
    try:
        return GenerationDefaults.from_dict(read_mapping(folder / TOKENS))
    except ConfigError as error:
        raise DataError(f"{folder / TOKENS} cannot be read: {error}") from None


def validation_texts(folder: Path) -> Iterator[TextToTextExample]:
    """The examples to validate on, as they were read."""
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

    return split_pairs(files, read, ExampleReading, digest=lambda one: text_digest(one.text), holdout=holdout)


def settle_tokenizer(config: TextToTextConfig, folder: Path, texts: Iterable[str]) -> None:
    """The base's tokeniser, tokens and weights, or pieces learned from the texts, with their end behind a source."""
    if config.base is None:
        tokenizer, tokens = _learned(config, texts), OWN_TOKENS
        (folder / START_WEIGHTS).unlink(missing_ok=True)
    else:
        base = read_base(config.base)
        tokenizer, tokens = base.tokenizer, base.settings.tokens
        write_start_weights(folder / START_WEIGHTS, weights_of(base.module))
    tokenizer.save(folder / NAME)
    write_mapping(folder / TOKENS, tokens.to_dict())


def _learned(config: TextToTextConfig, texts: Iterable[str]) -> PublishedTokenizer:
    """Our own pieces, their special ones marked as such, and the end behind every text."""
    pieces = config.tokenizer
    learned = Tokenizer.train(texts, vocab_size=pieces.vocab_size, min_frequency=pieces.min_frequency)
    fast = FastTokenizer.from_str(learned.to_json())
    names = (PAD_NAME, START_NAME, END_NAME)
    fast.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    return PublishedTokenizer(fast.to_str(), OWN_ROLES).surrounded((), (END,))


class ExampleEncoder:
    """Examples to ids, without the end that a batch adds; what is too long is cut or left out, and counted."""

    def __init__(self, config: TextToTextConfig, tokenizer: PublishedTokenizer, tokens: GenerationDefaults) -> None:
        self.config, self.tokenizer, self.tokens = config, tokenizer, tokens
        self.marks = {tokens.pad, *tokens.end}
        self.unknown = tokenizer.id_of(tokenizer.role("unk_token") or "<unk>")

    def __call__(
        self, examples: Iterable[TextToTextExample], reading: ExampleReading, texts: TextIO | None = None
    ) -> Iterator[Encoded]:
        """What `TokenStore.write` takes; the examples that it is given are written as `texts` too."""
        limit, target_limit = self.config.source_limit, self.config.target_limit
        for one in examples:
            source, target = self.tokenizer.encode(one.text), self.target(one.target)
            long = len(source) > limit
            if fault := self._fault(long and not self.config.data.cut, target, target_limit):
                reading.drop_kept(fault, one.place, *one.texts)
                continue
            if long:
                source = truncate(self.tokenizer, source, limit)
                reading.note(f"sources cut at {limit} tokens", one.place)
            if self.unknown is not None and self.unknown in target:
                reading.note("targets with characters that the tokeniser does not know", one.place)
            if texts is not None:
                texts.write(f"{json.dumps(astuple(one))}\n")
            yield source[:-1], target, (one.file, one.line)

    def target(self, text: str) -> list[int]:
        """As its tokeniser gives it, begun with what every answer begins with; the end comes with the batch."""
        ids = self.tokenizer.encode(text)
        first = self.tokens.forced_first
        if first is not None and ids[:1] != [first]:
            ids = [first, *ids]
        return ids[:-1]

    def _fault(self, too_long: bool, target: list[int], limit: int) -> str | None:
        if too_long:
            return "too many tokens in the source"
        if len(target) + 1 > limit:
            return "too many tokens in the target"
        return None if self.marks.isdisjoint(target) else "a special token inside the target"
