"""Readable tokens: whole characters and syllables, and names for tokens that are not text.

Several tokens may spell one character, in bytes or in the letters of a syllable. The last of them shows it, those
before it a sign for a part of one: every character is there once, and the tokens stay as many as the model saw.
"""

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from itertools import takewhile
from typing import TypedDict

from ..data.published_tokenizer import BROKEN, PublishedTokenizer
from ..data.tokenizer import BYTE, FIRST_PIECE, Piece, Tokenizer
from ..errors import DataError

START_MARK, END_MARK = "▶", "■"
PART = "◌"  # of a letter: dotted, as fonts draw what a mark is to be put on
SPACES = {" ": "␣", "\n": "⏎", "\t": "⇥"}
JOINERS = {"\u200c": "‹ZWNJ›", "\u200d": "‹ZWJ›", "\ufe0e": "‹VS15›", "\ufe0f": "‹VS16›"}  # unseen between letters
SPACE_NAMES = " ▁Ġ"  # how tokenizers write a space
NEAR = 5  # tokens that decide how the last is spelled: a character has at most four bytes, with a space before it


class TokenDict(TypedDict):
    """One token of a document: its vocabulary `piece`, the `text` to show, and whether it is a `part` of a letter."""

    text: str
    piece: str
    word: int | None
    special: bool
    part: bool


def tokens_of(
    tokenizer: Tokenizer | PublishedTokenizer,
    ids: Sequence[int],
    *,
    start: int | None = None,
    ends: Collection[int] = (),
) -> list[TokenDict]:
    """Turn ids into readable tokens. `start` is marked at the first position, `ends` elsewhere; both may be one id.

    Words are those of `decode(ids).split()`, and a special token ends one.
    """
    tokens: list[TokenDict] = []
    word, inside = -1, False
    for text, first, stop in _whole(tokenizer.readable(ids)):
        is_start = first == 0 and ids[0] == start
        mark = START_MARK if is_start else END_MARK if ids[first] in ends else None
        silent = not tokenizer.decode([ids[first]])
        if silent and not text.strip(SPACE_NAMES):  # a space, which a decoder drops at the beginning of a text
            silent, text = False, " "
        special, blank = silent or mark is not None, text.isspace()
        inside = inside and not special and not text[0].isspace()
        if not special and not blank:
            word, inside = word + (not inside), True
        number = None if special or blank else word
        shares = [(mark or text, False)] if special else _shares(tokenizer, ids[first:stop], text)
        for index, (display, part) in zip(ids[first:stop], shares, strict=True):
            name = _name(tokenizer, index)
            tokens.append({"text": display, "piece": name, "word": number, "special": special, "part": part})
    return tokens


def token_text(tokenizer: Tokenizer | PublishedTokenizer, ids: Sequence[int], *, ends: Collection[int] = ()) -> str:
    """Return what the last id adds to the text before it, including a leading space.

    Where it ends within a character, that is \ufffd, and the token that completes the character adds all of it.
    """
    if ids[-1] in ends:
        return END_MARK
    text, start, stop = tokenizer.readable(ids[-NEAR:])[-1]
    if stop - start == 1 and BROKEN in tokenizer.decode(ids[-1:]):
        return BROKEN
    if not text.strip(SPACE_NAMES):
        return " " * len(text)
    if _name(tokenizer, ids[-1]).startswith(tuple(SPACE_NAMES)) and not text[0].isspace():
        text = " " + text  # a decoder drops it at the beginning of a text
    return _seen(unicodedata.normalize("NFC", text), SPACES)


def visible(text: str) -> str:
    """Strip a text and replace invisible characters by a sign or their code point."""
    bare = text.strip(" ")
    return _seen(bare) if bare else SPACES[" "] * len(text)


def _seen(text: str, unchanged: Collection[str] = ()) -> str:
    """Replace invisible characters; joiners between letters stay, because drawing needs them."""
    unchanged = {*unchanged, *JOINERS} if any(letter not in JOINERS for letter in text) else unchanged
    return "".join(letter if letter in unchanged else _letter(letter) for letter in text)


def _letter(letter: str) -> str:
    named = SPACES.get(letter) or JOINERS.get(letter)
    return letter if letter == " " else named or (letter if letter.isprintable() else f"‹U+{ord(letter):04X}›")


def _shares(tokenizer: Tokenizer | PublishedTokenizer, ids: Sequence[int], text: str) -> Iterator[tuple[str, bool]]:
    """Yield what each of several tokens adds to a text they spell together, and whether it ends within a letter."""
    bare, done = text.strip(" "), 0
    for n in range(1, len(ids)):
        so_far = unicodedata.normalize("NFC", tokenizer.decode(ids[:n])).strip(" ")
        alike = takewhile(lambda letters: letters[0] == letters[1], zip(so_far, bare, strict=False))
        before, done = done, max(done, len(list(alike)))
        yield visible(bare[before:done]) * (done > before) + PART, True
    broken = len(ids) == 1 and BROKEN in tokenizer.decode(ids)  # the rest of the letter never came
    yield (PART if broken else visible(bare[done:] if bare else text)), broken


def _whole(pieces: Sequence[Piece]) -> list[Piece]:
    """Compose pieces (NFC), merging a piece that begins inside a letter or syllable with the one before it."""
    whole: list[Piece] = []
    for piece in pieces:
        if whole and _continues(whole[-1].text, piece.text):
            whole[-1] = Piece(whole[-1].text + piece.text, whole[-1].start, piece.stop)
        else:
            whole.append(piece)
    return [piece._replace(text=unicodedata.normalize("NFC", piece.text)) for piece in whole]


def _continues(before: str, text: str) -> bool:
    """Return whether the last letter before and the first one here form one letter."""
    last = unicodedata.normalize("NFC", before)[-1:]
    return len(unicodedata.normalize("NFC", last + text[:1])) == 1


def _name(tokenizer: Tokenizer | PublishedTokenizer, index: int) -> str:
    if isinstance(tokenizer, Tokenizer) and BYTE <= index < FIRST_PIECE:
        return f"<0x{index - BYTE:02X}>"
    if isinstance(tokenizer, PublishedTokenizer):
        with suppress(DataError):  # a model may have a row for an id that is no token
            return tokenizer.token_of(index)
    return tokenizer.readable([index])[0].text.replace(" ", "▁")
