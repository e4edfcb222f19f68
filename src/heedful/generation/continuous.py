"""A batch that never ends: whoever asks, at any time, joins what is being written.

Those who ask for the same way to write share a batch; where there are several ways, their batches take turns, step
by step. Who came first begins first. Asking and leaving are for any thread.

Several hands may write, each in a thread of its own: while one does its books, another computes. Few rows are written
by one hand, since every hand reads all weights in every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import fields
from threading import Lock
from typing import NamedTuple

import torch

from .config import GenerationConfig
from .engine import Asked
from .queue import SHORT
from .sentence import Sentence

Told = Callable[[Sentence], None]

# Of a config, what a sentence keeps for itself; of the rest all who share a batch have the same.
OWN = {"seed", "max_new_tokens", "length_penalty", "penalty", "n_best"}
SHARED = [field.name for field in fields(GenerationConfig) if field.name not in OWN]
ENOUGH = 16  # rows for one hand, before another takes some
WORTH, PATIENCE = 4, 4  # newcomers are read when they are one in so many, or have waited for so many steps


class Continuous:
    """All that one model is writing, and those that wait for it."""

    def __init__(self, hands: int = 1) -> None:
        self._lock = Lock()
        self._waiting: deque[_Waiter] = deque()
        self._hands = [_Hand() for _ in range(hands)]
        self._most: int | None = None  # that fits the memory, once that has run out

    @property
    def waiting(self) -> int:
        """Sentences that have not begun."""
        return len(self._waiting)

    @property
    def running(self) -> int:
        """Sentences that have begun."""
        return sum(hand.running for hand in self._hands)

    @property
    def has_work(self) -> bool:
        """Whether anything is left to write."""
        return bool(self._waiting or any(hand.batches for hand in self._hands))

    def has_work_for(self, hand: int) -> bool:
        """Whether a step of this hand would do anything."""
        own = self._hands[hand]
        with self._lock:
            return bool(own.batches or self._next_for(own, self._share()))

    def put(self, asked: Asked, told: Told) -> None:
        """Write these. `told` is called in the writing thread after every step of each, and with the error of one
        that fails: it must be quick, and raise nothing.
        """
        way = _way(asked)
        for request in asked.requests:
            request.told = told
        with self._lock:
            self._waiting.extend(_Waiter(way, asked, asked.sentence(request)) for request in asked.requests)

    def leave(self, asked: Asked) -> None:
        """Nobody waits for these any more. Those that run leave at their next step."""
        for request in asked.requests:
            request.unwanted = True
        with self._lock:
            self._waiting = deque(waiter for waiter in self._waiting if not waiter.sentence.request.unwanted)

    def step(self, hand: int = 0) -> None:
        """A step of every batch in this hand."""
        own = self._hands[hand]
        self._admit(own)
        stepped = [sentence for way, batch in [*own.batches.items()] for sentence in self._advanced(own, way, batch)]
        own.count()
        for sentence in stepped:
            _tell(sentence)

    def close(self, error: Exception, hand: int = 0) -> None:
        """Write nothing more with this hand; everyone who waits for it, or for any, is told why."""
        own = self._hands[hand]
        with self._lock:
            left = [waiter.sentence for waiter in self._waiting]
            self._waiting.clear()
        left += [sentence for batch in own.batches.values() for sentence in batch.all]
        own.batches.clear()
        own.count()
        for sentence in _failed(left, error):
            _tell(sentence)

    def _admit(self, own: _Hand) -> None:
        """In the order they came, as many as fit beside those that run; one at least when nothing does."""
        with self._lock:
            share = self._share()
            while waiter := self._next_for(own, share):
                self._waiting.popleft()
                own.take(waiter)

    def _share(self) -> int:
        """Rows of each hand."""
        rows = sum(hand.rows for hand in self._hands) + sum(waiter.rows for waiter in self._waiting)
        return max(ENOUGH, -(-rows // len(self._hands)))

    def _next_for(self, own: _Hand, share: int) -> _Waiter | None:
        """The first that waits, if this hand may begin it now. Another hand begins when those at work have enough."""
        if not self._waiting or not (own.rows or all(hand.rows >= ENOUGH for hand in self._hands if hand.rows)):
            return None
        waiter, used = self._waiting[0], sum(hand.cost for hand in self._hands)
        budget = min(waiter.asked.budget, self._most or waiter.asked.budget)
        others_have_less = any(hand.rows < own.rows for hand in self._hands)  # and will take it
        too_many = own.rows >= ENOUGH and own.rows + waiter.rows > share and others_have_less
        too_much = used and used + waiter.cost > budget
        return None if too_many or too_much else waiter

    def _advanced(self, own: _Hand, way: Hashable, batch: _Batch) -> list[Sentence]:
        """Those who took a step, or will never take another."""
        try:
            sentences = batch.step()
        except Exception as error:  # whatever it is, those who wait must know
            del own.batches[way]
            if isinstance(error, torch.OutOfMemoryError) and len(batch.all) > 1:
                self._begin_again(way, batch)
                return []
            return _failed(batch.all, error)
        if not sentences:
            del own.batches[way]
        return sentences

    def _begin_again(self, way: Hashable, batch: _Batch) -> None:
        """Half as much at once, where it did not fit the memory of a GPU."""
        self._most = max(1, batch.cost // 2)
        with self._lock:
            self._waiting.extendleft(_Waiter(way, batch.asked, sentence.afresh()) for sentence in reversed(batch.all))
        torch.cuda.empty_cache()


class _Waiter(NamedTuple):
    way: Hashable
    asked: Asked
    sentence: Sentence

    @property
    def rows(self) -> int:
        """How many it takes in a batch."""
        return self.asked.config.width

    @property
    def cost(self) -> int:
        """What it takes of the budget."""
        return _cost(self.sentence, self.rows)


class _Hand:
    """The batches that one thread writes. Others read its counts."""

    def __init__(self) -> None:
        self.batches: dict[Hashable, _Batch] = {}
        self.rows = self.cost = self.running = 0

    def take(self, waiter: _Waiter) -> None:
        """Write this one, too."""
        if waiter.way not in self.batches:
            self.batches[waiter.way] = _Batch(waiter.asked)
        self.batches[waiter.way].arriving.append(waiter.sentence)
        self.rows += waiter.rows
        self.cost += waiter.cost

    def count(self) -> None:
        """What is left after a step."""
        batches = self.batches.values()
        self.rows = sum(batch.asked.config.width * len(batch.all) for batch in batches)
        self.cost = sum(batch.cost for batch in batches)
        self.running = sum(not sentence.settled for batch in batches for sentence in batch.running)


class _Batch:
    """What is written in one way: the search asks it who joins."""

    capacity = 0

    def __init__(self, asked: Asked) -> None:
        self.asked = asked
        self.running: list[Sentence] = []
        self.arriving: list[Sentence] = []
        self._steps: Iterator[list[Sentence]] | None = None
        self._waited = 0  # steps, since the first of them arrived

    @property
    def all(self) -> list[Sentence]:
        """Those that are not done."""
        return [sentence for sentence in (*self.running, *self.arriving) if not sentence.settled]

    @property
    def cost(self) -> int:
        return sum(_cost(sentence, self.asked.config.width) for sentence in self.all)

    def step(self) -> list[Sentence]:
        """The sentences that took it; none once all are settled."""
        if self._steps is None:
            self._steps = self.asked.steps(self)
        return next(self._steps, [])

    def next_for(self, running: Sequence[Sentence], vacancies: int | None) -> list[Sentence]:
        """Those that have arrived, as far as there are places. Where most would find none, or one is too long for
        them, it is better to begin again with all, once those that run are settled.
        """
        self.running = [*running]
        self.arriving = [sentence for sentence in self.arriving if not sentence.request.unwanted]
        longest = max(map(_length, self.arriving), default=0)
        if not running:
            self.capacity = longest
        elif vacancies is not None and (longest > self.capacity or len(self.arriving) > len(running) + vacancies):
            return []
        elif len(self.arriving) * WORTH < len(running) and self._waited < PATIENCE:
            self._waited += bool(self.arriving)
            return []
        self._waited = 0
        arrived = self.arriving[:vacancies]
        del self.arriving[:vacancies]
        self.running += arrived
        return arrived


def _way(asked: Asked) -> Hashable:
    """What those who share a batch have in common: everything but what each sentence keeps for itself."""
    config, rules = asked.config, asked.rules
    shared = (getattr(config, name) for name in SHARED)
    return (*shared, config.width, asked.start, rules.ends, rules.banned, tuple(rules.boosted.items()))


def _cost(sentence: Sentence, width: int) -> int:
    """What it takes of the budget."""
    return width * max(len(sentence.request.ids), SHORT)


def _length(sentence: Sentence) -> int:
    """The most tokens it may have."""
    return len(sentence.request.past) + sentence.request.limit + 1


def _tell(sentence: Sentence) -> None:
    if sentence.request.told is not None and not sentence.request.unwanted:
        sentence.request.told(sentence)


def _failed(sentences: list[Sentence], error: Exception) -> list[Sentence]:
    for sentence in sentences:
        sentence.fail(error)
    return sentences
