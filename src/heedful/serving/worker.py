"""Where the event loop asks a model: the model works in threads of its own, for all who wait."""

import asyncio
import logging
import os
import sys
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Condition, Lock, Thread, get_native_id
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

import torch

from ..errors import HeedfulError
from ..tasks.predictor import ItemError, listed
from ..tasks.text_generator import Answer
from .settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

log = logging.getLogger("heedful.serving")

SECONDS_TO_END = 5.0  # for the threads; what takes longer ends with the process
NICENESS = 10  # of a model's threads beside the event loop's
MAX_BATCH = 64  # items that are read at once, from requests with fewer
SHORT_WORK = 1000  # characters, which take less time than the way to another thread and back


class Overloaded(Exception):  # noqa: N818  (nobody made a mistake)
    """Too much waits already; another try may succeed after so many seconds."""

    def __init__(self, retry_after: float = 1.0) -> None:
        super().__init__("the model has too much to do")
        self.retry_after = retry_after


class Closed(Overloaded):
    """The model is not served any more."""


class DeadlineExceeded(Exception):  # noqa: N818  (nobody made a mistake)
    """The time for an answer is over."""


class StreamedToken(NamedTuple):
    """One of an answer's. Its text is empty where it does not complete a character."""

    text: str
    id: int
    logprob: float


class AnswerStream(AsyncIterator[StreamedToken]):
    """The tokens of an answer, each as soon as it is certain; after the last, `answer` is the whole one."""

    def __init__(self, tokens: AsyncGenerator[StreamedToken | Answer, None]) -> None:
        self._tokens = tokens
        self.answer: Answer | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamedToken:
        async for item in self._tokens:
            if isinstance(item, StreamedToken):
                return item
            self.answer = item
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Write no more; the place is free."""
        await self._tokens.aclose()


async def run_in_thread(size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do work that is not the model's, on `size` characters, in a thread; or here, where it is short."""
    return work(*args, **kwargs) if size <= SHORT_WORK else await asyncio.to_thread(work, *args, **kwargs)


class Job(NamedTuple):
    """A function to be run for someone."""

    function: Callable[[], Any]
    future: Future[Any]

    def run(self) -> None:
        """Run it, unless nobody waits for it any more."""
        if self.future.set_running_or_notify_cancel():
            try:
                self.future.set_result(self.function())
            except Exception as error:  # it belongs to whoever asked
                self.future.set_exception(error)


class ReadWriteLock:
    """Many may hold it shared, or one exclusively; who wants it exclusively goes before those who share it."""

    def __init__(self) -> None:
        self._condition = Condition()
        self._n_sharing = 0
        self._n_waiting = 0  # for it exclusively
        self._exclusive = False

    @contextmanager
    def shared(self) -> Iterator[None]:
        """Beside others."""
        with self._condition:
            self._condition.wait_for(lambda: not self._exclusive and not self._n_waiting)
            self._n_sharing += 1
        try:
            yield
        finally:
            with self._condition:
                self._n_sharing -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """While nobody else holds it."""
        with self._condition:
            self._n_waiting += 1
            self._condition.wait_for(lambda: not self._exclusive and not self._n_sharing)
            self._n_waiting -= 1
            self._exclusive = True
        try:
            yield
        finally:
            with self._condition:
                self._exclusive = False
                self._condition.notify_all()


class CoreBudget:
    """The processor's cores, as torch's threads: every busy model has as many, and divides them among its threads.

    More of them than cores would wait for each other, and burn time doing so.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._busy: Counter[Hashable] = Counter()  # threads, by their model
        self._lock = Lock()

    @contextmanager
    def busy(self, model: Hashable) -> Iterator[None]:
        """While this thread, one of the model's, has something to compute."""
        with self._lock:
            self._busy[model] += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy[model] -= 1
                self._busy += Counter()  # a model with no busy thread is not counted

    def take(self, model: Hashable, *, exclusive: bool = False) -> None:
        """Set this thread's share, as things stand; the model's whole share where its other threads must wait."""
        with self._lock:
            n_threads = 1 if exclusive else max(1, self._busy[model])
            share = self.total // max(1, len(self._busy))
        torch.set_num_threads(max(1, share // n_threads))


CORE_BUDGET = CoreBudget(torch.get_num_threads())


class ModelWorker(ABC):
    """A model's queue and its threads. What is public is for the event loop."""

    _n_threads = 1

    def __init__(self, predictor: Any, settings: Settings) -> None:
        self._predictor, self._settings = predictor, settings
        self._condition = Condition()  # notified where a thread may find something to do
        self._closed = False
        self._jobs: deque[Job] = deque()
        self._n_admitted = 0  # items that are being checked
        self._mean_seconds = 0.0  # that a request takes of late
        self._module_lock = ReadWriteLock()
        name = f"{predictor.task} worker"
        self._threads = [Thread(target=self._run, args=[n], name=name, daemon=True) for n in range(self._n_threads)]
        for thread in self._threads:
            thread.start()

    @abstractmethod
    async def predict(self, items: Sequence[Any]) -> list[Any]:
        """What the model's `predict` gives, done together with what others ask."""

    async def candidates(self, texts: Sequence[str], **options: Any) -> list[list[Answer]]:
        """What a text generator's `candidates` gives; each text joins those that are being written."""
        raise HeedfulError(f"a model for {self._predictor.task} does not write")

    def stream(self, text: str, **options: Any) -> AnswerStream:
        """The best of them token by token. Closing it frees its place."""
        raise HeedfulError(f"a model for {self._predictor.task} does not write")

    async def call(self, function: Callable[[], T]) -> T:
        """Anything else that needs the model: it runs in one of its threads, between the steps of what others ask."""
        job = Job(function, Future())
        async with self._deadline():
            with self._admission(1):
                self._enqueue(partial(self._jobs.append, job))
            result: T = await self._result(self._jobs, job)
        return result

    @property
    def waiting(self) -> int:
        """Items that have not begun."""
        return self._n_admitted + len(self._jobs) + self._n_queued()

    @property
    @abstractmethod
    def running(self) -> int:
        """Items that the model is working on."""

    def close(self) -> None:
        """End the threads. Who still waits gets an error."""
        self._stop()
        until = time.monotonic() + SECONDS_TO_END
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    # What a kind of worker brings: a queue, and how a thread works on it

    @abstractmethod
    def _n_queued(self) -> int:
        """Items in it."""

    @abstractmethod
    def _has_work(self, thread: int) -> bool:
        """Whether there is something for `_step` to do."""

    @abstractmethod
    def _step(self, thread: int) -> None:
        """In a thread of the model's: a part of it, short enough for others to wait."""

    @abstractmethod
    def _fail_all(self, error: Exception, thread: int) -> None:
        """In a thread of the model's, when it ends: tell everyone who waits."""

    # What it finds here

    @contextmanager
    def _admission(self, count: int) -> Iterator[None]:
        """So many items count as waiting while they are checked; Overloaded where too many wait already.

        What is more than may ever wait is admitted when nothing else does.
        """
        if self.waiting and self.waiting + count > self._settings.max_waiting:
            raise Overloaded(max(1.0, self._mean_seconds))
        self._n_admitted += count
        try:
            yield
        finally:
            self._n_admitted -= count

    def _enqueue(self, put: Callable[[], Any]) -> None:
        """Put something where a thread will see it."""
        with self._condition:
            if self._closed:
                raise Closed
            put()
            self._condition.notify_all()

    async def _result(self, queue: deque[Any], entry: Any) -> Any:
        """What the future of an entry gives; who stops waiting for it takes it out of its queue."""
        try:
            return await asyncio.wrap_future(entry.future)
        finally:
            with self._condition:
                if entry in queue:
                    queue.remove(entry)

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        """What is done within takes no longer than a request may."""
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._settings.seconds) as limit:
                yield
        except TimeoutError:
            if limit.expired():
                raise DeadlineExceeded from None
            raise
        finally:
            self._mean_seconds += 0.1 * (time.monotonic() - began - self._mean_seconds)

    # The threads

    def _run(self, thread: int) -> None:
        _lower_priority()
        try:
            while self._wait_for_work(thread):
                with CORE_BUDGET.busy(self):
                    while not self._closed and (self._jobs or self._has_work(thread)):
                        if job := self._next_job():
                            with self._module_lock.exclusive():
                                CORE_BUDGET.take(self, exclusive=True)
                                job.run()
                        if self._has_work(thread) and not self._closed:
                            with self._module_lock.shared():
                                CORE_BUDGET.take(self)
                                self._step_or_fail(thread)
                            if self._n_threads > 1 and self._n_queued():  # what is left may be another thread's now
                                with self._condition:
                                    self._condition.notify_all()
        finally:
            self._stop()
            while job := self._next_job():
                if job.future.set_running_or_notify_cancel():
                    job.future.set_exception(Closed())
            self._fail_all(Closed(), thread)

    def _step_or_fail(self, thread: int) -> None:
        """A step. What nobody foresaw ends it for those who wait, not for those who come later."""
        try:
            self._step(thread)
        except Exception as error:
            log.exception("the model for %s could not go on", self._predictor.task)
            self._fail_all(error, thread)

    def _wait_for_work(self, thread: int) -> bool:
        """Sleep until there is something to do; False once there never will be."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._jobs or self._has_work(thread))
            return not self._closed

    def _stop(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _next_job(self) -> Job | None:
        with self._condition:
            return self._jobs.popleft() if self._jobs else None


def _lower_priority() -> None:
    """Let this thread compute only where the event loop has nothing to do: of all that wait for a core, the system
    lets the nicer wait longer. Linux alone has a niceness for each thread."""
    if sys.platform == "linux":
        thread = get_native_id()
        os.setpriority(os.PRIO_PROCESS, thread, min(19, os.getpriority(os.PRIO_PROCESS, thread) + NICENESS))


@dataclass(frozen=True, eq=False)
class _BatchRequest:
    items: Sequence[Any]
    future: Future[list[Any]] = field(default_factory=Future)


class BatchWorker(ModelWorker):
    """For models that read: the thread takes what waits, asks the model once, and gives everyone their own."""

    def __init__(self, predictor: Any, settings: Settings) -> None:
        self._queue: deque[_BatchRequest] = deque()
        self._running = 0
        super().__init__(predictor, settings)

    async def predict(self, items: Sequence[Any]) -> list[Any]:
        """What the model's `predict` gives. What it would refuse is refused before it can disturb anyone."""
        request = _BatchRequest(listed(items, self._predictor.item_name))
        async with self._deadline():
            with self._admission(len(items)):
                await asyncio.to_thread(self._check, items)
                self._enqueue(partial(self._queue.append, request))
            outputs: list[Any] = await self._result(self._queue, request)
        return outputs

    @property
    def running(self) -> int:
        """Items that are being read."""
        return self._running

    def _check(self, items: Sequence[Any]) -> None:
        for index, item in enumerate(items):
            if reason := self._predictor.validation_error(item):
                raise ItemError(self._predictor.item_name, index, reason)

    def _n_queued(self) -> int:
        return sum(len(request.items) for request in [*self._queue])

    def _has_work(self, thread: int) -> bool:
        return bool(self._queue)

    def _step(self, thread: int) -> None:
        requests = self._take()
        self._running = sum(len(request.items) for request in requests)
        deliveries = self._predict(requests)
        self._running = 0
        for deliver in deliveries:
            deliver()

    def _predict(self, requests: Sequence[_BatchRequest]) -> list[Callable[[], None]]:
        """Functions that give every request its outputs."""
        try:
            outputs = iter(self._predictor.predict([item for request in requests for item in request.items]))
        except Exception as error:
            if len(requests) == 1:
                return [partial(requests[0].future.set_exception, error)]
            # The error belongs to one of them, and no other must have it.
            return [deliver for request in requests for deliver in self._predict([request])]
        return [partial(request.future.set_result, [*islice(outputs, len(request.items))]) for request in requests]

    def _take(self) -> list[_BatchRequest]:
        """The next ones, for whom somebody still waits: several small ones, or a large one."""
        taken: list[_BatchRequest] = []
        count = 0
        with self._condition:
            while self._queue and (not count or count + len(self._queue[0].items) <= MAX_BATCH):
                request = self._queue.popleft()
                if request.future.set_running_or_notify_cancel():
                    taken.append(request)
                    count += len(request.items)
        return taken

    def _fail_all(self, error: Exception, thread: int) -> None:
        while requests := self._take():
            for request in requests:
                request.future.set_exception(error)
