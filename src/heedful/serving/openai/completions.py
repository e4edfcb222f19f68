"""The completions of a request, written side by side: whole, or as events."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from ..house import House
from ..models import Served
from .arriving import merged
from .asking import Asked
from .replies import Choice, Completion, Logprobs, Usage
from .shaping import Bit, Mark
from .writing import Writing


class Completions:
    """All that one request asks for."""

    def __init__(self, model: Served, asked: Asked, house: House) -> None:
        self._model, self._asked, self._metrics = model, asked, house.metrics
        self._writings = [Writing(model, prompt, asked, seed) for prompt, seed in asked.draws()]
        made = f"{model.name} {model.created} {house.settings.precision}"
        self._shell = Completion(
            id=f"cmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=model.name,
            system_fingerprint=f"fp_{hashlib.sha256(made.encode()).hexdigest()[:12]}",
            choices=[],
        )

    async def whole(self) -> Completion:
        """Everything at once; of more than were asked for, the most likely a token."""
        found: list[list[Bit]] = [[] for _ in self._writings]
        async with aclosing(self._bits()) as bits:
            async for index, bit in bits:
                found[index].append(bit)
        choices = [self._choice(index, found[place]) for index, place in enumerate(self._best())]
        return self._shell.model_copy(update={"choices": choices, "usage": self.usage})

    async def events(self) -> AsyncGenerator[Completion, None]:
        """Bit by bit, those of several choices mixed."""
        async with aclosing(self._bits()) as bits:
            async for index, bit in bits:
                yield self._shell.model_copy(update={"choices": [self._choice(index, [bit])]})

    def last(self) -> Completion:
        """The event that only tells the usage."""
        return self._shell.model_copy(update={"usage": self.usage})

    @property
    def usage(self) -> Usage:
        """So far. A prompt counts once, however many completions it has."""
        read = sum(len(prompt.ids) for prompt in self._asked.prompts)
        written = sum(writing.n_tokens for writing in self._writings)
        return Usage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)

    async def _bits(self) -> AsyncGenerator[tuple[int, Bit], None]:
        async with aclosing(merged([writing.bits() for writing in self._writings])) as bits:
            async for found in bits:
                yield found
        self._metrics.answered(self._model.name, items=len(self._writings), tokens=self.usage.completion_tokens)

    def _best(self) -> list[int]:
        """Of each prompt's completions, the places of the n to give."""
        n, drawn = self._asked.n, self._asked.best_of
        groups = [range(first, first + drawn) for first in range(0, len(self._writings), drawn)]
        if drawn == n:
            return [place for group in groups for place in group]
        mean = [writing.mean_logprob for writing in self._writings]
        return [place for group in groups for place in sorted(group, key=lambda place: -mean[place])[:n]]

    def _choice(self, index: int, bits: Sequence[Bit]) -> Choice:
        marks = [mark for bit in bits for mark in bit.marks]
        return Choice(
            index=index,
            text="".join(bit.text for bit in bits),
            logprobs=None if self._asked.logprobs is None else _logprobs(marks, tops=self._asked.logprobs > 0),
            finish_reason=bits[-1].finish,
        )


def _logprobs(marks: Sequence[Mark], *, tops: bool) -> Logprobs:
    return Logprobs(
        tokens=[mark.token for mark in marks],
        token_logprobs=[mark.logprob for mark in marks],
        top_logprobs=[mark.top for mark in marks] if tops else None,
        text_offset=[mark.offset for mark in marks],
    )
