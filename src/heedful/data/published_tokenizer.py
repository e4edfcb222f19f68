"""A tokenizer.json of any make, as other people's models bring it: text to ids and back as they were trained."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from tokenizers import AddedToken, Regex, decoders, models, pre_tokenizers, processors
from tokenizers import Tokenizer as FastTokenizer

from ..config import read_mapping, write_mapping
from ..errors import DataError
from ..files import read_limited, write_text
from .tokenizer import Piece, TokenizerError, check_unicode, contained_panics, read_fast

NAME, ROLES = "tokenizer.json", "tokenizer_config.json"
CODE = ("auto_map", "name_or_path")  # where others look for code to run, and where a file lay
MAX_GROWTH = 256  # characters that all replacements of a normalizer may make of one
Unit = Literal["words", "characters"]
BROKEN = "\ufffd"  # what a decoder writes for bytes that form no character
BYTE = re.compile(r"<0x[0-9A-F]{2}>")  # a token for a byte, of tokenizers that fall back to them


class EncodedWindow(NamedTuple):
    """A window of a text: its ids, the segment of each, and the characters it covers.

    Ids outside the text that is split have no characters.
    """

    ids: list[int]
    segments: list[int]
    offsets: list[tuple[int, int] | None]


class PublishedTokenizer:
    """Encodes as the file says, with its special tokens, but never pads or truncates.

    Some files truncate every text at 128 tokens silently; here the model refuses a text that is too long. `roles` is
    the content of tokenizer_config.json: which token pads, which is the mask.
    """

    def __init__(self, text: str, roles: Mapping[str, Any] | None = None) -> None:
        self._text = text
        self.roles = dict(roles or {})
        self._fast = read_fast(text)
        self._fast.no_padding()
        self._fast.no_truncation()
        self._special = {index for index, token in self._fast.get_added_tokens_decoder().items() if token.special}
        self._falls_back = "ByteFallback" in repr(self._fast.decoder)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a tokenizer.json, and the tokenizer_config.json beside it."""
        path = Path(path)
        roles = path.with_name(ROLES)
        settings = read_mapping(roles) if path.name == NAME and roles.is_file() else {}
        try:
            text = read_limited(path).decode("utf-8")
            _check_growth(text)
            return cls(text, {key: settings[key] for key in settings if key not in CODE})
        except OSError as error:
            raise DataError(f"{path}: {error.strerror}") from None
        except Exception as error:  # the library raises plain Exception for a file it cannot use
            raise DataError(f"{path}: not a tokenizer file that can be used: {error}") from None

    def surrounded(self, prefix: Sequence[int], suffix: Sequence[int]) -> PublishedTokenizer:
        """Return the same tokenizer with these ids around every text, and no others."""
        fast = FastTokenizer.from_str(self._text)
        around = {self.token_of(index): index for index in (*prefix, *suffix)}
        fast.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in around])
        template = [*map(self.token_of, prefix), "$A", *map(self.token_of, suffix)]
        fast.post_processor = processors.TemplateProcessing(single=template, special_tokens=list(around.items()))
        return PublishedTokenizer(fast.to_str(pretty=True), self.roles)

    def save(self, path: str | Path) -> list[str]:
        """Write the file unchanged, and its roles; return the names of the files."""
        path = Path(path)
        write_text(path, self._text)
        if not self.roles or path.name != NAME:
            return [path.name]
        write_mapping(path.with_name(ROLES), self.roles)
        return [path.name, ROLES]

    def role(self, name: str) -> str | None:
        """Return the token with a role, such as "mask_token", or None."""
        entry = self.roles.get(name)
        token = entry.get("content") if isinstance(entry, Mapping) else entry
        return token if isinstance(token, str) and self.id_of(token) is not None else None

    @property
    def vocab_size(self) -> int:
        """The number of ids; the largest id may be greater."""
        return self._fast.get_vocab_size()

    @property
    def largest(self) -> int:
        return max(self._fast.get_vocab().values(), default=-1)

    @property
    def kind(self) -> str:
        """What the tokens are: words, characters, bytes, or pieces of words by the name of their model, such as bpe."""
        model = json.loads(self._text)["model"]
        kind, n_single = str(model["type"]).lower(), sum(len(token) == 1 for token in model["vocab"])
        if model.get("merges") or kind not in ("bpe", "wordlevel"):
            return kind
        if model.get("ignore_merges") or (kind == "wordlevel" and n_single < len(model["vocab"]) - 1):
            return "words"
        return "characters" if n_single else "bytes"

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self._text.encode("utf-8")).hexdigest()

    def id_of(self, token: str) -> int | None:
        """Return the id of a token by its name, such as "[MASK]", or None."""
        return self._fast.token_to_id(token)

    def token_of(self, index: int) -> str:
        token = self._fast.id_to_token(index)
        if token is None:
            raise DataError(f"the tokenizer has no token with the id {index}")
        return token

    def encode(self, text: str) -> list[int]:
        return self.encode_pair(text)[0]

    def encode_pair(self, text: str, second: str | None = None) -> tuple[list[int], list[int]]:
        """Return the ids of one text or of two, and the segment of each id: 0 or 1."""
        check_unicode(text, second or "")
        encoding = self._encode(text, second)
        return encoding.ids, encoding.type_ids

    def encode_windows(
        self, text: str, second: str | None = None, *, max_tokens: int, stride: int
    ) -> list[EncodedWindow]:
        """Return a text, or the second of two, in as many windows as needed; neighbors share `stride` tokens.

        The first of two texts is in every window: a question before each part of a long passage. If it leaves too
        little room, fewer tokens are shared.
        """
        check_unicode(text, second or "")
        whole = self._encode(text, second)
        number = 0 if second is None else 1
        inner = [place for place, owner in enumerate(whole.sequence_ids) if owner == number]
        first, last = (inner[0], inner[-1] + 1) if inner else (len(whole.ids), len(whole.ids))
        room = max_tokens - (len(whole.ids) - len(inner))
        if room < 1:
            raise DataError(
                f"{len(whole.ids) - len(inner)} tokens are added around the text, and a window has {max_tokens}; "
                "shorten what comes before it"
            )
        step = max(1, room - stride)
        windows = []
        for begin in range(first, max(last, first + 1), step):
            parts = slice(0, first), slice(begin, min(begin + room, last)), slice(last, None)
            windows.append(
                EncodedWindow(
                    [index for part in parts for index in whole.ids[part]],
                    [segment for part in parts for segment in whole.type_ids[part]],
                    [span if part is parts[1] else None for part in parts for span in whole.offsets[part]],
                )
            )
            if begin + room >= last:
                break
        return windows

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of the ids, without special ids and without ids that have no token."""
        with contained_panics():
            if not self._falls_back:
                return self._fast.decode([int(index) for index in ids], skip_special_tokens=True)
            tokens = (self._fast.id_to_token(int(index)) for index in ids if index not in self._special)
            return self._fast.decoder.decode(list(_merge_broken_bytes(token for token in tokens if token is not None)))

    def continuation(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """Return the text that ids add to those before them: a decoder may drop the first space of a text."""
        start, whole = self.decode(before), self.decode([*before, *ids])
        return whole[len(start) :] if whole.startswith(start) else self.decode(ids)

    def readable(self, ids: Iterable[int]) -> list[Piece]:
        """Return the ids as text to show: ids that form one character are one piece, special ids have their names."""
        return list(self._readable([int(index) for index in ids]))

    def piece(self, before: Sequence[int], index: int) -> str:
        """Return one id as text to show after others, which decide whether a space precedes it."""
        return self._name(index) if self._is_silent(index) else self._piece(before, [index])

    def _encode(self, text: str, second: str | None) -> Any:
        try:
            with contained_panics():
                return self._fast.encode(text, second)
        except Exception as error:
            if type(error) is not Exception:  # the library raises it plain, as for a word without a token
                raise
            raise TokenizerError(f"the tokenizer cannot encode this text: {error}") from None

    def _readable(self, ids: Sequence[int]) -> Iterator[Piece]:
        stop = 0
        while (start := stop) < len(ids):
            stop = start + 1
            if self._is_silent(ids[start]):
                yield Piece(self._name(ids[start]), start, stop)
                continue
            text = self._piece(ids[:start], ids[start:stop])
            while BROKEN in text and stop - start < 4 and stop < len(ids) and not self._is_silent(ids[stop]):
                stop += 1  # a character has four bytes at most
                text = self._piece(ids[:start], ids[start:stop])
            if BROKEN in text:
                stop = start + 1
                text = self._piece(ids[:start], ids[start:stop])
            yield Piece(text, start, stop)

    def _piece(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """Return the text of ids after their last predecessor, which decides about spaces."""
        near = [index for index in before[-1:] if not self._is_silent(index)]
        text = self.continuation(near, ids) if near else self.decode(ids)
        return text or self._name(ids[0])  # a space at the beginning, which decoding drops

    def _is_silent(self, index: int) -> bool:
        return index in self._special or self._fast.id_to_token(index) is None

    def _name(self, index: int) -> str:
        return self._fast.id_to_token(index) or f"<{index}>"


def _check_growth(text: str) -> None:
    """Raise ValueError for a normalizer or decoder whose replacements make too much of a text."""
    values = json.loads(text)
    for part in ("normalizer", "decoder"):
        growth = math.prod(_growths(values.get(part)))
        if growth > MAX_GROWTH:
            raise ValueError(f"the replacements of its {part} make up to {growth:,} characters of one")


def _growths(part: Any) -> Iterator[int]:
    """Yield how many characters each replacement makes of one, at most."""
    for value in part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ():
        yield from _growths(value)
    if isinstance(part, Mapping) and part.get("type") == "Replace":
        pattern = part.get("pattern")
        literal = pattern.get("String") if isinstance(pattern, Mapping) else None
        replaced = max(1, len(literal)) if isinstance(literal, str) else 1
        yield max(1, -(-len(str(part.get("content", ""))) // replaced))


def tokenizer_of(tokens: Sequence[str], unknown: str, unit: Unit = "words") -> PublishedTokenizer:
    """Return a tokenizer for a list of tokens, as some engines store it. Other tokens become `unknown`.

    With "words", spaces separate the tokens of a text; with "characters", each character is a token.
    """
    places = {token: place for place, token in reversed(list(enumerate(tokens)))}
    fast = FastTokenizer(models.WordLevel(places, unk_token=unknown))
    if unit == "characters":
        fast.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
        fast.decoder = decoders.Fuse()
    else:
        fast.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PublishedTokenizer(fast.to_str(pretty=True))


def truncate(tokenizer: PublishedTokenizer, ids: list[int], limit: int) -> list[int]:
    """Return the beginning of a text, no longer than `limit`; its special tokens stay around it."""
    prefix, inner, suffix = _split_specials(tokenizer, ids)
    return [*prefix, *inner[: max(0, limit - len(prefix) - len(suffix))], *suffix]


def chunks(tokenizer: PublishedTokenizer, ids: list[int], limit: int) -> Iterator[list[int]]:
    """Yield a whole text in as few parts as `limit` allows, of nearly equal length, each with the special tokens."""
    prefix, inner, suffix = _split_specials(tokenizer, ids)
    room = max(1, limit - len(prefix) - len(suffix))
    count = -(-len(inner) // room)
    for part in range(count):
        start, stop = (len(inner) * edge // count for edge in (part, part + 1))
        yield [*prefix, *inner[start:stop], *suffix]


def _split_specials(tokenizer: PublishedTokenizer, ids: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Return the special tokens before a text, its own ids, and the special tokens after it."""
    around = tokenizer.encode("")
    # A text may itself begin as its end does, so a plain one is asked too.
    columns = zip(around, ids, tokenizer.encode("a"), strict=False)
    first = len(list(takewhile(lambda column: len(set(column)) == 1, columns)))
    last = len(ids) - (len(around) - first)
    return ids[:first], ids[first:last], ids[last:]


def _merge_broken_bytes(tokens: Iterable[str]) -> Iterator[str]:
    """Replace runs of bytes that form no whole characters by their decoded text: the library would lose all."""
    for are_bytes, run in groupby(tokens, lambda token: BYTE.fullmatch(token) is not None):
        row = list(run)
        text = bytes(int(token[3:5], 16) for token in row).decode("utf-8", errors="replace") if are_bytes else ""
        yield from [text] if BROKEN in text else row
