"""Text-to-text data: the settings of a run and its base model; pairs of texts, read, split and encoded."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TextIO

from tokenizers import AddedToken
from tokenizers import Tokenizer as FastTokenizer

from ...config import Config, FamilyConfig, read_mapping, write_mapping
from ...core import EncoderDecoder
from ...data.columns import ColumnSelection, TableKind
from ...data.labeled_texts import TextRow, read_rows, text_digest
from ...data.pairs import Pair
from ...data.published_tokenizer import NAME, PublishedTokenizer, truncate
from ...data.report import PairReport
from ...data.store import Encoded, TokenStore
from ...data.text_tokenizers import END_NAME, PAD_NAME, START_NAME
from ...data.tokenizer import END, PAD, START, PiecesConfig, Tokenizer
from ...errors import ConfigError, DataError
from ...families import ComposedConfig, GenerationDefaults, T5Config, config_of
from ...families.encoder_decoder import EncoderDecoderTransformerConfig
from ...families.hf_io import read_checkpoint
from ...families.weights import weights_of
from ...generation import GenerationConfig
from ...training.config import TrainingConfig
from ..bundle import Bundle, is_bundle
from ..run import DataReport, Files, RunConfig, TrainingData
from ..run.data import START as START_WEIGHTS
from ..run.data import Split, write_start_weights
from ..seq2seq import length_setting, split_pairs
from .predictor import SOURCES, TextToTextGenerator

PRESET = "tiny"  # learns a small task in fewer steps than t5-tiny and bart-tiny
DEFAULT_MAX_TOKENS = 1024
FROM_SCRATCH = TrainingConfig(epochs=30, warmup_steps=400, validate_every=500)
FINE_TUNING = FROM_SCRATCH.changed(
    epochs=3, learning_rate=1e-4, warmup_steps=50, label_smoothing=0.0, betas=(0.9, 0.999), epsilon=1e-8
)

SOURCE, TARGET, PREFIX = "source", "target", "prefix"
EMPTY = ("empty source", "empty target", "empty prefix")  # why a row is dropped

# Common column names in headers, the likeliest first.
TARGETS = (
    *(TARGET, "output", "summary", "answer", "highlights", "response", "completion", "title", "headline"),
    *("요약", "번역", "답변", "제목"),
)
PREFIXES = (PREFIX, "task")
EXAMPLES = TableKind(
    SOURCE, TARGET, {SOURCE: SOURCES, TARGET: TARGETS, PREFIX: PREFIXES}, "article,summary", prefix=PREFIX
)
MAX_PREFIXES = 20  # that a report lists

TOKENS, TEXTS = "tokens.json", "valid.jsonl"  # in a run's data folder
OWN_ROLES = {"pad_token": PAD_NAME, "bos_token": START_NAME, "eos_token": END_NAME}
OWN_TOKENS = GenerationDefaults(start=START, end=(END,), pad=PAD, suppress_tokens=(PAD, START))


@dataclass(frozen=True, kw_only=True)
class ExamplesConfig(Config):
    """How long source and target may be, and how many are held out."""

    title: ClassVar[str] = "data"

    max_source_tokens: int | None = None  # The most tokens of a source, end included; None: 1024, or model.max_length
    max_target_tokens: int | None = None  # The same of a target. Longer pairs are dropped and counted
    cut: bool = False  # Read only the beginning of a long source instead of dropping the pair
    holdout: int = 1000  # Sources for validation, at most a twentieth, if there are no validation files

    def check(self) -> None:
        self.require_positive("holdout")
        for name in ("max_source_tokens", "max_target_tokens"):
            value = getattr(self, name)
            self.require(value is None or value >= 4, f"{name} must be at least 4, not {value}")


@dataclass(frozen=True, kw_only=True)
class TextToTextConfig(RunConfig):
    """The settings of a text-to-text run. From a `base` it takes config, tokenizer, weights and generation settings."""

    preset: ClassVar[str] = PRESET
    supports_r_drop: ClassVar[bool] = True

    prefix: str = ""  # Text before every source, in training and prediction
    base: str | None = None  # Folder of a model to start from, with its tokenizer; None starts from scratch
    data: ExamplesConfig = field(default_factory=ExamplesConfig)
    tokenizer: PiecesConfig = field(default_factory=PiecesConfig)
    model: FamilyConfig = field(default_factory=lambda: config_of(PRESET))
    training: TrainingConfig = field(default_factory=lambda: FROM_SCRATCH)
    generation: GenerationConfig = field(default_factory=lambda: GenerationConfig(beam=4))

    def check(self) -> None:
        self.require(
            isinstance(self.model, T5Config | EncoderDecoderTransformerConfig | ComposedConfig),
            f"a model of the family {self.model.title!r} does not map text to text; t5, bart, marian and original do",
        )
        self.require(
            getattr(self.model, "target_vocab_size", None) in (None, self.model.vocab_size),  # type: ignore[attr-defined]
            "source and target have one vocabulary; leave out model.target_vocab_size",
        )
        room = self._room
        for name in ("max_source_tokens", "max_target_tokens"):
            limit = getattr(self.data, name)
            self.require(
                room is None or limit is None or limit <= room,
                f"data.{name}={limit} is more than the model's max_length={room}",
            )

    @classmethod
    def settings_on_base(cls, base: str, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return prefix, model and settings of generation, but not the lengths: the new targets have their own."""
        model, changes = read_base(base), values.get("generation", {})
        generation = model.generation.changed(max_new_tokens=None, min_new_tokens=0)
        return {
            "prefix": values.get("prefix", model.settings.prefix),
            "generation": generation.changed(**changes) if isinstance(changes, Mapping) else changes,
            "model": model.config.changed(**values.get("model", {})),
        }

    @classmethod
    def default_training(cls, values: Mapping[str, Any]) -> TrainingConfig:
        return FROM_SCRATCH if values.get("base") is None else FINE_TUNING

    @property
    def _room(self) -> int | None:
        return getattr(self.model, "max_length", None)

    @property
    def source_limit(self) -> int:
        """The most tokens that a source may have."""
        return self.data.max_source_tokens or self._room or DEFAULT_MAX_TOKENS

    @property
    def target_limit(self) -> int:
        """The most tokens that a target may have."""
        return self.data.max_target_tokens or self._room or DEFAULT_MAX_TOKENS

    def model_for(self, vocab_size: int) -> FamilyConfig:
        """Return the model's config for a tokenizer; a base keeps its vocabulary."""
        return self.model if self.base is not None else self.model.changed(vocab_size=vocab_size)


def read_base(folder: str | Path) -> TextToTextGenerator:
    """Read a bundle of this task, or a published model in Hugging Face's layout, that training can start from."""
    folder = Path(folder)
    if is_bundle(folder):
        bundle = Bundle.read(folder)
        if bundle.task != TextToTextGenerator.task:
            raise ConfigError(f"{folder} is a model for {bundle.task}, and not for {TextToTextGenerator.task}")
        base = TextToTextGenerator.from_bundle(folder, bundle)
    else:
        checkpoint = read_checkpoint(folder)
        if not isinstance(checkpoint.module, EncoderDecoder):
            raise ConfigError(f"{folder} is of the family {checkpoint.config.family}, which has no encoder and decoder")
        base = TextToTextGenerator.from_checkpoint(checkpoint, folder)
    tokens = base.settings.tokens
    if not base.settings.joint:
        raise ConfigError(f"{folder} has a tokenizer for each side; training supports only models with one tokenizer")
    if not tokens.end or tokens.pad is None:
        missing = "end" if not tokens.end else "pad"
        raise ConfigError(f"{folder} does not say which token is the {missing}; its config.json should")
    if base.tokenizer.encode("")[-1:] != [tokens.end[0]]:
        name = base.tokenizer.token_of(tokens.end[0])
        raise DataError(f"{folder}: the tokenizer does not add the model's end token, {name!r}, to a text")
    return base


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

    Without `columns` (see ColumnSelection.of), a header or the keys of JSON objects name them. `prefix` stands before
    every source, unless a column has one for each, which a space follows. White space around a text is removed.

    >>> read_examples(["news.csv"], columns=("article", "summary"), prefix="summarize: ")
    """
    reading = ExampleReading() if reading is None else reading
    rows = read_rows(paths, ColumnSelection.of(EXAMPLES, columns), reading)  # errors in `columns` are raised at once
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

    def read(paths: Sequence[str], reading: ExampleReading) -> Iterator[TextToTextExample]:
        return read_examples(paths, columns=files.columns, prefix=prefix, reading=reading)

    return split_pairs(files, read, ExampleReading, digest=lambda example: text_digest(example.text), holdout=holdout)


def create_tokenizer(config: TextToTextConfig, folder: Path, texts: Iterable[str]) -> None:
    """Write the base's tokenizer, tokens and weights; without a base, a tokenizer trained on the texts."""
    if config.base is not None:
        base = read_base(config.base)
        tokenizer, tokens = base.tokenizer, base.settings.tokens
        write_start_weights(folder / START_WEIGHTS, weights_of(base.module))
    else:
        trained = Tokenizer.of(texts, config.tokenizer)
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
        reason = setting = None
        if is_long and not config.data.cut:
            reason, setting, length = "too many tokens in the source", "max_source_tokens", len(source)
        elif len(target) > config.target_limit:
            reason, setting, length = "too many tokens in the target", "max_target_tokens", len(target)
        elif not special.isdisjoint(target[:-1]):
            reason = "a special token inside the target"
        if reason is not None:
            reading.drop_kept(reason, example.place, *example.texts)
            if setting is not None and getattr(config.data, setting) is None:
                reading.advise(reason, length_setting(config, f"data.{setting}"), length, example.texts)
            continue
        if is_long:
            source = truncate(tokenizer, source, limit)
            reading.note(f"sources truncated at {limit} tokens", example.place)
        if unknown is not None and unknown in target[:-1]:
            reading.note("targets with characters that the tokenizer does not know", example.place)
        if copy is not None:
            copy.write(f"{json.dumps(astuple(example))}\n")
        yield source[:-1], target[:-1], (example.file, example.line)
