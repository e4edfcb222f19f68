"""Workers: each runs one model in its own threads and takes requests from the event loop."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from threading import Condition, Lock, Thread
from typing import Any, NamedTuple, TypeVar

import torch

from ..errors import HeedfulError
from ..generation import GenerationEngine
from ..tasks.predictor import Errors, ItemError, listed
from ..tasks.text_generator import Answer
from .batch_engine import BatchEngine, BatchRequest
from .errors import DeadlineExceeded, Overloaded
from .settings import Settings
from .threads import lower_priority, run_in_thread
from .work import current_work, n_tokens

T = TypeVar("T")

log = logging.getLogger("heedful.serving")

SECONDS_TO_END = 5.0  # that `close` waits for the threads; the process ends those that take longer
SHARES = 16  # requests that fill the queue, however many items each has


class Closed(Overloaded):
    """The model has been shut down."""


class StreamedToken(NamedTuple):
    """A token of a streamed answer. Its text is empty if the token does not complete a character."""

    text: str
    id: int
    logprob: float


class Job(NamedTuple):
    """A function to run in a model's thread, and the future that receives its result."""

    function: Callable[[], Any]
    future: Future[Any]

    def run(self) -> None:
        """Run the function unless the future was cancelled; its result or exception goes to the future."""
        if self.future.set_running_or_notify_cancel():
            try:
                self.future.set_result(self.function())
            except Exception as error:
                self.future.set_exception(error)


class ReadWriteLock:
    """A lock that many threads may share or one may hold exclusively. Nobody overtakes a waiting exclusive holder."""

    def __init__(self) -> None:
        self._entry = Lock()  # held by an exclusive holder from when it begins to wait
        self._condition = Condition()
        self._n_sharing = 0

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._entry, self._condition:
            self._n_sharing += 1
        try:
            yield
        finally:
            with self._condition:
                self._n_sharing -= 1
                self._condition.notify_all()

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        with self._entry, self._condition:
            self._condition.wait_for(lambda: not self._n_sharing)
            yield


class CoreBudget:
    """Divides the CPU's cores, as torch threads, equally among the busy models, and a model's share among its threads.

    More torch threads than cores would spend their time spinning while they wait for each other.
    """

    def __init__(self, total: int) -> None:
        self.total = total
        self._busy: Counter[Hashable] = Counter()  # number of busy threads of each model
        self._lock = Lock()

    @contextmanager
    def busy(self, model: Hashable) -> Iterator[None]:
        """Count this thread, which belongs to the model, as busy."""
        with self._lock:
            self._busy[model] += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy[model] -= 1
                self._busy += Counter()  # a model with no busy thread is not counted

    def take(self, model: Hashable, *, exclusive: bool = False) -> None:
        """Set this thread's number of torch threads; `exclusive` gives it the model's whole share."""
        with self._lock:
            n_threads = 1 if exclusive else max(1, self._busy[model])
            share = self.total // max(1, len(self._busy))
        torch.set_num_threads(max(1, share // n_threads))


CORE_BUDGET = CoreBudget(torch.get_num_threads())


class ModelWorker(ABC):
    """A model's engine and the threads that step it. The event loop calls the public methods."""

    def __init__(
        self, predictor: Any, settings: Settings, engine: BatchEngine | GenerationEngine, n_threads: int = 1
    ) -> None:
        self._predictor, self._settings, self._engine = predictor, settings, engine
        self._condition = Condition()  # notified when there may be work for a thread
        self._closed = False
        self._jobs: deque[Job] = deque()
        self._n_admitted = 0  # items being validated, before they are queued
        self._mean_seconds = 0.0  # exponential moving average of a request's duration
        self._module_lock = ReadWriteLock()
        name = f"{predictor.task} worker"
        self._threads = [Thread(target=self._run, args=[n], name=name, daemon=True) for n in range(n_threads)]
        for thread in self._threads:
            thread.start()

    @abstractmethod
    async def predict(self, items: Sequence[Any], *, errors: Errors = "raise") -> list[Any]:
        """Return what the model's `predict` returns, batched with other requests."""

    async def candidates(self, texts: Sequence[str], *, errors: Errors = "raise", **options: Any) -> list[Any]:
        """Return what a text generator's `candidates` returns; the texts join the running batch."""
        raise HeedfulError(f"a model for {self._predictor.task} does not generate text")

    def stream(self, text: str, **options: Any) -> AsyncGenerator[list[StreamedToken] | Answer, None]:
        """Yield the tokens of the best answer as they become final, and last the whole answer.

        A list holds all tokens since the one before it. Closing the generator aborts the request.
        """
        raise HeedfulError(f"a model for {self._predictor.task} does not generate text")

    async def call(self, function: Callable[[], T]) -> T:
        """Run any other function that needs the model in one of its threads, with exclusive access to the module."""
        job = Job(function, Future())
        async with self._deadline():
            with self._admission(1):
                self._enqueue(partial(self._jobs.append, job))
            try:
                result: T = await asyncio.wrap_future(job.future)
                return result
            finally:
                with self._condition, suppress(ValueError):
                    self._jobs.remove(job)

    @property
    def waiting(self) -> int:
        """The number of items that are queued or being validated."""
        return self._n_admitted + len(self._jobs) + self._engine.n_waiting

    @property
    def running(self) -> int:
        """The number of items that the model is working on."""
        return self._engine.n_running

    def close(self) -> None:
        """Stop the threads. Requests that still wait fail with Closed."""
        self._stop()
        until = time.monotonic() + SECONDS_TO_END
        for thread in self._threads:
            thread.join(max(0.0, until - time.monotonic()))

    # What a subclass uses

    @contextmanager
    def _admission(self, count: int) -> Iterator[None]:
        """Count items as waiting while they are validated; raise Overloaded if too many wait already.

        Requests take turns, so the items of a large one keep others waiting no longer than those of a small one: at
        most a share of them counts.
        """
        share = max(1, self._settings.max_waiting // SHARES)
        count = min(count, share)
        if self._n_ahead(share) + count > self._settings.max_waiting:
            raise Overloaded(max(1.0, self._mean_seconds))
        self._n_admitted += count
        try:
            yield
        finally:
            self._n_admitted -= count

    @abstractmethod
    def _n_ahead(self, most: int) -> int:
        """Return the number of items that wait, at most so many of each request."""

    def _enqueue(self, put: Callable[[], Any]) -> None:
        """Call `put`, which adds work to the queue, and wake the threads."""
        with self._condition:
            if self._closed:
                raise Closed
            put()
            self._condition.notify_all()

    @asynccontextmanager
    async def _deadline(self) -> AsyncIterator[None]:
        """Raise DeadlineExceeded if the body takes longer than a request may."""
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
        lower_priority()
        try:
            while self._wait_for_work(thread):
                with CORE_BUDGET.busy(self):
                    while not self._closed and (self._jobs or self._engine.has_work_for(thread)):
                        if job := self._next_job():
                            with self._module_lock.exclusive():
                                CORE_BUDGET.take(self, exclusive=True)
                                job.run()
                        if self._engine.has_work_for(thread) and not self._closed:
                            with self._module_lock.shared():
                                CORE_BUDGET.take(self)
                                self._step(thread)
                            if len(self._threads) > 1 and self._engine.n_waiting:  # another thread may take the rest
                                with self._condition:
                                    self._condition.notify_all()
        finally:
            self._stop()
            while job := self._next_job():
                if job.future.set_running_or_notify_cancel():
                    job.future.set_exception(Closed())
            self._engine.fail_all(Closed(), thread)

    def _step(self, thread: int) -> None:
        """Do a part of the work. An unexpected error fails the requests that wait now, not those that come later."""
        try:
            self._engine.step(thread)
        except Exception as error:
            log.exception("the model for %s failed", self._predictor.task)
            self._engine.fail_all(error, thread)

    def _wait_for_work(self, thread: int) -> bool:
        """Sleep until there is work and return True, or False once the worker is closed."""
        with self._condition:
            self._condition.wait_for(lambda: self._closed or self._jobs or self._engine.has_work_for(thread))
            return not self._closed

    def _stop(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _next_job(self) -> Job | None:
        with self._condition:
            return self._jobs.popleft() if self._jobs else None


class BatchWorker(ModelWorker):
    """A worker for models that do not generate text: it runs waiting requests as one batch."""

    _engine: BatchEngine

    def __init__(self, predictor: Any, settings: Settings) -> None:
        super().__init__(predictor, settings, BatchEngine(predictor))

    def _n_ahead(self, most: int) -> int:
        return self._n_admitted + len(self._jobs) + self._engine.n_ahead(most)

    async def predict(self, items: Sequence[Any], *, errors: Errors = "raise") -> list[Any]:
        """Validate the items, then predict them together with other requests."""
        items = listed(items, self._predictor.item_name)
        current_work().add(sum(map(n_tokens, items)))
        async with self._deadline():
            with self._admission(len(items)):
                refused = await run_in_thread(None, self._predictor.refusals, items)
                if refused and errors == "raise":
                    first = min(refused)
                    raise ItemError(self._predictor.item_name, first, refused[first])
                request = BatchRequest([item for index, item in enumerate(items) if index not in refused])
                self._enqueue(partial(self._engine.add_request, request))
            try:
                answers = await asyncio.wrap_future(request.future)
            finally:
                self._engine.abort(request)
        return self._predictor.in_places(answers, refused, errors)
