"""From files of examples to token stores in a run's folder, the validation texts beside them as they were."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Self, TextIO

from tokenizers import AddedToken
from tokenizers import Tokenizer as FastTokenizer

from ...config import read_mapping, write_mapping
from ...data.batch import Marks
from ...data.fitting import shortened
from ...data.published_tokenizer import NAME, PublishedTokenizer
from ...data.reader_tokenizer import END_NAME, PAD_NAME, START_NAME
from ...data.store import Encoded, TokenStore
from ...data.tokenizer import END, PAD, START, Tokenizer
from ...errors import ConfigError, DataError
from ...families import GenerationDefaults
from ...families.weights import weights_of
from ...files import replacing, sha256_of
from ..reading_data import START as WEIGHTS
from ..reading_data import TRAIN, VALID, ReadingData
from ..run import Files, TooLittleDataError
from ..starting import write_start
from .base import read_base
from .config import TextToTextConfig
from .examples import Example, ExampleReading
from .splitting import ExampleReadings, split

TOKENS, TEXTS = "tokens.json", "valid.jsonl"
OWN_ROLES = {"pad_token": PAD_NAME, "bos_token": START_NAME, "eos_token": END_NAME}
OWN_TOKENS = GenerationDefaults(start=START, end=(END,), pad=PAD, suppress_tokens=(PAD, START))


@dataclass(frozen=True, eq=False)
class Prepared(ReadingData):
    """A row is a source and a target without the tokens that a batch adds."""

    @classmethod
    def open(cls, folder: Path) -> Self:
        """What `prepare` has written; DataError where it is not whole."""
        found = super().open(folder)
        if found.tokens.start is None or len(list(found._texts())) != len(found.valid):
            raise DataError(f"{folder}: the validation texts or the tokens are not what was written")
        return found

    @cached_property
    def tokens(self) -> GenerationDefaults:
        """Those that begin, end and pad."""
        try:
            return GenerationDefaults.from_dict(read_mapping(self.folder / TOKENS))
        except ConfigError as error:
            raise DataError(f"{self.folder / TOKENS} cannot be read: {error}") from None

    @property
    def marks(self) -> Marks:
        """What a batch adds."""
        return marks_of(self.tokens)

    def valid_examples(self, limit: int) -> list[Example]:
        """At most `limit` of those to validate on, spread evenly over all: the texts as they were read."""
        count = min(len(self.valid), limit)
        wanted = {index * len(self.valid) // count for index in range(count)}
        return [one for row, one in enumerate(self._texts()) if row in wanted]

    def identity(self) -> dict[str, str]:
        """The validation texts and the tokens too."""
        return super().identity() | {
            "validation texts": sha256_of(self.folder / TEXTS)[:16],
            "tokens": json.dumps(self.marks),
        }

    def _texts(self) -> Iterator[Example]:
        try:
            with (self.folder / TEXTS).open(encoding="utf-8") as file:
                for line in file:
                    yield Example(*json.loads(line))
        except (OSError, ValueError, TypeError) as error:
            raise DataError(f"{self.folder / TEXTS} cannot be read: {error}") from None


def marks_of(tokens: GenerationDefaults) -> Marks:
    """The tokens that a model says it begins, ends and pads with."""
    assert tokens.pad is not None  # a base without them is refused
    assert tokens.start is not None
    return Marks(tokens.pad, tokens.start, tokens.end[0])


def prepare(
    config: TextToTextConfig, files: Files, folder: Path, *, keep: bool = False
) -> tuple[Prepared, ExampleReadings]:
    """Read, settle the tokeniser, which `keep` leaves as it is, and write the stores."""
    examples, readings = split(files, config.prefix, config.data.holdout)
    if not keep:
        _settle(config, folder, (text for one in examples.train() for text in (one.text, one.target)))
    tokenizer = PublishedTokenizer.load(folder / NAME)
    encoder = Encoder(config, tokenizer, GenerationDefaults.from_dict(read_mapping(folder / TOKENS)))
    size = tokenizer.largest + 1
    try:
        train = TokenStore.write(folder / TRAIN, encoder(examples.train(), readings.train), vocab_size=size)
        with replacing(folder / TEXTS) as partial, partial.open("w", encoding="utf-8", newline="\n") as file:
            told = readings.valid or readings.train
            valid = TokenStore.write(folder / VALID, encoder(examples.valid(), told, file), vocab_size=size)
    except DataError as error:
        raise TooLittleDataError(str(error), readings) from None
    if readings.valid is None:
        readings = replace(readings, held_out=len(valid))
    return Prepared(folder, tokenizer, train, valid), readings


def _settle(config: TextToTextConfig, folder: Path, texts: Iterable[str]) -> None:
    """The base's tokeniser, tokens and weights, or pieces learned from the texts, with their end behind a source."""
    if config.base is None:
        tokenizer, tokens = _learned(config, texts), OWN_TOKENS
        (folder / WEIGHTS).unlink(missing_ok=True)
    else:
        base = read_base(config.base)
        tokenizer, tokens = base.tokenizer, base.settings.tokens
        write_start(folder / WEIGHTS, weights_of(base.module))
    tokenizer.save(folder / NAME)
    write_mapping(folder / TOKENS, tokens.to_dict())


def _learned(config: TextToTextConfig, texts: Iterable[str]) -> PublishedTokenizer:
    """The house's pieces, their special ones marked as such, and the end behind every text."""
    pieces = config.tokenizer
    learned = Tokenizer.train(texts, vocab_size=pieces.vocab_size, min_frequency=pieces.min_frequency)
    fast = FastTokenizer.from_str(learned.to_json())
    names = (PAD_NAME, START_NAME, END_NAME)
    fast.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in names])
    return PublishedTokenizer(fast.to_str(), OWN_ROLES).surrounded((), (END,))


class Encoder:
    """Examples to ids, without the end that a batch adds; what is too long is cut or left out, and counted."""

    def __init__(self, config: TextToTextConfig, tokenizer: PublishedTokenizer, tokens: GenerationDefaults) -> None:
        self.config, self.tokenizer, self.tokens = config, tokenizer, tokens
        self.marks = {tokens.pad, *tokens.end}
        self.unknown = tokenizer.id_of(tokenizer.role("unk_token") or "<unk>")

    def __call__(
        self, examples: Iterable[Example], reading: ExampleReading, texts: TextIO | None = None
    ) -> Iterator[Encoded]:
        """What `TokenStore.write` takes; the examples that it is given are written as `texts` too."""
        limit, target_limit = self.config.source_limit, self.config.target_limit
        for one in examples:
            source, target = self.tokenizer.encode(one.text), self.target(one.target)
            long = len(source) > limit
            if fault := self._fault(long and not self.config.data.cut, target, target_limit):
                reading.drop_kept(fault, one.pair)
                continue
            if long:
                source = shortened(self.tokenizer, source, limit)
                reading.note(f"sources cut at {limit} tokens", one)
            if self.unknown is not None and self.unknown in target:
                reading.note("targets with characters that the tokeniser does not know", one)
            if texts is not None:
                texts.write(f"{json.dumps([one.prefix, one.source, one.target, one.file, one.line])}\n")
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
