"""Text to ids and back: byte-pair encoding, words, characters or bytes over the `tokenizers` library, losing nothing.

A piece is real text, its leading space included, so that joining pieces is decoding. Every text gets one leading
space on the way in and loses it on the way out: a word is the same piece at the start of a sentence as inside it.
A character too rare to have a piece is spelled in UTF-8 bytes. The ids: pad, start, end, the 256 bytes, the alphabet,
the merges or words. None of them can be written in a text: "<s>" typed by a person is three ordinary characters.
"""

import hashlib
import json
import unicodedata
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
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
_FIXED = ["<pad>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]

Kind = Literal["bpe", "words", "characters", "bytes"]

# A run of letters and "_" with the space before it; or any other visible character, likewise; or one white space.
# It is cut after 64 letters: text without spaces stays cheap, and no piece grows beyond reading.
_PATTERN = r" ?(?:[\p{L}\p{M}_]{1,64}|[^\s\p{L}\p{M}_])|\s"
_WORDS_PATTERN = r" ?\S{1,64}|\s"  # what stands between spaces, with the space before it

# What kind of tokenizer suits texts. Symbols are few words, each of them frequent.
_MOST_SYMBOLS = 500  # different words
_LEAST_REPEATS = 20  # of a word, on average
_MOST_LETTERS = 100  # different characters of texts that are spelled, such as strings of letters
_SHARE_UNREPEATED = 0.5  # of the running words of such texts occur once
_COUNTED = 200_000  # different words that are counted; a text with more is no list of symbols
_NFC = normalizers.NFC()

# Training counts characters while it reads, and so learns only at the end which are too rare for a piece.
# It makes this many merges more than asked, which then move up into the places of those characters.
_SPARE = 20_000


@dataclass(frozen=True, kw_only=True)
class PiecesConfig(Config):
    """How a tokenizer is trained: which pieces it learns."""

    title: ClassVar[str] = "tokenizer"

    # The pieces. bpe: frequent parts of words; words: whole words, for symbols and commands; characters; bytes. auto:
    # words or characters if the training texts are few symbols or strings of letters, otherwise bpe.
    kind: Literal["auto", "bpe", "words", "characters", "bytes"] = "auto"
    vocab_size: int = 8000  # The most pieces of a trained tokenizer, 3 special ones and 256 bytes included
    min_frequency: int = 2  # Rarer pieces and characters are not learned; they are spelled in smaller pieces or bytes

    def check(self) -> None:
        self.require_positive("min_frequency")
        self.require(
            self.vocab_size > FIRST_PIECE,
            f"vocab_size must be at least {FIRST_PIECE + 1}, which is 3 special ids, 256 bytes and the space, "
            f"not {self.vocab_size}",
        )


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig(PiecesConfig):
    """How the tokenizers of two languages are trained."""

    joint: bool = True  # One vocabulary for both languages, or one for each


class Piece(NamedTuple):
    """Text to show, and the positions `start` to `stop` of the ids it stands for."""

    text: str
    start: int
    stop: int


class Tokenizer:
    """A trained vocabulary. `encode` adds neither start nor end: that is the Batch's work."""

    pad: ClassVar[int] = PAD
    start: ClassVar[int] = START
    end: ClassVar[int] = END

    def __init__(
        self, pieces: Sequence[str], merges: Sequence[tuple[str, str]] = (), *, whole_words: bool = False
    ) -> None:
        """`pieces`: the alphabet, then what the merges make, in the order of their ids from 259 on.

        With `whole_words`, there are no merges: the pieces are whole words, and the characters that spell other words.
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
        """Learn a vocabulary in one pass over the texts. The same texts give the same vocabulary.

        Characters, words and pairs seen fewer than `min_frequency` times get no piece. A small corpus gives a smaller
        vocabulary than requested. With `kind="auto"`, `suitable_kind` chooses.
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
        """Learn a vocabulary as the settings say."""
        return cls.train(texts, vocab_size=config.vocab_size, min_frequency=config.min_frequency, kind=config.kind)

    @property
    def kind(self) -> Kind:
        """The kind of its pieces."""
        if self._whole_words:
            return "words"
        return "bpe" if self._merges else "characters" if len(self._pieces) > FIRST_PIECE else "bytes"

    @property
    def vocab_size(self) -> int:
        return len(self._pieces)

    @property
    def fingerprint(self) -> str:
        """A SHA-256 of everything that decides how a text is encoded."""
        pattern = _WORDS_PATTERN if self._whole_words else _PATTERN
        content = json.dumps([pattern, self._pieces, self._merges], ensure_ascii=True)
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, which is only normalized to NFC."""
        return self._fast.encode(_normalized(text)).ids

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Return the ids of many texts, faster than one by one."""
        return [encoding.ids for encoding in self._fast.encode_batch_fast([_normalized(text) for text in texts])]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids. Special ids are left out; invalid bytes become U+FFFD."""
        ids = self._checked(ids)
        text = "".join(piece.text for piece in self._readable(ids) if ids[piece.start] >= BYTE)
        return text.removeprefix(" ")

    def readable(self, ids: Iterable[int]) -> list[Piece]:
        """Return the ids as text to show: the bytes of one character are one piece, special ids have their names."""
        return list(self._readable(self._checked(ids)))

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Return the texts of `readable`: fewer than the ids if a character is spelled in bytes."""
        return [piece.text for piece in self.readable(ids)]

    def word_of(self, ids: Iterable[int]) -> list[int]:
        """Return for each id its word in `decode(ids).split()`; -1 for special ids and white space."""
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
        """Return the tokenizer as the `tokenizers` and `transformers` libraries read it."""
        return self._fast.to_str(pretty=True)

    def save(self, path: str | Path) -> list[str]:
        """Write a tokenizer.json; return the names of the files, like `PublishedTokenizer.save`."""
        write_text(path, self.to_json())
        return [Path(path).name]

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what `save` wrote. Any other tokenizer.json is an error: it would encode differently."""
        try:
            text = Path(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise DataError(f"{path}: the tokenizer cannot be read: {error}") from None
        try:
            model = json.loads(text)["model"]
            pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
            merges = [(left, right) for left, right in model["merges"]]
            loaded = cls(pieces[FIRST_PIECE:], merges, whole_words=model["ignore_merges"])
            same = json.loads(FastTokenizer.from_str(text).to_str()) == json.loads(loaded._fast.to_str())
        except Exception as error:  # the library raises plain Exception for a file it cannot use
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


def suitable_kind(characters: Mapping[str, int], word_counts: Mapping[str, int]) -> Kind:
    """Return the kind of tokenizer for texts with these counts of characters and of words between spaces.

    Words suit texts of few words that all occur often, such as commands; characters suit strings of few different
    letters that hardly ever repeat, such as codes; pieces suit everything else.
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
    """Return a text in NFC as Python defines it: 한 is one character, however it was typed.

    The library goes first: it sorts long runs of accents fast, Python does not.
    """
    if text.isascii():
        return text
    with suppress(UnicodeEncodeError):  # half a surrogate pair, which Python lets pass
        text = _NFC.normalize_str(text)
    return unicodedata.normalize("NFC", text)


def check_unicode(*texts: str) -> None:
    """Raise a DataError if a text contains half a surrogate pair, which no encoding can write."""
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
    """Return the pieces and merges that fit. No merge contains a rare character, since its parts are as frequent."""
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
        pieces[left + right] = None  # two merges may make the same piece
        fitting_merges.append((left, right))
    return list(pieces), fitting_merges


def _character(ids: Sequence[int], start: int) -> tuple[str, int]:
    """Return the character whose bytes begin at `start`, and where they end."""
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
