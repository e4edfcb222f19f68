"""Continuous batching: which sequences are decoded now, in which batch, and by which worker.

Sequences with equal settings share a batch; batches with different settings take turns, step by step. Sequences start
in the order in which they were added. Adding and aborting are safe in any thread.

Several workers may step, each in its own thread: while one chooses tokens in Python, another computes. Few rows are
decoded by one worker, since every worker reads all weights in every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from threading import Lock

import torch

from .batch import SequenceBatch
from .sequence import SequenceState

MIN_COST = 16  # what a shorter input counts against the budget, since its answer has a length too
MIN_ROWS = 16  # rows that a worker has before another one starts


class Scheduler:
    """The waiting sequences of an engine, and the batches of each worker.

    Args:
        new_batch: returns an empty batch for sequences with the settings of the given one.
        budget: how many input tokens, times the answers decoded at once for each, may run at the same time, unless
            a config has its own `batch_tokens`. When memory runs out, it is halved.
        n_workers: how many threads call `step`.
        padded: count every sequence as long as the longest one that runs. The batches are smaller, and cheaper to
            extend.
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
        return len(self._waiting)

    @property
    def n_running(self) -> int:
        return sum(worker.n_running for worker in self._workers)

    @property
    def has_work(self) -> bool:
        return bool(self._waiting or any(worker.n_rows or worker.batches for worker in self._workers))

    def has_work_for(self, worker: int) -> bool:
        this = self._workers[worker]
        with self._lock:
            return bool(this.batches or self._next_for(this, self._fair_share()))

    def add(self, sequences: Iterable[SequenceState]) -> None:
        with self._lock:
            self._waiting.extend(sequences)

    def remove_aborted(self) -> None:
        """Drop the aborted sequences that wait. Those that run leave at their next step."""
        with self._lock:
            self._waiting = deque(sequence for sequence in self._waiting if not sequence.aborted)

    def step(self, worker: int = 0) -> list[SequenceState]:
        """Step every batch of this worker. Return the sequences that took a step or failed."""
        this = self._workers[worker]
        failed = self._admit(this)
        n_batches = len(this.batches)
        stepped = [sequence for key in [*this.batches] for sequence in self._step_batch(this, key)]
        prefilled = any(batch.has_prefilled for batch in this.batches.values())
        if failed or prefilled or len(this.batches) < n_batches or any(sequence.finished for sequence in stepped):
            this.update_counts()
        return failed + stepped

    def clear(self, worker: int = 0) -> list[SequenceState]:
        """Remove and return everything that waits or that this worker decodes."""
        this = self._workers[worker]
        with self._lock:
            dropped = [*self._waiting]
            self._waiting.clear()
        dropped += [sequence for batch in this.batches.values() for sequence in batch.release()]
        this.batches.clear()
        this.update_counts()
        return dropped

    def _admit(self, worker: _Worker) -> list[SequenceState]:
        """Admit waiting sequences in order, as many as the budget allows, and at least one when nothing runs.

        Returns:
            The sequences that failed, because no batch could be made for their settings.
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
            except Exception as error:  # whatever it is, its request must learn of it
                sequence.fail(error)
                failed.append(sequence)
            else:
                worker.batches[sequence.batch_key] = batch
                batch.admit(sequence)
        return failed

    def _fair_share(self) -> int:
        """Return how many rows each worker should have."""
        if len(self._workers) == 1:  # it takes all that fit; many may wait, so they are not counted
            return MIN_ROWS
        rows = sum(worker.n_rows for worker in self._workers)
        rows += sum(sequence.config.width for sequence in self._waiting)
        return max(MIN_ROWS, -(-rows // len(self._workers)))

    def _next_for(self, worker: _Worker, share: int) -> SequenceState | None:
        """Return the first waiting sequence if this worker may start it now.

        An idle worker starts one only when every busy worker has MIN_ROWS rows.
        """
        has_turn = worker.n_rows or all(other.n_rows >= MIN_ROWS for other in self._workers if other.n_rows)
        if not self._waiting or not has_turn:
            return None
        sequence, used = self._waiting[0], sum(other.cost for other in self._workers)
        budget = sequence.config.batch_tokens or self._budget
        budget = min(budget, self._max_budget or budget)
        rows = worker.n_rows + sequence.config.width
        others_have_less = any(other.n_rows < worker.n_rows for other in self._workers)  # one of them will start it
        too_many = worker.n_rows >= MIN_ROWS and rows > share and others_have_less
        cost = used + _cost(sequence)
        if self._padded:
            longest = max(sequence.input_length, MIN_COST, *(other.max_input for other in self._workers))
            cost = longest * (sum(other.n_rows for other in self._workers) + sequence.config.width)
        too_much = used and cost > budget
        return None if too_many or too_much else sequence

    def _step_batch(self, worker: _Worker, key: Hashable) -> list[SequenceState]:
        """Step a batch. Return the sequences that took a step or failed."""
        batch = worker.batches[key]
        failure: Exception | None = None
        try:
            stepped = batch.step()
        except torch.OutOfMemoryError as error:
            failure = error if len(batch.unfinished) == 1 else None
        except Exception as error:  # whatever it is, the requests must learn of it
            failure = error
        else:
            if not stepped:
                del worker.batches[key]
            return stepped
        # Outside of `except`: the error is gone, and with it the tensors that its traceback referred to.
        del worker.batches[key]
        cost = sum(map(_cost, batch.unfinished))
        unfinished = batch.release()
        if failure is not None:
            for sequence in unfinished:
                sequence.fail(failure)
            return unfinished
        self._max_budget = max(1, cost // 2)  # out of memory: retry with half of what ran
        for sequence in unfinished:
            sequence.reset()
        with self._lock:
            self._waiting.extendleft(reversed(unfinished))
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        return []


class _Worker:
    """The batches that one thread steps. Other threads read its counts."""

    def __init__(self) -> None:
        self.batches: dict[Hashable, SequenceBatch] = {}
        self.n_rows = self.cost = self.n_running = self.max_input = 0

    def update_counts(self) -> None:
        unfinished = [sequence for batch in self.batches.values() for sequence in batch.unfinished]
        self.n_rows = sum(sequence.config.width for sequence in unfinished)
        self.cost = sum(map(_cost, unfinished))
        self.max_input = max((sequence.input_length for sequence in unfinished), default=0)
        self.n_running = sum(len(batch.running) for batch in self.batches.values())


def _cost(sequence: SequenceState) -> int:
    return sequence.config.width * max(sequence.input_length, MIN_COST)
