"""The completions of a request, written side by side: whole, or as server-sent events."""

from __future__ import annotations

import hashlib
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from ..errors import APIError, Json, as_api_error, error_response
from ..models import Served
from ..state import CLIENT_CLOSED, ServerState, cancel_on_disconnect
from .completion import CompletionWriter, TextDelta, merged
from .logprobs import TokenLogprob
from .parameters import CompletionParameters
from .schemas import Completion, CompletionChoice, Logprobs, Usage


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
        item: list[list[TextDelta]] = [[] for _ in self._writings]
        async with aclosing(self._bits()) as bits:
            async for index, bit in bits:
                item[index].append(bit)
        choices = [self._choice(index, item[place]) for index, place in enumerate(self._best())]
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
        groups = [range(first, first + drawn) for first in range(0, len(self._writings), drawn)]
        if drawn == n:
            return [place for group in groups for place in group]
        mean = [writing.mean_logprob for writing in self._writings]
        return [place for group in groups for place in sorted(group, key=lambda place: -mean[place])[:n]]

    def _choice(self, index: int, bits: Sequence[TextDelta]) -> CompletionChoice:
        marks = [mark for bit in bits for mark in bit.marks]
        return CompletionChoice(
            index=index,
            text="".join(bit.text for bit in bits),
            logprobs=None
            if self._parameters.logprobs is None
            else _logprobs(marks, tops=self._parameters.logprobs > 0),
            finish_reason=bits[-1].finish,
        )


def _logprobs(marks: Sequence[TokenLogprob], *, tops: bool) -> Logprobs:
    return Logprobs(
        tokens=[mark.token for mark in marks],
        token_logprobs=[mark.logprob for mark in marks],
        top_logprobs=[mark.top for mark in marks] if tops else None,
        text_offset=[mark.offset for mark in marks],
    )


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
