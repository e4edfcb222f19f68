"""Continuous batching: which sequences are decoded now, in which batch, and by which worker.

Sequences with the same settings share a batch; where settings differ, the batches take turns, step by step. Who came
first begins first. Adding and aborting are safe in any thread.

Several workers may step, each in a thread of its own: while one chooses tokens in Python, another computes. Few rows
are decoded by one worker, since every worker reads all weights in every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from threading import Lock

import torch

from .batch import SequenceBatch
from .sequence import SequenceState

MIN_COST = 16  # a shorter input takes as much of the budget, since its answer has a length too
MIN_ROWS = 16  # of one worker, before another takes some


class Scheduler:
    """All sequences of one engine: those that wait, and each worker's batches.

    `budget` is how many input tokens, times the answers that are decoded at once, run together, unless a config has
    its own `batch_tokens`. It is halved where memory runs out. With `padded`, every sequence costs as much as the
    longest beside it, which makes for smaller batches: larger ones only cost more to join.
    """

    def __init__(
        self,
        new_batch: Callable[[SequenceState], SequenceBatch],
        budget: int,
        n_workers: int = 1,
        *,
        padded: bool = False,
    ) -> None:
        self._new_batch, self._budget, self._padded = new_batch, budget, padded
        self._max_budget: int | None = None  # what fits the memory, once that has run out
        self._lock = Lock()
        self._waiting: deque[SequenceState] = deque()
        self._workers = [_Worker() for _ in range(n_workers)]

    @property
    def n_waiting(self) -> int:
        """Sequences that have not begun."""
        return len(self._waiting)

    @property
    def n_running(self) -> int:
        """Sequences that have begun."""
        return sum(worker.n_running for worker in self._workers)

    @property
    def has_work(self) -> bool:
        """Whether anything is left to decode."""
        return bool(self._waiting or any(worker.n_rows or worker.batches for worker in self._workers))

    def has_work_for(self, worker: int) -> bool:
        """Whether a step of this worker would do anything."""
        this = self._workers[worker]
        with self._lock:
            return bool(this.batches or self._next_for(this, self._fair_share()))

    def add(self, sequences: Iterable[SequenceState]) -> None:
        """Decode these once there is room."""
        with self._lock:
            self._waiting.extend(sequences)

    def remove_aborted(self) -> None:
        """Those that wait leave now; those that run, at their next step."""
        with self._lock:
            self._waiting = deque(sequence for sequence in self._waiting if not sequence.aborted)

    def step(self, worker: int = 0) -> list[SequenceState]:
        """A step of every batch of this worker: the sequences that took it, or that failed."""
        this = self._workers[worker]
        failed = self._admit(this)
        n_batches = len(this.batches)
        stepped = [sequence for key in [*this.batches] for sequence in self._step_batch(this, key)]
        newly_read = any(batch.has_read for batch in this.batches.values())
        if failed or newly_read or len(this.batches) < n_batches or any(sequence.finished for sequence in stepped):
            this.count()
        return failed + stepped

    def clear(self, worker: int = 0) -> list[SequenceState]:
        """Everything that waits, or that this worker decodes, is dropped and given back."""
        this = self._workers[worker]
        with self._lock:
            dropped = [*self._waiting]
            self._waiting.clear()
        dropped += [sequence for batch in this.batches.values() for sequence in batch.release()]
        this.batches.clear()
        this.count()
        return dropped

    def _admit(self, worker: _Worker) -> list[SequenceState]:
        """In the order they came, as many as fit beside those that run; one at least when nothing does.

        Those whose settings the model cannot follow fail, and are given back.
        """
        admitted: list[SequenceState] = []
        failed: list[SequenceState] = []
        with self._lock:
            share = self._fair_share()
            while sequence := self._next_for(worker, share):
                admitted.append(self._waiting.popleft())
                worker.n_rows += sequence.config.width
                worker.cost += _cost(sequence)
                worker.max_input = max(worker.max_input, sequence.input_length)
        for sequence in admitted:
            try:
                batch = worker.batches.get(sequence.batch_key) or self._new_batch(sequence)
            except Exception as error:  # whatever it is, those who wait must know
                sequence.fail(error)
                failed.append(sequence)
            else:
                worker.batches[sequence.batch_key] = batch
                batch.admit(sequence)
        return failed

    def _fair_share(self) -> int:
        """Rows of each worker."""
        if len(self._workers) == 1:  # it takes all that fit, and many may wait
            return MIN_ROWS
        rows = sum(worker.n_rows for worker in self._workers)
        rows += sum(sequence.config.width for sequence in self._waiting)
        return max(MIN_ROWS, -(-rows // len(self._workers)))

    def _next_for(self, worker: _Worker, share: int) -> SequenceState | None:
        """The first that waits, if this worker may begin it now. Another one begins when the busy ones have enough."""
        has_turn = worker.n_rows or all(other.n_rows >= MIN_ROWS for other in self._workers if other.n_rows)
        if not self._waiting or not has_turn:
            return None
        sequence, used = self._waiting[0], sum(other.cost for other in self._workers)
        budget = sequence.config.batch_tokens or self._budget
        budget = min(budget, self._max_budget or budget)
        rows = worker.n_rows + sequence.config.width
        others_have_less = any(other.n_rows < worker.n_rows for other in self._workers)  # and will take it
        too_many = worker.n_rows >= MIN_ROWS and rows > share and others_have_less
        cost = used + _cost(sequence)
        if self._padded:
            longest = max(sequence.input_length, MIN_COST, *(other.max_input for other in self._workers))
            cost = longest * (sum(other.n_rows for other in self._workers) + sequence.config.width)
        too_much = used and cost > budget
        return None if too_many or too_much else sequence

    def _step_batch(self, worker: _Worker, key: Hashable) -> list[SequenceState]:
        """The sequences that took a step, or will never take another."""
        batch = worker.batches[key]
        failure: Exception | None = None
        try:
            stepped = batch.step()
        except torch.OutOfMemoryError as error:
            failure = error if len(batch.unfinished) == 1 else None
        except Exception as error:  # whatever it is, those who wait must know
            failure = error
        else:
            if not stepped:
                del worker.batches[key]
            return stepped
        # Here the error is gone, and with it what its traceback held.
        del worker.batches[key]
        cost = sum(map(_cost, batch.unfinished))
        unfinished = batch.release()
        if failure is not None:
            for sequence in unfinished:
                sequence.fail(failure)
            return unfinished
        self._max_budget = max(1, cost // 2)  # they did not fit the memory of a GPU: again, with less at once
        for sequence in unfinished:
            sequence.reset()
        with self._lock:
            self._waiting.extendleft(reversed(unfinished))
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return []


class _Worker:
    """The batches that one thread steps. Others read its counts."""

    def __init__(self) -> None:
        self.batches: dict[Hashable, SequenceBatch] = {}
        self.n_rows = self.cost = self.n_running = self.max_input = 0

    def count(self) -> None:
        """What is left after a step."""
        unfinished = [sequence for batch in self.batches.values() for sequence in batch.unfinished]
        self.n_rows = sum(sequence.config.width for sequence in unfinished)
        self.cost = sum(map(_cost, unfinished))
        self.max_input = max((sequence.input_length for sequence in unfinished), default=0)
        self.n_running = sum(len(batch.running) for batch in self.batches.values())


def _cost(sequence: SequenceState) -> int:
    """What a sequence takes of the budget."""
    return sequence.config.width * max(sequence.input_length, MIN_COST)
