"""The tokens of a completion by name, with what the model gave to each and to others in its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from itertools import pairwise
from weakref import WeakKeyDictionary

from ..models import Served
from ..worker import ModelWorker, Token
from .asking import Asked, Prompt
from .replaying import AT_ONCE, Place, Replay
from .shaping import Mark

BROKEN = "\ufffd"  # what a part of a character decodes to
REPLAYS = 8  # of one model at once: each remembers all that it has read

_replays: WeakKeyDictionary[ModelWorker, asyncio.Semaphore] = WeakKeyDictionary()


class Marking:
    """For one completion, from its prompt on. The text is read once more only where that is needed."""

    def __init__(self, model: Served, prompt: Prompt, asked: Asked) -> None:
        self._model, self._prompt, self._asked = model, prompt, asked
        self._tokenizer = model.predictor.tokenizer
        self._replays = asked.echo or bool(asked.logprobs)
        self._last = prompt.ids[-1]

    def room(self) -> AbstractAsyncContextManager[None]:
        """Be within it from beginning to end: it waits while too many others are."""
        return _replays.setdefault(self._model.desk, asyncio.Semaphore(REPLAYS)) if self._replays else nullcontext()

    async def of_prompt(self) -> list[Mark]:
        """Its tokens, where they are echoed; others' answers go on while it is read."""
        ids = self._prompt.ids
        if not self._replays:
            return []
        self._replay = Replay(self._model.predictor, ids[0], self._asked.logprobs or 0)
        places: list[Place] = []
        for begin in range(1, len(ids), AT_ONCE):
            part = ids[begin : begin + AT_ONCE]
            places += await self._model.desk.call(partial(self._replay.follow, part))
        return await asyncio.to_thread(self._named, places) if self._asked.echo else []

    async def of(self, tokens: Sequence[Token]) -> list[Mark]:
        """Those that have just been written; where they stand is known to whoever shapes the text."""
        *before, self._last = self._last, *(token.id for token in tokens)
        if self._asked.logprobs:
            return await self._model.desk.call(partial(self._replayed, before, tokens))
        pairs = zip(before, tokens, strict=True)
        return [Mark(self._name(last, token.id), token.logprob) for last, token in pairs]

    def _replayed(self, before: Sequence[int], tokens: Sequence[Token]) -> list[Mark]:
        seen = self._replay.follow([token.id for token in tokens])
        return [
            self._mark(last, token.id, Place(token.logprob, place.top))
            for last, token, place in zip(before, tokens, seen, strict=True)
        ]

    def _named(self, places: Sequence[Place]) -> list[Mark]:
        """Where the tokeniser changes a text on reading it, the tokens' places are those in what it read."""
        ids, offsets = self._prompt.ids, self._offsets()
        first = Mark(self._name(None, ids[0]), None, offset=next(offsets))
        rest = zip(pairwise(ids), places, offsets, strict=True)
        return [first, *(self._mark(before, came, place, offset) for (before, came), place, offset in rest)]

    def _offsets(self) -> Iterator[int]:
        """Where each token of the prompt begins; one inside a character, where that does."""
        detokenizer, place = self._model.predictor.detokenizer([]), 0
        for token in self._prompt.ids:
            yield min(place, len(self._prompt.text))
            place += len(detokenizer.add(token))

    def _mark(self, before: int, came: int, place: Place, offset: int = 0) -> Mark:
        """With the most likely tokens, if any were asked for, and the one that came, whatever it was."""
        name = self._name(before, came)
        if not self._asked.logprobs:
            return Mark(name, place.logprob, None, offset)
        top: dict[str, float] = {}
        for index, logprob in place.top:
            top.setdefault(self._name(before, index), logprob)  # of two with one name the likelier
        return Mark(name, place.logprob, {**top, name: place.logprob}, offset)

    def _name(self, before: int | None, index: int) -> str:
        """As it reads behind another; a part of a character as the tokeniser calls it."""
        text: str = self._tokenizer.piece([] if before is None else [before], index)
        return self._tokenizer.token_of(index) if BROKEN in text else text
