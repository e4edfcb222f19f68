"""One completion while it is written: text that is certain, up to its stop."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, nullcontext

from ...tasks.text_generator import Answer
from ..models import Served
from ..worker import Token
from .arriving import gathered
from .asking import Asked, Prompt
from .marking import Marking
from .shaping import Bit, Finish, Mark, Shaping


class Writing:
    """One completion of a prompt."""

    def __init__(self, model: Served, prompt: Prompt, asked: Asked, seed: int) -> None:
        self._model, self._prompt, self._asked, self._seed = model, prompt, asked, seed
        self._marking = None if asked.logprobs is None else Marking(model, prompt, asked)
        self.n_tokens = 0
        self.logprob = 0.0

    @property
    def mean_logprob(self) -> float:
        """By which the best of several is found."""
        return self.logprob / max(1, self.n_tokens)

    async def bits(self) -> AsyncGenerator[Bit, None]:
        """The prompt, where it is echoed, and what follows it; the last bit says why it ends."""
        asked, text = self._asked, self._prompt.text if self._asked.echo else ""
        async with nullcontext() if self._marking is None else self._marking.room():
            marks = [] if self._marking is None else await self._marking.of_prompt()
            if text or marks or not asked.max_tokens:
                yield Bit(text, marks, None if asked.max_tokens else "length")
            if asked.max_tokens and not asked.by_tokens:
                yield await self._at_once()
            elif asked.max_tokens:
                async with aclosing(self._written(len(text))) as bits:
                    async for bit in bits:
                        yield bit

    async def _at_once(self) -> Bit:
        """The same text for half the effort."""
        words = self._asked.words(self._seed)
        ((answer,),) = await self._model.desk.candidates([self._prompt.text], **words)
        self.n_tokens, self.logprob = answer.n_tokens, answer.logprob
        return Bit(answer.text, (), finish_of(answer))

    async def _written(self, offset: int) -> AsyncGenerator[Bit, None]:
        shaping = Shaping(self._asked.stops, offset)
        stream = self._model.desk.stream(self._prompt.text, **self._asked.words(self._seed))
        async with aclosing(stream), aclosing(gathered(stream)) as batches:
            async for tokens in batches:
                for token, mark in zip(tokens, await self._marks(tokens), strict=True):
                    self.n_tokens += 1
                    self.logprob += token.logprob
                    bit = shaping.more(token.text, mark)
                    if bit.text or bit.finish:
                        yield bit
                    if bit.finish:
                        return
        assert stream.answer is not None  # it has come to its end
        self.n_tokens, self.logprob = stream.answer.n_tokens, stream.answer.logprob  # with the end
        yield shaping.rest(stream.answer.text, finish_of(stream.answer))

    async def _marks(self, tokens: Sequence[Token]) -> Sequence[Mark | None]:
        if self._marking is None:
            return [None] * len(tokens)
        written = [token for token in tokens if token.id >= 0]  # at the end there may be text that no token wrote
        return [*await self._marking.of(written), *[None] * (len(tokens) - len(written))]


def finish_of(answer: Answer) -> Finish:
    """An answer that did not come to its end had no more room."""
    return "stop" if answer.finished else "length"
