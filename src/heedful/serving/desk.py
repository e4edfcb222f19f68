"""Where the event loop asks a model: the model works in a thread of its own, for all who wait."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from threading import Condition, Thread
from typing import Any, NamedTuple, Self, TypeVar

from ..errors import HeedfulError
from ..tasks.answers import Answer
from .cores import CORES, give_way
from .settings import Settings

T = TypeVar("T")

log = logging.getLogger("heedful.serving")

PROMPTLY = 5.0  # seconds for the threads to end; what takes longer ends with the process


class Busy(Exception):  # noqa: N818  (nobody made a mistake)
    """Too much waits already; another try may succeed after so many seconds."""

    def __init__(self, retry_after: float = 1.0) -> None:
        super().__init__("the model has too much to do")
        self.retry_after = retry_after


class Closed(Busy):
    """The model is not served any more."""


class TooLate(Exception):  # noqa: N818  (nobody made a mistake)
    """The time for an answer is over."""


class Token(NamedTuple):
    """One of an answer's. Its text is empty where it does not complete a character."""

    text: str
    id: int
    logprob: float


class AnswerStream(AsyncIterator[Token]):
    """The tokens of an answer, each as soon as it is certain; after the last, `answer` is the whole one."""

    def __init__(self, tokens: AsyncGenerator[Token | Answer, None]) -> None:
        self._tokens = tokens
        self.answer: Answer | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Token:
        async for found in self._tokens:
            if isinstance(found, Token):
                return found
            self.answer = found
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Write no more; the place is free."""
        await self._tokens.aclose()


class Job(NamedTuple):
    """Something to do for someone."""

    function: Callable[[], Any]
    future: Future[Any]

    def run(self) -> None:
        """Do it, unless nobody waits for it any more."""
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self.function()
        except Exception as error:  # it belongs to whoever asked
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


class SharedOrAlone:
    """Something that many may use at once, or one alone; who wants it alone goes before those who share it."""

    def __init__(self) -> None:
        self._bell = Condition()
        self._sharing = 0  # who have it
        self._asking = 0  # who want it alone
        self._taken = False  # by one alone

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Beside others."""
        with self._bell:
            self._bell.wait_for(lambda: not self._taken and not self._asking)
            self._sharing += 1
        try:
            yield
        finally:
            with self._bell:
                self._sharing -= 1
                self._bell.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """While nobody else has it."""
        with self._bell:
            self._asking += 1
            self._bell.wait_for(lambda: not self._taken and not self._sharing)
            self._asking -= 1
            self._taken = True
        try:
            yield
        finally:
            with self._bell:
                self._taken = False
                self._bell.notify_all()


class Desk(ABC):
    """A model's queue and its threads, the hands. What is public is for the event loop."""

    _hands = 1

    def __init__(self, predictor: Any, settings: Settings) -> None:
        self._predictor, self._settings = predictor, settings
        self._bell = Condition()
        self._closed = False
        self._jobs: deque[Job] = deque()
        self._at_the_door = 0  # items that are being checked
        self._usual = 0.0  # seconds that a request takes of late
        self._module = SharedOrAlone()
        name = f"{predictor.task} desk"
        self._threads = [Thread(target=self._work, args=[hand], name=name, daemon=True) for hand in range(self._hands)]
        for thread in self._threads:
            thread.start()

    @abstractmethod
    async def predict(self, items: Sequence[Any]) -> list[Any]:
        """What the model's `predict` gives, done together with what others ask."""

    async def candidates(self, texts: Sequence[str], **generation: Any) -> list[list[Answer]]:
        """What a writer's `candidates` gives; each text joins those that are being written."""
        raise HeedfulError(f"a model for {self._predictor.task} does not write")

    def stream(self, text: str, **generation: Any) -> AnswerStream:
        """The best of them token by token. Closing it frees its place."""
        raise HeedfulError(f"a model for {self._predictor.task} does not write")

    async def call(self, function: Callable[[], T]) -> T:
        """Anything else that needs the model: it runs in a thread of the desk, between the steps of what others ask."""
        job = Job(function, Future())
        async with self._in_time():
            with self._door(1):
                self._queue(lambda: self._jobs.append(job))
            try:
                result: T = await asyncio.wrap_future(job.future)
            finally:
                self._drop(job)
        return result

    @property
    def waiting(self) -> int:
        """Items that have not begun."""
        return self._at_the_door + len(self._jobs) + self._n_queued()

    @property
    @abstractmethod
    def running(self) -> int:
        """Items that the model is working on."""

    def close(self) -> None:
        """End the threads. Who still waits gets an error."""
        with self._bell:
            self._closed = True
            self._bell.notify_all()
        until = time.monotonic() + PROMPTLY
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    # What a kind of desk brings: a queue of its own, and how a hand works on it

    @abstractmethod
    def _n_queued(self) -> int:
        """Items in it."""

    @abstractmethod
    def _has_work(self, hand: int) -> bool:
        """Whether there is something for `_step` to do."""

    @abstractmethod
    def _step(self, hand: int) -> None:
        """In the hand's thread: a part of it, short enough for others to wait."""

    @abstractmethod
    def _refuse(self, error: Exception, hand: int) -> None:
        """In the hand's thread, when it ends: tell everyone who waits."""

    # What it finds here

    @contextmanager
    def _door(self, count: int) -> Iterator[None]:
        """So many items count as waiting while they are checked; Busy where too many wait already.

        What is more than may ever wait is let in when nothing else does.
        """
        if self.waiting and self.waiting + count > self._settings.max_waiting:
            raise Busy(max(1.0, self._usual))
        self._at_the_door += count
        try:
            yield
        finally:
            self._at_the_door -= count

    def _queue(self, put: Callable[[], None]) -> None:
        """Put something where a thread will see it."""
        with self._bell:
            if self._closed:
                raise Closed
            put()
            self._bell.notify_all()

    @asynccontextmanager
    async def _in_time(self) -> AsyncIterator[None]:
        """What is done within takes no longer than a request may."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._settings.seconds) as limit:
                yield
        except TimeoutError:
            if limit.expired():
                raise TooLate from None
            raise
        finally:
            self._usual += 0.1 * (time.monotonic() - began - self._usual)

    # The threads

    def _work(self, hand: int) -> None:
        give_way()
        try:
            while self._awake(hand):
                with CORES.at_work(self):
                    while not self._closed and (self._jobs or self._has_work(hand)):
                        if job := self._next_job():
                            with self._module.alone():
                                CORES.take(self, alone=True)
                                job.run()
                        if self._has_work(hand) and not self._closed:
                            with self._module.shared():
                                CORES.take(self)
                                self._step_or_tell(hand)
                            self._ring()
        finally:
            with self._bell:
                self._closed = True
                self._bell.notify_all()
            while job := self._next_job():
                job._replace(function=_refused).run()
            self._refuse(Closed(), hand)

    def _step_or_tell(self, hand: int) -> None:
        """A step. What nobody foresaw ends it for those who wait, not for those who come later."""
        try:
            self._step(hand)
        except Exception as error:
            log.exception("the model for %s could not go on", self._predictor.task)
            self._refuse(error, hand)

    def _awake(self, hand: int) -> bool:
        """Sleep until there is something to do; False once there never will be."""
        with self._bell:
            self._bell.wait_for(lambda: self._closed or self._jobs or self._has_work(hand))
            return not self._closed

    def _ring(self) -> None:
        """What this hand has left to others may be theirs now."""
        if self._hands > 1 and self._n_queued():
            with self._bell:
                self._bell.notify_all()

    def _next_job(self) -> Job | None:
        with self._bell:
            return self._jobs.popleft() if self._jobs else None

    def _drop(self, job: Job) -> None:
        with self._bell:
            if job in self._jobs:
                self._jobs.remove(job)


def _refused() -> None:
    raise Closed
