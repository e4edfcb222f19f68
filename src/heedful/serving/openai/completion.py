"""Completions while they are written: text that is certain, in whole characters, up to its stop.

Beside the text stand the tokens it is made of. Those of a request are written side by side, and given whole or as
server-sent events.
"""

import asyncio
import hashlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, nullcontext
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ...tasks.text_generator import Answer
from ..errors import APIError, Json, as_api_error, error_response
from ..models import Served
from ..state import CLIENT_CLOSED, ServerState, cancel_on_disconnect
from ..worker import StreamedToken
from .logprobs import LogprobTracker, TokenLogprob
from .parameters import CompletionParameters, Prompt
from .schemas import Completion, CompletionChoice, Logprobs, Usage


class StopSequences:
    """Lets text through up to the first of some strings. What may be the beginning of one waits for the rest."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._held = ""
        self.reached = False

    def passed(self, text: str, *, last: bool = False) -> str:
        """What may be shown, now that this has been written: all of it where it is the last."""
        if self.reached:
            return ""
        self._held += text
        places = [place for stop in self._stops if (place := self._held.find(stop)) >= 0]
        if places:
            self.reached = True
            visible, self._held = self._held[: min(places)], ""
            return visible
        cut = len(self._held) - (0 if last else self._beginning())
        visible, self._held = self._held[:cut], self._held[cut:]
        return visible

    def _beginning(self) -> int:
        """How many characters at the end may be the beginning of a stop."""
        return max(
            (
                size
                for stop in self._stops
                for size in range(min(len(stop) - 1, len(self._held)), 0, -1)
                if self._held.endswith(stop[:size])
            ),
            default=0,
        )


Finish = Literal["stop", "length"]


@dataclass(frozen=True)
class TextDelta:
    """What comes next of a completion; the last says why it ends."""

    text: str
    marks: Sequence[TokenLogprob] = ()
    finish: Finish | None = None


class TextShaper:
    """Takes tokens as they are written. A mark is shown with the first character of its text, and not before."""

    def __init__(self, stops: Sequence[str], offset: int = 0) -> None:
        self._stops = StopSequences(stops)
        self._written = self._visible = self._offset = offset
        self._waiting: list[tuple[TokenLogprob, int]] = []  # and where its text ends

    def more(self, text: str, mark: TokenLogprob | None = None) -> TextDelta:
        """After a token and its text, which is empty until a character is whole."""
        self._written += len(text)
        if mark is not None:  # bytes before it that became no character may have waited for it
            length = len(mark.token) if text.endswith(mark.token) else len(text)
            self._waiting.append((replace(mark, offset=self._written - length), self._written))
        return self._bit(self._stops.passed(text), None)

    def rest(self, text: str, finish: Finish) -> TextDelta:
        """What was held back, once it is known that nothing follows."""
        return self._bit(self._stops.passed(text[self._written - self._offset :], last=True), finish)

    def _bit(self, text: str, finish: Finish | None) -> TextDelta:
        self._visible += len(text)
        if self._stops.reached:
            marks = [_cut(mark, end, self._visible) for mark, end in self._waiting if mark.offset < self._visible]
            return TextDelta(text, marks, "stop")
        ready = [mark for mark, _ in self._waiting if finish or mark.offset < self._visible]
        del self._waiting[: len(ready)]  # they stand in the order of their places
        return TextDelta(text, ready, finish)


def _cut(mark: TokenLogprob, end: int, stop: int) -> TokenLogprob:
    """A token that has the beginning of a stop in it shows what comes before; a name stays whole."""
    is_text = len(mark.token) == end - mark.offset
    return replace(mark, token=mark.token[: stop - mark.offset]) if is_text else mark


T = TypeVar("T")


async def merged(sources: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """What several give, with the place of who gave it, as it comes. The first that fails ends them all."""
    arrived: asyncio.Queue[tuple[int, T | Exception | None]] = asyncio.Queue(len(sources))

    async def carry(index: int, source: AsyncGenerator[T, None]) -> None:
        try:
            async with aclosing(source):
                async for item in source:
                    await arrived.put((index, item))
            await arrived.put((index, None))
        except Exception as error:
            await arrived.put((index, error))

    carriers = [asyncio.create_task(carry(index, source)) for index, source in enumerate(sources)]
    running = len(carriers)
    try:
        while running:
            index, item = await arrived.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                running -= 1
            else:
                yield index, item
    finally:
        for carrier in carriers:
            carrier.cancel()
        await asyncio.gather(*carriers, return_exceptions=True)


async def gathered(source: AsyncIterator[T]) -> AsyncGenerator[list[T], None]:
    """All that came while the last ones were being dealt with, together."""
    came: list[T] = []
    arrival = asyncio.Event()

    async def carry() -> None:
        try:
            async for item in source:
                came.append(item)
                arrival.set()
        finally:
            arrival.set()

    carrier = asyncio.create_task(carry())
    try:
        while came or not carrier.done():
            await arrival.wait()
            arrival.clear()
            batch, came[:] = came[:], []
            if batch:
                yield batch
        await carrier
    finally:
        carrier.cancel()
        await asyncio.gather(carrier, return_exceptions=True)


class CompletionWriter:
    """One completion of a prompt."""

    def __init__(self, model: Served, prompt: Prompt, parameters: CompletionParameters, seed: int) -> None:
        self._model, self._prompt, self._parameters, self._seed = model, prompt, parameters, seed
        self._marking = None if parameters.logprobs is None else LogprobTracker(model, prompt, parameters)
        self.n_tokens = 0
        self.logprob = 0.0

    @property
    def mean_logprob(self) -> float:
        """By which the best of several is found."""
        return self.logprob / max(1, self.n_tokens)

    async def bits(self) -> AsyncGenerator[TextDelta, None]:
        """The prompt, where it is echoed, and what follows it; the last bit says why it ends."""
        parameters, text = self._parameters, self._prompt.text if self._parameters.echo else ""
        async with nullcontext() if self._marking is None else self._marking.room():
            marks = [] if self._marking is None else await self._marking.of_prompt()
            if text or marks or not parameters.max_tokens:
                yield TextDelta(text, marks, None if parameters.max_tokens else "length")
            if parameters.max_tokens and not parameters.by_tokens:
                yield await self._at_once()
            elif parameters.max_tokens:
                async with aclosing(self._written(len(text))) as bits:
                    async for bit in bits:
                        yield bit

    async def _at_once(self) -> TextDelta:
        """The same text for half the effort."""
        overrides = self._parameters.generation_overrides(self._seed)
        ((answer,),) = await self._model.worker.candidates([self._prompt.text], **overrides)
        self.n_tokens, self.logprob = answer.n_tokens, answer.logprob
        return TextDelta(answer.text, (), finish_of(answer))

    async def _written(self, offset: int) -> AsyncGenerator[TextDelta, None]:
        shaping = TextShaper(self._parameters.stops, offset)
        stream = self._model.worker.stream(self._prompt.text, **self._parameters.generation_overrides(self._seed))
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

    async def _marks(self, tokens: Sequence[StreamedToken]) -> Sequence[TokenLogprob | None]:
        if self._marking is None:
            return [None] * len(tokens)
        written = [token for token in tokens if token.id >= 0]  # at the end there may be text that no token wrote
        return [*await self._marking.of(written), *[None] * (len(tokens) - len(written))]


def finish_of(answer: Answer) -> Finish:
    """An answer that did not come to its end had no more room."""
    return "stop" if answer.finished else "length"


class Completions:
    """All that one request asks for."""

    def __init__(self, model: Served, parameters: CompletionParameters, state: ServerState) -> None:
        self._model, self._parameters, self._metrics = model, parameters, state.metrics
        self._writings = [CompletionWriter(model, prompt, parameters, seed) for prompt, seed in parameters.draws()]
        identity = f"{model.name} {model.created} {state.settings.precision}"
        self._shell = Completion(
            id=f"cmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=model.name,
            system_fingerprint=f"fp_{hashlib.sha256(identity.encode()).hexdigest()[:12]}",
            choices=[],
        )

    async def response(self) -> Completion:
        """Everything at once; of more than were asked for, the most likely a token."""
        deltas: list[list[TextDelta]] = [[] for _ in self._writings]
        async with aclosing(self._bits()) as bits:
            async for index, bit in bits:
                deltas[index].append(bit)
        choices = [self._choice(index, deltas[place]) for index, place in enumerate(self._best())]
        return self._shell.model_copy(update={"choices": choices, "usage": self.usage})

    async def events(self) -> AsyncGenerator[Completion, None]:
        """TextDelta by bit, those of several choices mixed."""
        async with aclosing(self._bits()) as bits:
            async for index, bit in bits:
                yield self._shell.model_copy(update={"choices": [self._choice(index, [bit])]})

    def last(self) -> Completion:
        """The event that only tells the usage."""
        return self._shell.model_copy(update={"usage": self.usage})

    @property
    def usage(self) -> Usage:
        """So far. A prompt counts once, however many completions it has."""
        read = sum(len(prompt.ids) for prompt in self._parameters.prompts)
        written = sum(writing.n_tokens for writing in self._writings)
        return Usage(prompt_tokens=read, completion_tokens=written, total_tokens=read + written)

    async def _bits(self) -> AsyncGenerator[tuple[int, TextDelta], None]:
        async with aclosing(merged([writing.bits() for writing in self._writings])) as bits:
            async for item in bits:
                yield item
        self._metrics.answered(self._model.name, items=len(self._writings), tokens=self.usage.completion_tokens)

    def _best(self) -> list[int]:
        """Of each prompt's completions, the places of the n to give."""
        n, drawn = self._parameters.n, self._parameters.best_of
        groups: list[Sequence[int]] = [range(first, first + drawn) for first in range(0, len(self._writings), drawn)]
        if drawn > n:
            mean = [writing.mean_logprob for writing in self._writings]
            groups = [sorted(group, key=lambda place: -mean[place])[:n] for group in groups]
        return [place for group in groups for place in group]

    def _choice(self, index: int, bits: Sequence[TextDelta]) -> CompletionChoice:
        marks, logprobs = [mark for bit in bits for mark in bit.marks], None
        if self._parameters.logprobs is not None:
            logprobs = Logprobs(
                tokens=[mark.token for mark in marks],
                token_logprobs=[mark.logprob for mark in marks],
                top_logprobs=[mark.top for mark in marks] if self._parameters.logprobs else None,
                text_offset=[mark.offset for mark in marks],
            )
        text = "".join(bit.text for bit in bits)
        return CompletionChoice(index=index, text=text, logprobs=logprobs, finish_reason=bits[-1].finish)


INTERNAL = APIError(500, "internal error")


class Events(StreamingResponse):
    """The first event, which is there, and the rest. It lets go of the model as soon as its client leaves."""

    media_type = "text/event-stream"

    def __init__(self, first: bytes, rest: AsyncGenerator[bytes, None]) -> None:
        super().__init__(_chain(first, rest), headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await cancel_on_disconnect(Request(scope, receive), self.stream_response(send))
        except APIError as refusal:
            if refusal.status != CLIENT_CLOSED:
                raise
        finally:
            await self._rest.aclose()


async def events(request: Request, completions: Completions, *, usage: bool) -> Events:
    """The response; what is refused before the first event is refused by its status."""
    lines = _lines(request.url.path, completions, usage=usage)
    try:
        return Events(await cancel_on_disconnect(request, anext(lines)), lines)
    except BaseException:
        await lines.aclose()
        raise


async def _lines(path: str, completions: Completions, *, usage: bool) -> AsyncGenerator[bytes, None]:
    begun = False
    try:
        async with aclosing(completions.events()) as item:
            async for event in item:
                yield _line(event, usage=usage)
                begun = True
    except Exception as error:
        if not begun:
            raise
        refusal = as_api_error(error)
        yield _data(bytes(error_response(path, refusal or INTERNAL).body))
        if refusal is None:
            raise
        return
    if usage:
        yield _line(completions.last(), usage=True)
    yield _data(b"[DONE]")


def _line(event: Completion, *, usage: bool) -> bytes:
    """Where the usage is asked for, every event has the field, and all but the last have null."""
    return _data(bytes(Json(event.model_dump(exclude=None if usage else {"usage"})).body))


def _data(content: bytes) -> bytes:
    return b"data: " + content + b"\n\n"


async def _chain(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for event in rest:
        yield event
