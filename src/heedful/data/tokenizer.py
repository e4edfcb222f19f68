"""Lossless tokenizers on top of the `tokenizers` library: byte-pair encoding (BPE), words, characters or bytes.

A piece is literal text, including its leading space, so decoding only concatenates pieces. Encoding prepends a space
to every text and decoding removes it, so a word has the same piece at the start of a sentence as inside it. A
character too rare for a piece of its own is encoded as its UTF-8 bytes.

The ids are, in this order: pad, start, end, the 256 bytes, the alphabet, then merged pieces or words. A text cannot
contain a special token: a literal "<s>" is encoded as three ordinary characters.
"""

import hashlib
import json
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, Self

from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, trainers
from tokenizers import Tokenizer as FastTokenizer

from ..config import Config
from ..errors import ConfigError, DataError
from ..files import write_text

PAD, START, END = 0, 1, 2
BYTE = 3  # the id of the byte 0; the other 255 follow
FIRST_PIECE = BYTE + 256
MAX_VOCAB_SIZE = 1_000_000  # the largest in use have as many; the trainer reserves memory for all
_FIXED = ["<pad>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]

Kind = Literal["bpe", "words", "characters", "bytes"]

# A run of letters and "_", or one other visible character, each with an optional space before it; or one white-space
# character. Runs end after 64 letters, which keeps text without spaces fast to encode and pieces readable.
_PATTERN = r" ?(?:[\p{L}\p{M}_]{1,64}|[^\s\p{L}\p{M}_])|\s"
_WORDS_PATTERN = r" ?\S{1,64}|\s"  # a run without white space, with an optional space before it

# Thresholds of `suitable_kind`. Words suit a small vocabulary of symbols ...
_MOST_SYMBOLS = 500  # maximum number of distinct words
_LEAST_REPEATS = 20  # minimum mean number of occurrences per word
# ... and characters suit strings over a small alphabet.
_MOST_LETTERS = 100  # maximum number of distinct characters
_SHARE_UNREPEATED = 0.5  # more than this share of all words must occur only once
_COUNTED = 200_000  # counting stops at this many distinct words, far more than a vocabulary of symbols has
_NFC = normalizers.NFC()

# Training counts characters while it reads, so it knows only afterwards which ones are too rare for a piece. It
# therefore learns this many extra merges, which take the ids that those characters leave free.
_SPARE = 20_000


@dataclass(frozen=True, kw_only=True)
class PiecesConfig(Config):
    """The settings for training a tokenizer."""

    title: ClassVar[str] = "tokenizer"

    # The pieces. bpe: frequent parts of words; words: whole words, for symbols and commands; characters; bytes. auto:
    # words or characters if the training texts are few symbols or strings of letters, otherwise bpe.
    kind: Literal["auto", "bpe", "words", "characters", "bytes"] = "auto"
    vocab_size: int = 8000  # The most pieces of a trained tokenizer, 3 special ones and 256 bytes included
    min_frequency: int = 2  # Rarer pieces and characters are not learned; they are spelled in smaller pieces or bytes

    def check(self) -> None:
        self.require_positive("min_frequency")
        self.require(
            self.vocab_size <= MAX_VOCAB_SIZE,
            f"vocab_size must be at most {MAX_VOCAB_SIZE:,}, not {self.vocab_size:,}",
        )
        self.require(
            self.vocab_size > FIRST_PIECE,
            f"vocab_size must be at least {FIRST_PIECE + 1}, which is 3 special ids, 256 bytes and the space, "
            f"not {self.vocab_size}",
        )


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(PiecesConfig):
    """The settings for training the tokenizers of two languages."""

    joint: bool = True  # One vocabulary for both languages, or one for each


class Piece(NamedTuple):
    """A readable piece of text and the range `start` to `stop` of the ids that it represents."""

    text: str
    start: int
    stop: int


class Tokenizer:
    """A trained vocabulary. `encode` adds no start or end token; `Batch` does."""

    pad: ClassVar[int] = PAD
    start: ClassVar[int] = START
    end: ClassVar[int] = END

    def __init__(
        self, pieces: Sequence[str], merges: Sequence[tuple[str, str]] = (), *, whole_words: bool = False
    ) -> None:
        """Build a tokenizer from its vocabulary.

        Args:
            pieces: The alphabet, then the results of the merges, in the order of their ids from 259 on.
            merges: The BPE merges, in the order in which they were learned.
            whole_words: Whether the pieces are whole words instead, with no merges. Other words are encoded as
                characters of the alphabet.
        """
        self._pieces = [*_FIXED, *pieces]
        self._merges = list(merges)
        self._whole_words = whole_words
        vocabulary = {piece: index for index, piece in enumerate(self._pieces)}
        self._fast = _pipeline(
            models.BPE(vocabulary, self._merges, byte_fallback=True, ignore_merges=whole_words), whole_words
        )

    @classmethod
    def train(
        cls,
        texts: Iterable[str],
        *,
        vocab_size: int = 8000,
        min_frequency: int = 2,
        kind: Literal["auto", "bpe", "words", "characters", "bytes"] = "bpe",
    ) -> Self:
        """Learn a vocabulary in one pass over the texts; the result is deterministic.

        A small corpus may give a smaller vocabulary than requested.

        Args:
            texts: The training texts.
            vocab_size: The maximum size of the vocabulary, including the 3 special tokens and 256 bytes.
            min_frequency: Characters, words and pairs that occur less often get no piece.
            kind: What a piece is; "auto" lets `suitable_kind` decide.
        """
        config = PiecesConfig(vocab_size=vocab_size, min_frequency=min_frequency, kind=kind)
        characters, word_counts = Counter[str](), Counter[str]()
        trainer = trainers.BpeTrainer(
            vocab_size=vocab_size + _SPARE, min_frequency=min_frequency, show_progress=False, initial_alphabet=[" "]
        )
        learner = _pipeline(models.BPE())

        def count() -> Iterator[str]:
            for text in map(_normalized, texts):
                characters.update(text)
                if kind == "words" or (kind == "auto" and len(word_counts) < _COUNTED):
                    word_counts.update(text.split())
                yield text

        if kind in ("auto", "bpe"):
            learner.train_from_iterator(count(), trainer)
        else:
            deque(count(), maxlen=0)
        suitable = suitable_kind(characters, word_counts) if kind == "auto" else kind
        if suitable == "bytes":
            return cls([])
        alphabet = sorted({" "} | {character for character, times in characters.items() if times >= min_frequency})
        if suitable == "words":
            frequent = [f" {word}" for word, times in word_counts.most_common() if times >= min_frequency]
            return cls(list(dict.fromkeys([*alphabet, *frequent]))[: vocab_size - FIRST_PIECE], whole_words=True)
        merges = json.loads(learner.to_str())["model"]["merges"] if suitable == "bpe" else []
        return cls(*_fitted(alphabet, [(left, right) for left, right in merges], config))

    @classmethod
    def of(cls, texts: Iterable[str], config: PiecesConfig) -> Self:
        """Learn a vocabulary with these settings."""
        return cls.train(texts, vocab_size=config.vocab_size, min_frequency=config.min_frequency, kind=config.kind)

    @property
    def kind(self) -> Kind:
        """What a piece is."""
        if self._whole_words:
            return "words"
        return "bpe" if self._merges else "characters" if len(self._pieces) > FIRST_PIECE else "bytes"

    @property
    def vocab_size(self) -> int:
        return len(self._pieces)

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of everything that determines how a text is encoded."""
        pattern = _WORDS_PATTERN if self._whole_words else _PATTERN
        content = json.dumps([pattern, self._pieces, self._merges], ensure_ascii=True)
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. The only normalization is NFC."""
        return self._fast.encode(_normalized(text)).ids

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Return the ids of each text; faster than calling `encode` for each."""
        return [encoding.ids for encoding in self._fast.encode_batch_fast([_normalized(text) for text in texts])]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids. Special tokens are skipped; invalid UTF-8 becomes U+FFFD."""
        ids = self._checked(ids)
        text = "".join(piece.text for piece in self._readable(ids) if ids[piece.start] >= BYTE)
        return text.removeprefix(" ")

    def readable(self, ids: Iterable[int]) -> list[Piece]:
        """Return readable pieces: the bytes of a character are joined, and special tokens appear by name."""
        return list(self._readable(self._checked(ids)))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the texts of `readable`; fewer than the ids if a character is encoded as bytes."""
        return [piece.text for piece in self.readable(ids)]

    def word_of(self, ids: Iterable[int]) -> list[int]:
        """Return the index of each id's word in `decode(ids).split()`; -1 for special tokens and white space."""
        ids = self._checked(ids)
        word_numbers = [-1] * len(ids)
        word, inside = -1, False
        for text, start, stop in self._readable(ids):
            if ids[start] < BYTE:
                continue
            inside = inside and not text[0].isspace()
            if not text.isspace():
                word += not inside
                inside = True
                word_numbers[start:stop] = [word] * (stop - start)
        return word_numbers

    def to_json(self) -> str:
        """Return the tokenizer.json that the `tokenizers` and `transformers` libraries read."""
        return self._fast.to_str(pretty=True)

    def save(self, path: str | Path) -> list[str]:
        """Write a tokenizer.json and return the names of the files written, like `PublishedTokenizer.save`."""
        write_text(path, self.to_json())
        return [Path(path).name]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Load a tokenizer.json written by `save`.

        Raises:
            DataError: If the file is any other tokenizer.json, which could encode texts differently.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: the tokenizer cannot be read: {error}") from None
        try:
            model = json.loads(text)["model"]
            pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
            if sorted(model["vocab"].values()) != list(range(len(pieces))):  # the library counts to the largest id
                raise ValueError("the ids of its pieces are not 0, 1, 2, …")
            merges = [(left, right) for left, right in model["merges"]]
            loaded = cls(pieces[FIRST_PIECE:], merges, whole_words=model["ignore_merges"])
            same = json.loads(read_fast(text).to_str()) == json.loads(loaded._fast.to_str())
        except Exception as error:  # `tokenizers` raises a plain Exception for an invalid file
            raise DataError(f"{path}: not a tokenizer file: {error}") from None
        if not same:
            raise DataError(f"{path}: not a tokenizer that Heedful wrote, or it was changed; train a new one")
        return loaded

    def _checked(self, ids: Iterable[int]) -> list[int]:
        ids = [int(index) for index in ids]
        if wrong := [index for index in ids if not 0 <= index < self.vocab_size]:
            raise DataError(f"no piece has the id {wrong[0]}; allowed: 0 to {self.vocab_size - 1}")
        return ids

    def _readable(self, ids: Sequence[int]) -> Iterator[Piece]:
        stop = 0
        while (start := stop) < len(ids):
            if BYTE <= ids[start] < FIRST_PIECE:
                text, stop = _character(ids, start)
            else:
                text, stop = self._pieces[ids[start]], start + 1
            yield Piece(text, start, stop)


class TokenizerError(DataError):
    """A text has a character or a word for which the tokenizer has no token."""


@contextmanager
def contained_panics(what: str = "the tokenizer cannot process this text") -> Iterator[None]:
    """Raise DataError where the library panics, which no `except Exception` stops: for some regular expressions."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise DataError(f"{what}: {error!s:.200}") from None


def read_fast(text: str) -> FastTokenizer:
    """Return the library's tokenizer for a tokenizer.json; for some invalid parts the library panics."""
    with contained_panics("a part of it is not valid"):
        return FastTokenizer.from_str(text)


def suitable_kind(characters: Mapping[str, int], word_counts: Mapping[str, int]) -> Kind:
    """Choose the kind of tokenizer from the counts of the characters and of the words (separated by white space).

    Whole words suit a small vocabulary whose words all occur often, such as commands. Characters suit strings over a
    small alphabet that rarely repeat, such as codes. BPE suits everything else.
    """
    total = sum(word_counts.values())
    if not total:
        return "bpe"
    if len(word_counts) <= _MOST_SYMBOLS and total >= _LEAST_REPEATS * len(word_counts):
        return "words"
    unrepeated = sum(1 for times in word_counts.values() if times == 1)
    if len(characters) <= _MOST_LETTERS and unrepeated > _SHARE_UNREPEATED * total:
        return "characters"
    return "bpe"


def _pipeline(model: models.BPE, whole_words: bool = False) -> FastTokenizer:
    fast = FastTokenizer(model)
    fast.normalizer = normalizers.Sequence([_NFC, normalizers.Prepend(" ")])
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(_WORDS_PATTERN if whole_words else _PATTERN), "isolated")
    fast.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return fast


def nfc(text: str) -> str:
    """Return a text in Python's NFC, in which 한 is one character however it was typed.

    `tokenizers` normalizes first, because Python is slow at sorting long runs of combining marks.
    """
    if text.isascii():
        return text
    with suppress(UnicodeEncodeError):  # a lone surrogate, which Python accepts
        text = _NFC.normalize_str(text)
    return unicodedata.normalize("NFC", text)


def check_unicode(*texts: str) -> None:
    """Raise a DataError if a text contains a lone surrogate, which cannot be encoded as UTF-8."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise DataError(
                f"half a surrogate pair, U+{ord(text[error.start]):04X}, is at character {error.start} of the text; "
                "it is not a character, so the text was damaged when it was written or read"
            ) from None


def _normalized(text: str) -> str:
    if text.isascii():
        return text
    check_unicode(text)
    return nfc(text)


def _fitted(
    alphabet: list[str], merges: list[tuple[str, str]], config: PiecesConfig
) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the pieces and merges that fit into the vocabulary.

    No merge contains a rare character: both parts of a merge are at least as frequent as the merge.
    """
    room = config.vocab_size - FIRST_PIECE
    if len(alphabet) > room:
        raise ConfigError(
            f"tokenizer: vocab_size {config.vocab_size} has no room for the {len(alphabet)} characters seen at least "
            f"{config.min_frequency} times; it must be at least {len(alphabet) + FIRST_PIECE}, or raise min_frequency"
        )
    pieces, fitting_merges = dict.fromkeys(alphabet), []
    for left, right in merges:
        if len(pieces) == room:
            break
        pieces[left + right] = None  # two merges may give the same piece
        fitting_merges.append((left, right))
    return list(pieces), fitting_merges


def _character(ids: Sequence[int], start: int) -> tuple[str, int]:
    """Decode the character whose bytes begin at `start`; return it and the index after its last byte."""
    spelled = bytearray()
    for stop, index in enumerate(ids[start : start + 4], start + 1):
        if not BYTE <= index < FIRST_PIECE:
            break
        spelled.append(index - BYTE)
        try:
            return spelled.decode("utf-8"), stop
        except UnicodeDecodeError:
            continue
    return "\ufffd", start + 1
