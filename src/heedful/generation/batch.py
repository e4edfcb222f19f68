"""Sequences that are decoded together: a step of the model, its candidates, what goes on, until nothing does.

It knows neither models nor strategies. Shapes: B sequences, W open prefixes of each, R = B · W rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from math import isnan
from typing import Any, Protocol

import torch
from torch import Tensor

from ..backends.native.library import log_softmax
from ..backends.single_step import indices
from ..errors import GenerationError
from .logits import LogitsProcessors
from .sequence import Candidate, SequenceState
from .strategies import StepCandidates, Strategy

MIN_SHARE = 4  # newcomers are read at once when they are at least one in so many of all


class Decoding(Protocol):
    """Rows that are being decoded: what a batch needs of a model."""

    def step(self, tokens: Tensor) -> Tensor:
        """A new token for each row (R,) → logits (R, V) for the one after it, which the batch may write over."""

    def go_on(self, rows: Sequence[int], sentences: Sequence[int] | None) -> None:
        """Row i goes on from what row rows[i] held. Of the sequences only these stay; None: all."""

    def join(self, other: Any) -> None:
        """The rows of another batch, which has started, come after these.

        Where rows have fixed places, `vacancies` is how many more sequences have one.
        """


class Starting(Decoding, Protocol):
    """Inputs that were just read."""

    def start(self) -> Tensor:
        """Logits (B, V) for each answer's first token."""

    def settle(self, width: int, capacity: int) -> Decoding:
        """What goes on, once the first tokens are chosen: `width` rows a sequence, with room for so many tokens."""


Prefill = Callable[[Sequence[SequenceState]], Starting]


class SequenceBatch:
    """Sequences with the same settings. Newcomers are read on their own and then join; the finished leave at once.

    `guard` is entered around every step. Newcomers wait until they are worth the time to read them, but at most
    `max_wait_steps`.
    """

    def __init__(
        self,
        prefill: Prefill,
        strategy: Strategy,
        processors: LogitsProcessors,
        *,
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
        max_wait_steps: int | None = None,
    ) -> None:
        self._prefill, self._strategy, self._processors = prefill, strategy, processors
        self._guard, self._max_wait_steps = guard, max_wait_steps
        self._admitted: list[SequenceState] = []  # not yet read
        self._reading: list[SequenceState] = []  # while they are read
        self._started: _Rows | None = None  # read, and their first token chosen
        self._rows: _Rows | None = None
        self._capacity = self._max_input = 0  # the most tokens that a sequence of these rows may have, and its input
        self._waited = 0  # steps, since the first newcomer was admitted

    @property
    def running(self) -> list[SequenceState]:
        """Those that were read and have not finished."""
        groups = [group for group in (self._rows, self._started) if group is not None]
        return [sequence for group in groups for sequence in group.sequences if not sequence.finished]

    @property
    def unfinished(self) -> list[SequenceState]:
        """All that are not done."""
        return [*self.running, *self._reading, *self._admitted]

    @property
    def has_read(self) -> bool:
        """Whether the last step read newcomers."""
        return self._started is not None

    def admit(self, sequence: SequenceState) -> None:
        """Decode this one, too."""
        self._admitted.append(sequence)

    def release(self) -> list[SequenceState]:
        """Give up all rows and their memory; those that are not done."""
        unfinished = self.unfinished
        self._started = self._rows = None
        self._admitted, self._reading = [], []
        return unfinished

    def step(self) -> list[SequenceState]:
        """Read newcomers, or decode a token of every row: the sequences that took this step; none once all are done.

        It runs without gradients; the host waits for the device once.
        """
        with torch.inference_mode(), self._guard():
            while True:
                if self._started is not None:
                    self._join()
                elif newcomers := self._newcomers():
                    self._reading = newcomers
                    self._started = _Rows(self._prefill(newcomers), newcomers, self._strategy, self._processors)
                    self._reading = []
                    return newcomers
                if self._rows is not None:
                    stepping = self._rows.sequences
                    self._rows.step()
                    self._rows = self._rows if self._rows.sequences else None
                    return stepping
                if not self._admitted:
                    return []

    def _join(self) -> None:
        started = self._started
        if started is not None and started.sequences:
            if self._rows is None:
                started.settle(self._capacity)
                self._rows = started
            else:
                self._rows.join(started)
        self._started = None  # only now: an error must find all sequences

    def _newcomers(self) -> list[SequenceState]:
        """Those to be read now, as far as there are places. Where most would find none, or one is too long for them,
        it is better to begin again with all, once those that run are done.
        """
        if not self._admitted:
            return []
        running = self._rows.sequences if self._rows is not None else []
        vacancies: int | None = None if self._rows is None else getattr(self._rows.decoding, "vacancies", None)
        self._admitted = [sequence for sequence in self._admitted if not sequence.aborted]
        n_new = len(self._admitted)
        longest = max((len(new.prompt) + new.limit + 1 for new in self._admitted), default=0)
        longest_input = max((new.input_length for new in self._admitted), default=0)
        too_long = longest > self._capacity or longest_input > self._max_input
        has_patience = self._max_wait_steps is None or self._waited < self._max_wait_steps
        if not running:
            self._capacity, self._max_input = longest, longest_input
        elif vacancies is not None and (too_long or n_new > len(running) + vacancies):
            return []
        elif n_new * MIN_SHARE < n_new + len(running) and has_patience:
            self._waited += 1
            return []
        self._waited = 0
        newcomers = self._admitted[:vacancies]
        del self._admitted[:vacancies]
        return newcomers


class _Rows:
    """Sequences that take every step together, and the model's rows for them."""

    def __init__(
        self, starting: Starting, sequences: list[SequenceState], strategy: Strategy, processors: LogitsProcessors
    ) -> None:
        self.sequences = sequences
        self._starting = starting
        self.decoding: Decoding = starting
        self._strategy, self._processors = strategy, processors
        logits = starting.start()
        forced = [token for sequence in sequences for token in sequence.prefix]
        for token in (*processors.end, *processors.suppress_tokens, *processors.logit_bias, *forced):
            if not 0 <= token < logits.shape[-1]:
                raise GenerationError(
                    f"the end and suppressed, biased and forced tokens go from 0 to {logits.shape[-1] - 1} here, "
                    f"but {token} was given"
                )
        self._totals = torch.zeros(len(sequences), 1, dtype=torch.float32, device=logits.device)  # (B, W)
        self._tokens = torch.zeros(0, device=logits.device)  # (R,) the newest of each row
        self._choose(logits)

    def step(self) -> None:
        """Every row gets its new token, and what comes after it is chosen."""
        self._choose(self.decoding.step(self._tokens))

    def join(self, other: _Rows) -> None:
        """The rows of others come after these."""
        self.decoding.join(other.decoding)
        self.sequences = [*self.sequences, *other.sequences]
        self._totals = torch.cat([self._totals, other._totals])
        self._tokens = torch.cat([self._tokens, other._tokens])

    def settle(self, capacity: int) -> None:
        """Take the place where the rows stay; those that come later join them there."""
        self.decoding = self._starting.settle(self._totals.shape[1], capacity)

    def _choose(self, logits: Tensor) -> None:
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        processed = self._processors.process(logits, self.sequences)  # before its logits are gone
        plain = log_softmax(logits)  # (R, V)
        scores = plain if processed is None else processed
        self._processors.mask(scores, self.sequences)
        choice = self._strategy.choose(scores, self._totals, self.sequences)
        staying, places, rows = self._advance(choice, plain)
        if not staying:
            self.sequences = []
            return
        if rows != list(range(len(logits))):
            self.decoding.go_on(rows, None if len(staying) == len(self.sequences) else staying)
        self.sequences = [self.sequences[index] for index in staying]
        totals, self._tokens = choice.totals.flatten(), choice.tokens.flatten()
        if len(places) < len(self._tokens):
            chosen = indices(places, logits.device)
            totals, self._tokens = totals[chosen], self._tokens[chosen]
        self._totals = totals.view(len(self.sequences), -1)

    def _advance(self, choice: StepCandidates, plain: Tensor) -> tuple[list[int], list[int], list[int]]:
        """Which sequences stay, which candidates go on (places in all of them), and the rows that these continue."""
        staying, places, rows = [], [], []
        width = self._totals.shape[1]
        for index, (sequence, candidates) in enumerate(zip(self.sequences, _read(choice, plain, width), strict=True)):
            if any(isnan(candidate.total) for candidate in candidates):
                why = f"the logits for input {sequence.request.index} are not numbers (NaN)"
                sequence.fail(GenerationError(f"{why}; the model's weights or this input hold NaN or inf"))
                continue
            selected = sequence.advance(candidates)
            if selected:
                staying.append(index)
                places += [index * len(candidates) + place for place in selected]
                rows += [index * width + candidates[place].beam for place in selected]
            elif not sequence.hypotheses and not sequence.aborted:
                why = f"every next token for input {sequence.request.index} is impossible or suppressed"
                sequence.fail(GenerationError(f"{why}, so there is no answer; suppress fewer tokens"))
        return staying, places, rows


def _read(choice: StepCandidates, plain: Tensor, width: int) -> Iterator[list[Candidate]]:
    """The candidates of each sequence on the host, in one transfer."""
    first = torch.arange(len(choice.tokens), device=plain.device)[:, None] * width
    logprobs = plain[first + choice.beams, choice.tokens]
    parts = (choice.totals, choice.tokens, choice.beams, logprobs)
    for row in torch.stack([part.double() for part in parts], dim=1).tolist():
        yield [
            Candidate(total, int(token), int(beam), logprob) for total, token, beam, logprob in zip(*row, strict=True)
        ]
