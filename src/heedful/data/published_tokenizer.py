"""A tokenizer.json of any make, as other people's models bring it: text to ids and back as they were trained."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tokenizers import AddedToken, processors
from tokenizers import Tokenizer as FastTokenizer

from ..config import read_mapping, write_mapping
from ..errors import DataError
from ..files import write_text
from .tokenizer import Piece

NAME, ROLES = "tokenizer.json", "tokenizer_config.json"
CODE = ("auto_map", "name_or_path")  # where others look for code to run, and where a file lay
LARGEST = 256 << 20  # bytes; the largest vocabularies in use take a tenth of it
BROKEN = "\ufffd"  # what a decoder writes for bytes that form no character


class PublishedTokenizer:
    """`encode` adds what the file says belongs around a text. It neither pads nor cuts, whatever the file says.

    A file may cut every text at 128 tokens without a word: a text that is too long is for the model to refuse.
    `roles` is what a tokenizer_config.json beside it says: which token pads, which stands for a gap.
    """

    def __init__(self, text: str, roles: Mapping[str, Any] | None = None) -> None:
        self._text = text
        self.roles = dict(roles or {})
        self._fast = FastTokenizer.from_str(text)
        self._fast.no_padding()
        self._fast.no_truncation()
        self._special = {index for index, token in self._fast.get_added_tokens_decoder().items() if token.special}

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file, and what is said of it beside it."""
        path = Path(path)
        roles = path.with_name(ROLES)
        said = read_mapping(roles) if path.name == NAME and roles.is_file() else {}
        try:
            if path.stat().st_size > LARGEST:
                raise DataError(f"{path}: {path.stat().st_size:,} bytes are more than a tokeniser has")
            return cls(path.read_text(encoding="utf-8"), {key: said[key] for key in said if key not in CODE})
        except DataError:
            raise
        except Exception as error:  # the library raises plain Exception for a file it cannot use
            raise DataError(f"{path}: not a tokeniser file that can be used: {error}") from None

    def surrounded(self, before: Sequence[int], after: Sequence[int]) -> PublishedTokenizer:
        """The same with these ids around every text, and no others."""
        fast = FastTokenizer.from_str(self._text)
        around = {self.token_of(index): index for index in (*before, *after)}
        fast.add_special_tokens([AddedToken(name, normalized=False, special=True) for name in around])
        template = [*map(self.token_of, before), "$A", *map(self.token_of, after)]
        fast.post_processor = processors.TemplateProcessing(single=template, special_tokens=list(around.items()))
        return PublishedTokenizer(fast.to_str(pretty=True), self.roles)

    def save(self, path: str | Path) -> list[str]:
        """Write it as it was read, and what is said of it; the names of the files."""
        path = Path(path)
        write_text(path, self._text)
        if not self.roles or path.name != NAME:
            return [path.name]
        write_mapping(path.with_name(ROLES), self.roles)
        return [path.name, ROLES]

    def role(self, name: str) -> str | None:
        """The token that has a role, such as "mask_token", if one is said to."""
        said = self.roles.get(name)
        token = said.get("content") if isinstance(said, Mapping) else said
        return token if isinstance(token, str) and self.id_of(token) is not None else None

    @property
    def vocab_size(self) -> int:
        """How many ids there are; the largest may be more."""
        return self._fast.get_vocab_size()

    @property
    def largest(self) -> int:
        """The largest id."""
        return max(self._fast.get_vocab().values(), default=-1)

    @property
    def fingerprint(self) -> str:
        """A sha256 over the file."""
        return hashlib.sha256(self._text.encode("utf-8")).hexdigest()

    def id_of(self, token: str) -> int | None:
        """The id of a token by its name, such as "[MASK]"."""
        return self._fast.token_to_id(token)

    def token_of(self, index: int) -> str:
        """The name of an id."""
        (index,) = self._checked([index])
        return str(self._fast.id_to_token(index))

    def encode(self, text: str) -> list[int]:
        """The ids of a text."""
        return self.encode_pair(text)[0]

    def encode_pair(self, text: str, second: str | None = None) -> tuple[list[int], list[int]]:
        """The ids of one text or of two, and which of them each belongs to: 0 or 1."""
        for part in (text, second or ""):
            _check(part)
        found = self._fast.encode(text, second)
        return found.ids, found.type_ids

    def decode(self, ids: Iterable[int]) -> str:
        """The text of the ids, special ones left out."""
        return self._fast.decode(self._checked(ids), skip_special_tokens=True)

    def continuation(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """The text that ids add to those before them: a decoder may drop the space at the beginning of a text."""
        start, whole = self.decode(before), self.decode([*before, *ids])
        return whole[len(start) :] if whole.startswith(start) else self.decode(ids)

    def readable(self, ids: Iterable[int]) -> list[Piece]:
        """The ids as text to show; several that spell one character are one piece, special ones have their names."""
        return list(self._readable(self._checked(ids)))

    def _readable(self, ids: Sequence[int]) -> Iterator[Piece]:
        stop = 0
        while (start := stop) < len(ids):
            stop = start + 1
            if ids[start] in self._special:
                yield Piece(self.token_of(ids[start]), start, stop)
                continue
            text = self._piece(ids[:start], ids[start:stop])
            while BROKEN in text and stop - start < 4 and stop < len(ids) and ids[stop] not in self._special:
                stop += 1  # a character has four bytes at most
                text = self._piece(ids[:start], ids[start:stop])
            if BROKEN in text:
                stop = start + 1
            yield Piece(text, start, stop)

    def _piece(self, before: Sequence[int], ids: Sequence[int]) -> str:
        """With a little of what stands before, which decides about spaces."""
        near = [index for index in before[-1:] if index not in self._special]
        text = self.continuation(near, ids) if near else self.decode(ids)
        return text or self.token_of(ids[0])  # a space at the beginning, which decoding drops

    def _checked(self, ids: Iterable[int]) -> list[int]:
        ids = [int(index) for index in ids]
        if wrong := [index for index in ids if self._fast.id_to_token(index) is None]:
            raise DataError(f"the tokeniser has no token with the id {wrong[0]}")
        return ids


def _check(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        why = f"half a surrogate pair stands at character {error.start} of the text; it was damaged where it was read"
        raise DataError(why) from None
