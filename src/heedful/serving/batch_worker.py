"""A worker for models that read: texts, images or series in, numbers out."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from ..tasks.predictor import ItemError, listed
from .settings import Settings
from .worker import ModelWorker

MAX_BATCH = 64  # items that are read at once, from requests with fewer


@dataclass(frozen=True, eq=False)
class _BatchRequest:
    items: Sequence[Any]
    future: Future[list[Any]] = field(default_factory=Future)


class BatchWorker(ModelWorker):
    """The thread takes what waits, asks the model once, and gives everyone their own."""

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
                self._enqueue(lambda: self._queue.append(request))
            try:
                return await asyncio.wrap_future(request.future)
            finally:
                self._drop_request(request)

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

    def _drop_request(self, request: _BatchRequest) -> None:
        with self._condition:
            if request in self._queue:
                self._queue.remove(request)

    def _fail_all(self, error: Exception, thread: int) -> None:
        while requests := self._take():
            for request in requests:
                request.future.set_exception(error)
