"""Tokenizers learned from texts: for models that continue text, and for models that read it.

All are a tokenizer.json that anyone's library reads. Those for running text have characters or pieces of words (BPE)
for tokens and lose nothing: a text comes back as it went in, its characters composed (NFC). No space is put before a
text, since what is continued may begin inside a line. None of the special tokens can be written in a text.

Those for models that read put a start and an end around a text. A gap is written <mask> and takes the space before it
along, as the word that it stands for does. A space stands before the first word of a text, and not after a gap:
"a <mask>." ends as "a word." does.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as FastTokenizer

from ..errors import DataError
from .corpus import Passage
from .published_tokenizer import PublishedTokenizer
from .tokenizer import END, PAD, START, PiecesConfig, Tokenizer, TokenizerError, nfc

PAD_NAME, START_NAME, END_NAME, MASK_NAME, UNKNOWN_NAME = "<pad>", "<s>", "</s>", "<mask>", "<unk>"
ROLES = {"pad_token": PAD_NAME, "cls_token": START_NAME, "sep_token": END_NAME, "mask_token": MASK_NAME}
Ids = NDArray[np.int64]


def of_characters(alphabet: Iterable[str], *, end: bool) -> PublishedTokenizer:
    """Return a tokenizer of characters, ordered by code point; with `end`, its last token ends a document."""
    names = [*sorted(set(alphabet)), *([END_NAME] if end else [])]
    fast = FastTokenizer(models.WordLevel({name: index for index, name in enumerate(names)}, unk_token=""))
    fast.normalizer = normalizers.NFC()
    fast.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    fast.decoder = decoders.Fuse()
    return PublishedTokenizer(fast.to_str(pretty=True))


def of_pieces(texts: Iterable[str], *, vocab_size: int, min_frequency: int) -> PublishedTokenizer:
    """Learn BPE with byte fallback as for sentences, but without the space before a text."""
    learned = Tokenizer.train(texts, vocab_size=vocab_size, min_frequency=min_frequency)
    fast = FastTokenizer.from_str(learned.to_json())
    fast.normalizer = normalizers.NFC()
    fast.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    return PublishedTokenizer(fast.to_str(pretty=True))


@dataclass(frozen=True, kw_only=True)
class EncoderTokenizerConfig(PiecesConfig):
    """How the tokenizer of a text encoder is trained."""

    lowercase: bool = False  # Read capital letters as small ones, so that a word is one piece wherever it stands
    # With kind=auto, tokens are whole words if at most this share of all words will be unknown, estimated by the words
    # that occur once (Good and Turing). Unknown words are all one token, <unk>. 0: never
    max_unknown: float = 0.0

    def check(self) -> None:
        super().check()
        self.require_share("max_unknown")


def learn_tokenizer(texts: Iterable[str], config: EncoderTokenizerConfig) -> PublishedTokenizer:
    """Learn a tokenizer for encoders in one pass over the texts; the mask token comes after all pieces."""
    lower = normalizers.Sequence([normalizers.NFC(), normalizers.Lowercase()])
    if config.lowercase:
        texts = map(lower.normalize_str, texts)
    fast = None
    if config.kind == "auto" and config.max_unknown:
        texts = list(texts)  # they are read twice
        fast = _whole_words(texts, config)
    if fast is None:
        fast = FastTokenizer.from_str(Tokenizer.of(texts, config).to_json())
    fast.normalizer = lower if config.lowercase else normalizers.NFC()
    before = pre_tokenizers.Metaspace(" ", "first", split=False)  # the space before a text's first word
    fast.pre_tokenizer = pre_tokenizers.Sequence([before, fast.pre_tokenizer])
    around = [(START_NAME, START), (END_NAME, END)]
    fast.add_special_tokens(
        [AddedToken(name, normalized=False, special=True) for name, _ in ((PAD_NAME, PAD), *around)]
    )
    fast.add_special_tokens([AddedToken(MASK_NAME, lstrip=True, normalized=False, special=True)])
    fast.post_processor = processors.TemplateProcessing(
        single=f"{START_NAME} $A {END_NAME}",
        pair=f"{START_NAME} $A {END_NAME} $B:1 {END_NAME}:1",
        special_tokens=around,
    )
    return PublishedTokenizer(fast.to_str(pretty=True), ROLES)


def _whole_words(texts: Iterable[str], config: EncoderTokenizerConfig) -> FastTokenizer | None:
    """Return a tokenizer of the frequent words and of <unk>, or None if too many words would be unknown."""
    fast = FastTokenizer.from_str(Tokenizer([]).to_json())  # which says what a word is
    counts = Counter(word for text in texts for word, _ in fast.pre_tokenizer.pre_tokenize_str(f" {nfc(text)}"))
    once = sum(1 for count in counts.values() if count == 1)
    if not counts or once > config.max_unknown * counts.total():
        return None
    frequent = sorted((word for word in counts if counts[word] >= config.min_frequency), key=lambda word: -counts[word])
    names = [PAD_NAME, START_NAME, END_NAME, UNKNOWN_NAME, *frequent][: config.vocab_size]
    fast.model = models.WordLevel({name: index for index, name in enumerate(names)}, unk_token=UNKNOWN_NAME)
    fast.decoder = decoders.Sequence([decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    return fast


def end_of(tokenizer: PublishedTokenizer) -> int | None:
    """Return the id of the token that ends a document, or None."""
    return tokenizer.id_of(END_NAME)


def encode(tokenizer: PublishedTokenizer, text: str) -> list[int]:
    """Return the ids of a text; a character without a token is an error."""
    try:
        return tokenizer.encode(text)
    except TokenizerError:
        strange = [character for character in nfc(text) if tokenizer.id_of(character) is None]
        if not strange:
            raise
        raise DataError(unseen(strange[0])) from None


def unseen(character: str) -> str:
    """Return the error message for a character without a token."""
    return (
        f"the character {character!r} (U+{ord(character):04X}) was not in the text this model learned from, "
        "and it knows no others; leave it out, or train a model with BPE, which spells unknown characters in bytes"
    )


def encode_passages(tokenizer: PublishedTokenizer, passages: Iterable[Passage]) -> Iterator[tuple[Passage, Ids]]:
    """Yield each passage with its ids; for tokenizers of characters by table look-up."""
    alphabet = _alphabet(tokenizer)
    for passage in passages:
        if alphabet is None:
            yield passage, np.array(tokenizer.encode(passage.text), dtype=np.int64)
        else:
            yield passage, _looked_up(passage, alphabet)


def _alphabet(tokenizer: PublishedTokenizer) -> Ids | None:
    """Return the id of every code point (-1 for none) if tokens are characters, else None."""
    names = [tokenizer.token_of(index) for index in range(tokenizer.vocab_size)]
    if any(len(name) != 1 for name in names if name != END_NAME):
        return None
    table = np.full(0x110000, -1, dtype=np.int64)
    for index, name in enumerate(names):
        if name != END_NAME:
            table[ord(name)] = index
    return table


def _looked_up(passage: Passage, alphabet: Ids) -> Ids:
    points = np.frombuffer(passage.text.encode("utf-32-le"), dtype=np.uint32)
    ids: Ids = alphabet[points]
    if (missing := np.flatnonzero(ids < 0)).size:
        place = int(missing[0])
        line = passage.line + passage.text.count("\n", 0, place)
        raise DataError(f"{passage.file}:{line}: {unseen(passage.text[place])}")
    return ids
