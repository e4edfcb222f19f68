"""A desk for models that read: texts, images or series in, numbers out."""

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
from .desk import Desk
from .settings import Settings

TOGETHER = 64  # items that are read at once, from those who ask for less


@dataclass(frozen=True, eq=False)
class _Ask:
    items: Sequence[Any]
    future: Future[list[Any]] = field(default_factory=Future)


class ReadingDesk(Desk):
    """The thread takes what waits, asks the model once, and gives everyone their own."""

    def __init__(self, predictor: Any, settings: Settings) -> None:
        self._asks: deque[_Ask] = deque()
        self._running = 0
        super().__init__(predictor, settings)

    async def predict(self, items: Sequence[Any]) -> list[Any]:
        """What the model's `predict` gives. What it would refuse is refused before it can disturb anyone."""
        ask = _Ask(listed(items, self._predictor.item_name))
        async with self._in_time():
            with self._door(len(items)):
                await asyncio.to_thread(self._check, items)
                self._queue(lambda: self._asks.append(ask))
            try:
                return await asyncio.wrap_future(ask.future)
            finally:
                self._leave(ask)

    @property
    def running(self) -> int:
        """Items that are being read."""
        return self._running

    def _check(self, items: Sequence[Any]) -> None:
        for index, item in enumerate(items):
            if reason := self._predictor.validation_error(item):
                raise ItemError(self._predictor.item_name, index, reason)

    def _n_queued(self) -> int:
        return sum(len(ask.items) for ask in [*self._asks])

    def _has_work(self, hand: int) -> bool:
        return bool(self._asks)

    def _step(self, hand: int) -> None:
        asks = self._taken()
        self._running = sum(len(ask.items) for ask in asks)
        given = self._answered(asks)
        self._running = 0
        for give in given:
            give()

    def _answered(self, asks: Sequence[_Ask]) -> list[Callable[[], None]]:
        """What gives everyone their own."""
        try:
            found = iter(self._predictor.predict([item for ask in asks for item in ask.items]))
        except Exception as error:
            if len(asks) == 1:
                return [partial(asks[0].future.set_exception, error)]
            # The error belongs to one of them, and no other must have it.
            return [give for ask in asks for give in self._answered([ask])]
        return [partial(ask.future.set_result, [*islice(found, len(ask.items))]) for ask in asks]

    def _taken(self) -> list[_Ask]:
        """The next ones, for whom somebody still waits: several small ones, or a large one."""
        taken: list[_Ask] = []
        count = 0
        with self._bell:
            while self._asks and (not count or count + len(self._asks[0].items) <= TOGETHER):
                ask = self._asks.popleft()
                if ask.future.set_running_or_notify_cancel():
                    taken.append(ask)
                    count += len(ask.items)
        return taken

    def _leave(self, ask: _Ask) -> None:
        with self._bell:
            if ask in self._asks:
                self._asks.remove(ask)

    def _refuse(self, error: Exception, hand: int) -> None:
        while asks := self._taken():
            for ask in asks:
                ask.future.set_exception(error)
