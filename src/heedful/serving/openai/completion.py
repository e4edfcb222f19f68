"""Completions: the text of a prompt's continuation up to a stop sequence, whole or as server-sent events.

Text is sent when it is final and in whole characters, with the log-probabilities of its tokens if asked for. All
completions of a request are generated concurrently.
"""

import asyncio
import hashlib
import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from fastapi import Request
from starlette.responses import StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from ...tasks.text_generator import Answer
from ..errors import DONE, EVENTS, APIError, Json, as_api_error, error_response, event
from ..models import Served
from ..state import CLIENT_CLOSED, ServerState, cancel_on_disconnect
from .logprobs import LogprobTracker, TokenLogprob
from .parameters import CompletionParameters, Prompt
from .schemas import Completion, CompletionChoice, Logprobs, Usage


class StopSequences:
    """Passes text up to the first of some strings. Text that may be the beginning of one waits for the rest."""

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = stops
        self._buffer = ""
        self.reached = False

    def add(self, text: str, *, last: bool = False) -> str:
        """Add text and return what can be shown; with `last`, nothing waits any more."""
        if self.reached:
            return ""
        self._buffer += text
        places = [place for stop in self._stops if (place := self._buffer.find(stop)) >= 0]
        self.reached = bool(places)
        cut = min(places) if places else len(self._buffer) - (0 if last else self._n_pending())
        visible, self._buffer = self._buffer[:cut], self._buffer[cut:]
        return visible

    def _n_pending(self) -> int:
        """Return how many characters at the end of the buffer may be the beginning of a stop sequence."""
        longest = max(map(len, self._stops), default=1) - 1
        for size in range(min(longest, len(self._buffer)), 0, -1):
            if any(stop.startswith(self._buffer[-size:]) for stop in self._stops):
                return size
        return 0


FinishReason = Literal["stop", "length"]


@dataclass(frozen=True)
class TextDelta:
    """The next part of a completion; the last part has the reason for its end."""

    text: str
    logprobs: Sequence[TokenLogprob] = ()
    finish_reason: FinishReason | None = None


class DeltaBuilder:
    """Makes deltas of tokens. A token's logprob is sent with the first character of its text, not earlier."""

    def __init__(self, stops: Sequence[str], offset: int = 0) -> None:
        self._stops = StopSequences(stops)
        self._n_added = self._n_visible = self._offset = offset
        self._pending: list[tuple[TokenLogprob, int]] = []  # with the offset of the text's end

    def add(self, text: str, logprob: TokenLogprob | None = None) -> TextDelta:
        """Add a token with its text, which is empty until a character is complete."""
        self._n_added += len(text)
        if logprob is not None:  # the text may begin with bytes of earlier tokens that formed no character
            length = len(logprob.token) if text.endswith(logprob.token) else len(text)
            self._pending.append((replace(logprob, offset=self._n_added - length), self._n_added))
        return self._delta(self._stops.add(text), None)

    def finish(self, text: str, reason: FinishReason) -> TextDelta:
        """Return what is left of the whole text, once nothing follows."""
        return self._delta(self._stops.add(text[self._n_added - self._offset :], last=True), reason)

    def _delta(self, text: str, reason: FinishReason | None) -> TextDelta:
        self._n_visible += len(text)
        if self._stops.reached:
            visible = [(entry, end) for entry, end in self._pending if entry.offset < self._n_visible]
            return TextDelta(text, [_cut(entry, end, self._n_visible) for entry, end in visible], "stop")
        ready = [entry for entry, _ in self._pending if reason or entry.offset < self._n_visible]
        del self._pending[: len(ready)]  # offsets never decrease
        return TextDelta(text, ready, reason)


def _cut(logprob: TokenLogprob, end: int, stop: int) -> TokenLogprob:
    """Cut a token's text where a stop sequence begins; the name of an incomplete character stays whole."""
    is_text = len(logprob.token) == end - logprob.offset
    return replace(logprob, token=logprob.token[: stop - logprob.offset]) if is_text else logprob


T = TypeVar("T")


async def merge(sources: Sequence[AsyncGenerator[T, None]]) -> AsyncGenerator[tuple[int, T], None]:
    """Yield the items of several generators as they come, each with its generator's index. An error ends them all."""
    queue: asyncio.Queue[tuple[int, T | Exception | None]] = asyncio.Queue(len(sources))

    async def forward(index: int, source: AsyncGenerator[T, None]) -> None:
        try:
            async with aclosing(source):
                async for item in source:
                    await queue.put((index, item))
            await queue.put((index, None))
        except Exception as error:
            await queue.put((index, error))

    tasks = [asyncio.create_task(forward(index, source)) for index, source in enumerate(sources)]
    n_running = len(tasks)
    try:
        while n_running:
            index, item = await queue.get()
            if isinstance(item, Exception):
                raise item
            if item is None:
                n_running -= 1
            else:
                yield index, item
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class CompletionWriter:
    """Generates one completion of a prompt."""

    def __init__(self, model: Served, prompt: Prompt, parameters: CompletionParameters, seed: int) -> None:
        self._model, self._prompt, self._parameters = model, prompt, parameters
        self._overrides = {**parameters.overrides, "seed": seed}
        self._tracker = LogprobTracker(model, prompt, parameters)
        self.n_tokens = 0
        self.logprob = 0.0

    async def deltas(self) -> AsyncGenerator[TextDelta, None]:
        """Yield the prompt if it is echoed, then the completion."""
        parameters, text = self._parameters, self._prompt.text if self._parameters.echo else ""
        async with self._tracker.slot():
            logprobs = await self._tracker.of_prompt()
            if text or logprobs or not parameters.max_tokens:
                yield TextDelta(text, logprobs, None if parameters.max_tokens else "length")
            if parameters.max_tokens and not parameters.needs_tokens:
                ((answer,),) = await self._model.worker.candidates([self._prompt.text], **self._overrides)
                self.n_tokens, self.logprob = answer.n_tokens, answer.logprob
                yield TextDelta(answer.text, (), _finish_reason(answer))
            elif parameters.max_tokens:
                async with aclosing(self._streamed(len(text))) as deltas:
                    async for delta in deltas:
                        yield delta

    async def _streamed(self, offset: int) -> AsyncGenerator[TextDelta, None]:
        builder = DeltaBuilder(self._parameters.stops, offset)
        async with aclosing(self._model.worker.stream(self._prompt.text, **self._overrides)) as stream:
            async for item in stream:
                if isinstance(item, Answer):
                    self.n_tokens, self.logprob = item.n_tokens, item.logprob  # including the end token
                    yield builder.finish(item.text, _finish_reason(item))
                    return
                for token, logprob in zip(item, await self._tracker.of(item), strict=True):
                    self.n_tokens += 1
                    self.logprob += token.logprob
                    delta = builder.add(token.text, logprob)
                    if delta.text or delta.finish_reason:
                        yield delta
                    if delta.finish_reason:
                        return


def _finish_reason(answer: Answer) -> FinishReason:
    return "stop" if answer.finished else "length"


class Completions:
    """Generates all completions of one request and formats the response."""

    def __init__(self, model: Served, parameters: CompletionParameters, state: ServerState) -> None:
        self._model, self._parameters, self._metrics = model, parameters, state.metrics
        self._writers = [CompletionWriter(model, prompt, parameters, seed) for prompt, seed in parameters.draws()]
        identity = f"{model.name} {model.created} {state.settings.precision}"
        self._template = Completion(
            id=f"cmpl-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=model.name,
            system_fingerprint=f"fp_{hashlib.sha256(identity.encode()).hexdigest()[:12]}",
            choices=[],
        )

    async def response(self) -> Completion:
        """Return all choices at once: for each prompt, those with the highest mean logprob."""
        deltas: list[list[TextDelta]] = [[] for _ in self._writers]
        async with aclosing(self._deltas()) as merged:
            async for index, delta in merged:
                deltas[index].append(delta)
        choices = [self._choice(index, deltas[place]) for index, place in enumerate(self._best())]
        return self._template.model_copy(update={"choices": choices, "usage": self.usage})

    async def events(self) -> AsyncGenerator[Completion, None]:
        """Yield an event for each delta, those of several choices interleaved, and last one with the usage alone."""
        async with aclosing(self._deltas()) as merged:
            async for index, delta in merged:
                yield self._template.model_copy(update={"choices": [self._choice(index, [delta])]})
        yield self._template.model_copy(update={"usage": self.usage})

    @property
    def usage(self) -> Usage:
        """The tokens so far. A prompt counts once, however many completions it has."""
        n_prompt = sum(len(prompt.ids) for prompt in self._parameters.prompts)
        n_completion = sum(writer.n_tokens for writer in self._writers)
        return Usage(prompt_tokens=n_prompt, completion_tokens=n_completion, total_tokens=n_prompt + n_completion)

    async def _deltas(self) -> AsyncGenerator[tuple[int, TextDelta], None]:
        async with aclosing(merge([writer.deltas() for writer in self._writers])) as merged:
            async for item in merged:
                yield item
        self._metrics.answered(self._model.name, items=len(self._writers), tokens=self.usage.completion_tokens)

    def _best(self) -> list[int]:
        """Return the indices of the n best completions of each prompt."""
        n, best_of = self._parameters.n, self._parameters.best_of
        groups: list[Sequence[int]] = [range(first, first + best_of) for first in range(0, len(self._writers), best_of)]
        if best_of > n:
            mean = [writer.logprob / max(1, writer.n_tokens) for writer in self._writers]
            groups = [sorted(group, key=lambda place: -mean[place])[:n] for group in groups]
        return [place for group in groups for place in group]

    def _choice(self, index: int, deltas: Sequence[TextDelta]) -> CompletionChoice:
        logprobs = None
        if self._parameters.logprobs is not None:
            tokens = [entry for delta in deltas for entry in delta.logprobs]
            logprobs = Logprobs(
                tokens=[entry.token for entry in tokens],
                token_logprobs=[entry.logprob for entry in tokens],
                top_logprobs=[entry.top for entry in tokens] if self._parameters.logprobs else None,
                text_offset=[entry.offset for entry in tokens],
            )
        text = "".join(delta.text for delta in deltas)
        return CompletionChoice(index=index, text=text, logprobs=logprobs, finish_reason=deltas[-1].finish_reason)


class Events(StreamingResponse):
    """Server-sent events. Generation stops when the client disconnects."""

    media_type = EVENTS

    def __init__(self, path: str, completions: Completions, *, usage: bool) -> None:
        self._lines = _lines(path, completions, usage=usage)
        super().__init__(self._lines, headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await cancel_on_disconnect(Request(scope, receive), self.stream_response(send))
        except APIError as refusal:
            if refusal.status != CLIENT_CLOSED:
                raise
        finally:
            await self._lines.aclose()

    async def stream_response(self, send: Send) -> None:
        """Send all events. The response starts with the first one, so that an error before it sets the status."""
        start: Message = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        async for line in self._lines:
            if start:
                await send(start)
                start = {}
            await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _lines(path: str, completions: Completions, *, usage: bool) -> AsyncGenerator[bytes, None]:
    """Yield the lines of all events. With `usage`, every event has that field, which is null in all but the last."""
    started = False
    try:
        async with aclosing(completions.events()) as completed:
            async for part in completed:
                if part.choices or usage:
                    yield event(bytes(Json(part.model_dump(exclude=None if usage else {"usage"})).body))
                    started = True
    except Exception as error:
        if not started:
            raise
        refusal = as_api_error(error)
        if refusal is None:  # the middleware logs it and ends the stream
            raise
        yield event(bytes(error_response(path, refusal).body))
    yield DONE
