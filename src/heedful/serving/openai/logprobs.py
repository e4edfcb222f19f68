"""The tokens of a completion by name, with what the model gave to each and to others in its place.

To see what else it might have said, the model reads a text once more.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from ...tasks.language_model import CausalLanguageModel
from ..models import Served
from ..worker import ModelWorker, StreamedToken
from .parameters import CompletionParameters, Prompt

AT_ONCE = 128  # tokens: of each the whole vocabulary is weighed
IMPOSSIBLE = -9999.0  # as OpenAI writes it: JSON has no infinity


@dataclass(frozen=True)
class TokenLogprob:
    """A token as it reads, and where in the choice's text it begins. The first of all has no probability."""

    token: str
    logprob: float | None
    top: dict[str, float] | None = None
    offset: int = 0


class TokenScores(NamedTuple):
    """What a model gave to the token that came, and to the most likely ones."""

    logprob: float
    top: list[tuple[int, float]]


class Replay:
    """Reads along, a few tokens at a time. Beyond the context it goes on from the last half, as writing does."""

    def __init__(self, continuer: CausalLanguageModel, first: int, top: int) -> None:
        self._module, self._limit = continuer.module, continuer.settings.context
        self._device = next(self._module.parameters()).device
        self._top = top
        self._read: list[int] = []
        self._unread = first  # a token is read when the next one comes: after the last there may be no room
        self._cache = self._module.new_cache()

    @torch.inference_mode()
    def follow(self, tokens: Sequence[int]) -> list[TokenScores]:
        """What was given to each of the tokens that come next."""
        if not tokens:
            return []
        reading, self._unread = [self._unread, *tokens[:-1]], tokens[-1]
        places: list[TokenScores] = []
        while reading:
            room = self._room()
            logprobs = self._forward(reading[:room]).log_softmax(dim=-1).clamp(min=IMPOSSIBLE)
            came = tokens[len(places) : len(places) + len(logprobs)]
            token_logprobs = logprobs.gather(1, torch.tensor(came, device=self._device)[:, None])[:, 0].tolist()
            best = logprobs.topk(min(self._top, logprobs.shape[-1]))
            for logprob, ids, values in zip(token_logprobs, best.indices.tolist(), best.values.tolist(), strict=True):
                places.append(TokenScores(logprob, list(zip(ids, values, strict=True))))
            del reading[:room]
        return places

    def _room(self) -> int:
        """How many tokens can be read now; where the context is full, it is begun anew."""
        if self._limit is None:
            return AT_ONCE
        if self._cache.length == self._limit:
            self._cache = self._module.new_cache()
            again = max(1, self._limit // 2) - 1  # the next to be read belongs to the half
            if again:
                past, self._read = self._read[-again:], self._read[:-again]
                self._forward(past)
        return min(AT_ONCE, self._limit - self._cache.length)

    def _forward(self, tokens: Sequence[int]) -> Tensor:
        self._read += tokens
        logits: Tensor = self._module(torch.tensor([tokens], device=self._device), cache=self._cache)
        return logits[0].float()


BROKEN = "\ufffd"  # what a part of a character decodes to
REPLAYS = 8  # of one model at once: each remembers all that it has read

_replays: WeakKeyDictionary[ModelWorker, asyncio.Semaphore] = WeakKeyDictionary()


class LogprobTracker:
    """For one completion, from its prompt on. The text is read once more only where that is needed."""

    def __init__(self, model: Served, prompt: Prompt, parameters: CompletionParameters) -> None:
        self._model, self._prompt, self._parameters = model, prompt, parameters
        self._tokenizer = model.predictor.tokenizer
        self._replays = parameters.echo or bool(parameters.logprobs)
        self._last = prompt.ids[-1]

    def room(self) -> AbstractAsyncContextManager[None]:
        """Be within it from beginning to end: it waits while too many others are."""
        return _replays.setdefault(self._model.worker, asyncio.Semaphore(REPLAYS)) if self._replays else nullcontext()

    async def of_prompt(self) -> list[TokenLogprob]:
        """Its tokens, where they are echoed; others' answers go on while it is read."""
        ids = self._prompt.ids
        if not self._replays:
            return []
        self._replay = Replay(self._model.predictor, ids[0], self._parameters.logprobs or 0)
        places: list[TokenScores] = []
        for begin in range(1, len(ids), AT_ONCE):
            part = ids[begin : begin + AT_ONCE]
            places += await self._model.worker.call(partial(self._replay.follow, part))
        return await asyncio.to_thread(self._named, places) if self._parameters.echo else []

    async def of(self, tokens: Sequence[StreamedToken]) -> list[TokenLogprob]:
        """Those that have just been written; where they stand is known to whoever shapes the text."""
        *before, self._last = self._last, *(token.id for token in tokens)
        if self._parameters.logprobs:
            return await self._model.worker.call(partial(self._replayed, before, tokens))
        pairs = zip(before, tokens, strict=True)
        return [TokenLogprob(self._name(last, token.id), token.logprob) for last, token in pairs]

    def _replayed(self, before: Sequence[int], tokens: Sequence[StreamedToken]) -> list[TokenLogprob]:
        seen = self._replay.follow([token.id for token in tokens])
        return [
            self._mark(last, token.id, TokenScores(token.logprob, place.top))
            for last, token, place in zip(before, tokens, seen, strict=True)
        ]

    def _named(self, places: Sequence[TokenScores]) -> list[TokenLogprob]:
        """Where the tokeniser changes a text on reading it, the tokens' places are those in what it read."""
        ids, offsets = self._prompt.ids, self._offsets()
        first = TokenLogprob(self._name(None, ids[0]), None, offset=next(offsets))
        rest = zip(pairwise(ids), places, offsets, strict=True)
        return [first, *(self._mark(before, came, place, offset) for (before, came), place, offset in rest)]

    def _offsets(self) -> Iterator[int]:
        """Where each token of the prompt begins; one inside a character, where that does."""
        detokenizer, place = self._model.predictor.detokenizer([]), 0
        for token in self._prompt.ids:
            yield min(place, len(self._prompt.text))
            place += len(detokenizer.add(token))

    def _mark(self, before: int, came: int, place: TokenScores, offset: int = 0) -> TokenLogprob:
        """With the most likely tokens, if any were asked for, and the one that came, whatever it was."""
        name = self._name(before, came)
        if not self._parameters.logprobs:
            return TokenLogprob(name, place.logprob, None, offset)
        top: dict[str, float] = {}
        for index, logprob in place.top:
            top.setdefault(self._name(before, index), logprob)  # of two with one name the likelier
        return TokenLogprob(name, place.logprob, {**top, name: place.logprob}, offset)

    def _name(self, before: int | None, index: int) -> str:
        """As it reads behind another; a part of a character as the tokeniser calls it."""
        text: str = self._tokenizer.piece([] if before is None else [before], index)
        return self._tokenizer.token_of(index) if BROKEN in text else text
