"""Batches the items of many requests, for models that do not generate text."""

import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from threading import Lock
from typing import Any, NamedTuple

from ..tasks.predictor import ItemError
from .work import TOKENS, n_tokens

MAX_BATCH = 64  # items in one batch; a long text counts as several
MAX_SLICE = 16  # items of a request that are taken when it is its turn


@dataclass(eq=False)
class BatchRequest:
    """The items of one request, how many of them were taken, and the future that receives all outputs."""

    items: Sequence[Any]
    future: Future[list[Any]] = field(default_factory=Future)
    n_taken: int = 0
    outputs: list[Any] = field(default_factory=list)

    @property
    def n_waiting(self) -> int:
        return len(self.items) - self.n_taken


class Slice(NamedTuple):
    """Items of a request that are in the same batch, and the place of the first one."""

    request: BatchRequest
    start: int
    items: Sequence[Any]


class BatchEngine:
    """Runs waiting items as batches, for models that do not generate text. One thread steps it.

    A batch takes a slice of each request in turn, so that small requests do not wait for all items of a large one.
    """

    def __init__(self, predictor: Any) -> None:
        self.n_running = 0
        self._predictor = predictor
        self._queue: deque[BatchRequest] = deque()
        self._lock = Lock()

    @property
    def n_waiting(self) -> int:
        return self.n_ahead(sys.maxsize)

    def n_ahead(self, most: int) -> int:
        """Return the number of items that wait, at most so many of each request."""
        return sum(min(request.n_waiting, most) for request in [*self._queue])

    def has_work_for(self, worker: int) -> bool:
        return bool(self._queue)

    def add_request(self, request: BatchRequest) -> None:
        if request.items:
            self._queue.append(request)
        else:
            request.future.set_result([])

    def abort(self, request: BatchRequest) -> None:
        """Remove a request from the queue; one that is running or finished is ignored."""
        with self._lock, suppress(ValueError):
            self._queue.remove(request)

    def step(self, worker: int) -> None:
        """Run the next batch."""
        slices = self._take()
        self.n_running = sum(len(each.items) for each in slices)
        deliveries = self._predict(slices)
        self.n_running = 0
        for deliver in deliveries:
            deliver()

    def fail_all(self, error: Exception, worker: int) -> None:
        """Give this error to all requests that wait."""
        while self._queue:
            self._fail(self._queue[0], error)

    def _predict(self, slices: Sequence[Slice]) -> list[Callable[[], None]]:
        """Return functions that give every request its outputs."""
        try:
            outputs = iter(self._predictor.predict_valid([item for each in slices for item in each.items]))
        except Exception as error:
            if len(slices) > 1:  # only the request that caused the error may get it
                return [deliver for each in slices for deliver in self._predict([each])]
            request, start, _ = slices[0]
            if isinstance(error, ItemError):
                error = ItemError(self._predictor.item_name, start + error.index, error.reason)
            return [partial(self._fail, request, error)]
        return [partial(self._deliver, each.request, [*islice(outputs, len(each.items))]) for each in slices]

    def _deliver(self, request: BatchRequest, outputs: list[Any]) -> None:
        request.outputs += outputs
        if len(request.outputs) == len(request.items):
            request.future.set_result(request.outputs)

    def _fail(self, request: BatchRequest, error: Exception) -> None:
        self.abort(request)
        with suppress(InvalidStateError):  # an earlier slice failed, or the request was cancelled
            request.future.set_exception(error)

    def _take(self) -> list[Slice]:
        """Take a slice of each request that was not cancelled, in turn, until the batch is full."""
        slices: list[Slice] = []
        room = MAX_BATCH
        with self._lock:
            while self._queue and room > 0:
                request = self._queue.popleft()
                if not request.n_taken and not request.future.set_running_or_notify_cancel():
                    continue
                start, taken = request.n_taken, list[Any]()
                while request.n_waiting and room > 0 and len(taken) < MAX_SLICE:
                    taken.append(request.items[request.n_taken])
                    request.n_taken += 1
                    room -= max(1, n_tokens(taken[-1]) // TOKENS)
                slices.append(Slice(request, start, taken))
                if request.n_waiting:
                    self._queue.append(request)
        return slices
