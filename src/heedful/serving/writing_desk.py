"""A desk for models that write: each text joins those that are being written, and leaves as soon as it is done."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import aclosing
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from ..backends import prepare
from ..generation import Hypothesis
from ..generation.continuous import Continuous
from ..generation.engine import Asked
from ..generation.sentence import Sentence
from ..tasks.answers import Answer, joined
from ..tasks.predictor import listed
from ..tasks.rounds import Done, Found, Rounds, after
from ..tasks.writer import Spelling, Writer
from .aside import aside
from .cores import CORES
from .desk import AnswerStream, Desk, Token, TooLate
from .settings import Settings

T = TypeVar("T")
Certain = tuple[int, float]  # a token and its logprob
NONE = (-1, 0.0)  # text that no token wrote
LETTERS = 4  # of a token, more or less


class WritingDesk(Desk):
    """A hand takes a step for all whom it answers, and another, and another. On a CPU there is one for each core."""

    def __init__(self, predictor: Writer, settings: Settings) -> None:
        self._writer = predictor
        prepare(predictor.module, settings.precision)  # now: the first who asks need not wait for it
        on_cpu = all(weight.device.type == "cpu" for weight in predictor.module.parameters())
        self._hands = CORES.total if on_cpu else 1
        self._writing = Continuous(self._hands)
        super().__init__(predictor, settings)

    async def predict(self, items: Sequence[str]) -> list[str]:
        """The best answer to each text."""
        return [best.text for best, *_ in await self.candidates(items)]

    async def candidates(self, texts: Sequence[str], **generation: Any) -> list[list[Answer]]:
        """What the writer's `candidates` gives."""
        rounds = self._writer.asking(listed(texts, "text"), self._asked_for(generation))
        size = sum(map(len, map(str, texts)))
        async with self._in_time():
            with self._door(len(texts)):
                asks = await aside(size, self._after, rounds, None)
            while not isinstance(asks, Done):
                found = await self._found(asks)
                size = sum(len(one.tokens) for call in found for answers in call for one in answers)
                asks = await aside(LETTERS * size, self._after, rounds, found)
        return asks.result

    def stream(self, text: str, **generation: Any) -> AnswerStream:
        """The best answer, token by token; what it would refuse is refused with the first."""
        return AnswerStream(self._streamed(text, self._asked_for(generation)))

    @property
    def running(self) -> int:
        """Parts of texts that are being written."""
        return self._writing.running

    def _asked_for(self, generation: Mapping[str, Any]) -> dict[str, Any]:
        return {"precision": self._settings.precision, **generation}

    def _after(self, rounds: Rounds[T], found: list[Found] | None) -> list[Asked] | Done[T]:
        """What is to be written next. It reads texts, or spells answers: not for the event loop."""
        calls = after(rounds, found)
        return calls if isinstance(calls, Done) else [self._writer.asked(call) for call in calls]

    async def _found(self, asks: Sequence[Asked]) -> list[Found]:
        """All that is asked, written beside what others ask."""
        whole = [_Whole(asked) for asked in asks]
        try:
            for one in whole:
                self._queue(partial(self._writing.put, one.asked, one.told))
            return [await asyncio.wrap_future(one.future) for one in whole]
        finally:
            for asked in asks:
                self._writing.leave(asked)

    async def _streamed(self, text: str, generation: Mapping[str, Any]) -> AsyncGenerator[Token | Answer, None]:
        until = asyncio.get_running_loop().time() + self._settings.seconds
        with self._door(1):
            words, parts = await asyncio.to_thread(lambda: (self._writer.words(generation), self._writer.parts(text)))
        done: list[Answer] = []
        for ids in parts:
            spelled = _Spelled(self._writer.spelling(ids), " " if done else "")
            rounds = self._writer.rounds([ids], words)
            asks = self._after(rounds, None)
            while not isinstance(asks, Done):
                (asked,) = asks
                async with aclosing(self._certain(asked.as_stream(), until)) as bits:
                    async for bit in bits:
                        if isinstance(bit, Hypothesis):
                            asks = self._after(rounds, [[[bit]]])
                            continue
                        for token in spelled.more(*bit):
                            yield token
            ((best,),) = asks.result
            done.append(self._writer.answer(ids, best))
            for token in spelled.rest(done[-1].text):
                yield token
        yield joined(done)

    async def _certain(self, asked: Asked, until: float) -> AsyncGenerator[Certain | Hypothesis, None]:
        """The tokens of an answer as they become certain, and at last the answer."""
        told = _Certain()
        try:
            self._queue(partial(self._writing.put, asked, told))
            while True:
                try:
                    async with asyncio.timeout_at(until):
                        bit = await told.queue.get()
                except TimeoutError:
                    raise TooLate from None
                if isinstance(bit, Exception):
                    raise bit
                yield bit
                if isinstance(bit, Hypothesis):
                    return
        finally:
            self._writing.leave(asked)

    # The thread

    def _n_queued(self) -> int:
        return self._writing.waiting

    def _has_work(self, hand: int) -> bool:
        return self._writing.has_work_for(hand)

    def _step(self, hand: int) -> None:
        self._writing.step(hand)

    def _refuse(self, error: Exception, hand: int) -> None:
        self._writing.close(error, hand)


class _Whole:
    """Answers to one call, once all of them are there. It is told in the writing threads."""

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.future: Future[Found] = Future()
        self.future.set_running_or_notify_cancel()  # who waits leaves by another way
        self._found: dict[int, list[Hypothesis]] = {}
        self._lock = Lock()

    def told(self, sentence: Sentence) -> None:
        if sentence.settled:
            with self._lock:
                self._settle(sentence)

    def _settle(self, sentence: Sentence) -> None:
        if self.future.done():
            return
        if sentence.error is not None:
            self.future.set_exception(sentence.error)
            return
        self._found[sentence.request.index] = sentence.best
        if len(self._found) == len(self.asked.requests):
            self.future.set_result([best for _, best in sorted(self._found.items())])


class _Certain:
    """The certain tokens of one answer, brought from the writing thread to the event loop.

    A reader who is slow holds nobody up: what waits for it is never more than the answer.
    """

    def __init__(self) -> None:
        self.queue: asyncio.Queue[Certain | Hypothesis | Exception] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._sent = 0

    def __call__(self, sentence: Sentence) -> None:
        """In the writing thread: after a step."""
        if sentence.error is not None:
            self._send([sentence.error])
            return
        tokens = sentence.certain()
        new = [*zip(tokens, sentence.logprobs(len(tokens)), strict=True)][self._sent :]
        self._sent += len(new)
        self._send([*new, *(sentence.best[:1] if sentence.settled else ())])

    def _send(self, bits: Sequence[Certain | Hypothesis | Exception]) -> None:
        if bits and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._arrive, bits)

    def _arrive(self, bits: Sequence[Certain | Hypothesis | Exception]) -> None:
        for bit in bits:
            self.queue.put_nowait(bit)


class _Spelled:
    """Tokens with their text. One that completes no character waits for those that do."""

    def __init__(self, spelling: Spelling, before: str) -> None:
        self._spelling = spelling
        self._before = before  # the space after another part of the text
        self._held: list[Certain] = []

    def more(self, token: int, logprob: float) -> Iterator[Token]:
        self._held.append((token, logprob))
        text = self._spelling.add(token)
        return self._given(text) if text else iter(())

    def rest(self, whole: str) -> Iterator[Token]:
        """What was held back to the end, with what is missing of the whole."""
        text = self._spelling.rest(whole)
        return self._given(text) if self._held or self._before or text else iter(())

    def _given(self, text: str) -> Iterator[Token]:
        *held, (last, logprob) = self._held or [NONE]
        self._held = []
        for token in held:
            yield Token("", *token)
        yield Token(self._before + text, last, logprob)
        self._before = ""
