"""One batch of sequences with equal settings: it steps the model, advances the sequences and admits new ones.

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
from ..errors import GenerationError, NonFiniteOutputError
from .sequence import Candidate, SequenceState
from .strategies import LogitsProcessors, StepCandidates, Strategy

MIN_SHARE = 4  # new sequences are prefilled at once when they are at least one in four of all


class DecodeRunner(Protocol):
    """What a batch needs from a model that decodes its rows."""

    def step(self, tokens: Tensor) -> Tensor:
        """A new token for each row (R,) → logits (R, V) for the next one. The batch may overwrite the logits."""

    def reorder(self, rows: Sequence[int], staying: Sequence[int] | None) -> None:
        """Row i continues from row rows[i]. Only the sequences at the indices `staying` remain; None keeps all."""

    def extend(self, other: Any) -> None:
        """Append the rows of another batch that was prefilled.

        Where rows have fixed slots, `vacancies` is the number of sequences that can still be added.
        """


class PrefillRunner(DecodeRunner, Protocol):
    """A runner whose inputs have no first token yet."""

    def prefill(self) -> Tensor:
        """Return logits (B, V) for the first token of each answer."""

    def allocate(self, width: int, capacity: int) -> DecodeRunner:
        """Return what decodes further tokens: `width` rows for each sequence, with room for `capacity` tokens."""


class SequenceBatch:
    """Sequences with equal settings. New ones are prefilled by themselves and then join; finished ones leave at once.

    `guard` is entered around every step. New sequences wait until prefilling them is worth the time, but at most
    `max_wait_steps`.
    """

    def __init__(
        self,
        new_runner: Callable[[Sequence[SequenceState]], PrefillRunner],
        strategy: Strategy,
        processors: LogitsProcessors,
        *,
        guard: Callable[[], AbstractContextManager[None]] = nullcontext,
        max_wait_steps: int | None = None,
    ) -> None:
        self._new_runner, self._strategy, self._processors = new_runner, strategy, processors
        self._guard, self._max_wait_steps = guard, max_wait_steps
        self._admitted: list[SequenceState] = []  # not yet prefilled
        self._prefilling: list[SequenceState] = []  # while they are prefilled
        self._prefilled: _Rows | None = None  # prefilled, and their first token chosen
        self._rows: _Rows | None = None
        self._capacity = self._max_input = 0  # the most tokens that a sequence of these rows may have, and its input
        self._waited = 0  # steps since the first new sequence was admitted

    @property
    def running(self) -> list[SequenceState]:
        """The sequences that were prefilled and have not finished."""
        groups = [group for group in (self._rows, self._prefilled) if group is not None]
        return [sequence for group in groups for sequence in group.sequences if not sequence.finished]

    @property
    def unfinished(self) -> list[SequenceState]:
        return [*self.running, *self._prefilling, *self._admitted]

    @property
    def has_prefilled(self) -> bool:
        """True if the last step prefilled new sequences."""
        return self._prefilled is not None

    def admit(self, sequence: SequenceState) -> None:
        self._admitted.append(sequence)

    def release(self) -> list[SequenceState]:
        """Free all rows and their memory. Return the unfinished sequences."""
        unfinished = self.unfinished
        self._prefilled = self._rows = None
        self._admitted, self._prefilling = [], []
        return unfinished

    def step(self) -> list[SequenceState]:
        """Prefill new sequences, or decode one token of every row.

        It runs without gradients; the host waits for the device once.

        Returns:
            The sequences that took this step; none once all are finished.
        """
        with torch.inference_mode(), self._guard():
            while True:
                if self._prefilled is not None:
                    self._join_prefilled(self._prefilled)
                elif new := self._next_to_prefill():
                    self._prefilling = new
                    self._prefilled = _Rows(self._new_runner(new), new, self._strategy, self._processors)
                    self._prefilling = []
                    return new
                if self._rows is not None:
                    stepping = self._rows.sequences
                    self._rows.step()
                    self._rows = self._rows if self._rows.sequences else None
                    return stepping
                if not self._admitted:
                    return []

    def _join_prefilled(self, prefilled: _Rows) -> None:
        if prefilled.sequences and self._rows is None:
            prefilled.allocate(self._capacity)
            self._rows = prefilled
        elif prefilled.sequences and self._rows is not None:
            self._rows.extend(prefilled)
        self._prefilled = None  # not before: after an error, `unfinished` must still list these sequences

    def _next_to_prefill(self) -> list[SequenceState]:
        """Return the sequences to prefill now, as many as there are slots for.

        Where most would find no slot, or one is too long for the slots, all of them wait until the running ones have
        finished and new slots are made.
        """
        if not self._admitted:
            return []
        running = self._rows.sequences if self._rows is not None else []
        vacancies: int | None = None if self._rows is None else getattr(self._rows.runner, "vacancies", None)
        self._admitted = [sequence for sequence in self._admitted if not sequence.aborted]
        n_new = len(self._admitted)
        longest = max((len(new.prompt) + new.limit + 1 for new in self._admitted), default=0)
        longest_input = max((new.input_length for new in self._admitted), default=0)
        too_long = longest > self._capacity or longest_input > self._max_input
        can_wait = self._max_wait_steps is None or self._waited < self._max_wait_steps
        if not running:
            self._capacity, self._max_input = longest, longest_input
        elif vacancies is not None and (too_long or n_new > len(running) + vacancies):
            return []
        elif n_new * MIN_SHARE < n_new + len(running) and can_wait:
            self._waited += 1
            return []
        self._waited = 0
        new = self._admitted[:vacancies]
        del self._admitted[:vacancies]
        return new


class _Rows:
    """Sequences that take every step together, and the rows that the model decodes for them."""

    def __init__(
        self, runner: PrefillRunner, sequences: list[SequenceState], strategy: Strategy, processors: LogitsProcessors
    ) -> None:
        self.sequences = sequences
        self._prefill_runner = runner
        self.runner: DecodeRunner = runner
        self._strategy, self._processors = strategy, processors
        logits = runner.prefill()
        forced = [token for sequence in sequences for token in sequence.prefix]
        for token in (*processors.end, *processors.suppress_tokens, *processors.logit_bias, *forced):
            if not 0 <= token < logits.shape[-1]:
                raise GenerationError(
                    f"end, suppress_tokens, logit_bias and prefixes must name tokens from 0 to {logits.shape[-1] - 1}, "
                    f"not {token}"
                )
        self._totals = torch.zeros(len(sequences), 1, dtype=torch.float32, device=logits.device)  # (B, W)
        self._tokens = torch.zeros(0, device=logits.device)  # (R,) the newest of each row
        self._choose(logits)

    def step(self) -> None:
        self._choose(self.runner.step(self._tokens))

    def extend(self, other: _Rows) -> None:
        self.runner.extend(other.runner)
        self.sequences = [*self.sequences, *other.sequences]
        self._totals = torch.cat([self._totals, other._totals])
        self._tokens = torch.cat([self._tokens, other._tokens])

    def allocate(self, capacity: int) -> None:
        """Move the rows to the runner that decodes them from now on, and that later rows join."""
        self.runner = self._prefill_runner.allocate(self._totals.shape[1], capacity)

    def _choose(self, logits: Tensor) -> None:
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        processed = self._processors.process(logits, self.sequences)  # first: log_softmax may overwrite the logits
        plain = log_softmax(logits)  # (R, V)
        scores = plain if processed is None else processed
        self._processors.mask(scores, self.sequences)
        choice = self._strategy.choose(scores, self._totals, self.sequences)
        staying, places, rows = self._advance(choice, plain)
        if not staying:
            self.sequences = []
            return
        if rows != list(range(len(logits))):
            self.runner.reorder(rows, None if len(staying) == len(self.sequences) else staying)
        self.sequences = [self.sequences[index] for index in staying]
        totals, self._tokens = choice.totals.flatten(), choice.tokens.flatten()
        if len(places) < len(self._tokens):
            chosen = indices(places, logits.device)
            totals, self._tokens = totals[chosen], self._tokens[chosen]
        self._totals = totals.view(len(self.sequences), -1)

    def _advance(self, choice: StepCandidates, plain: Tensor) -> tuple[list[int], list[int], list[int]]:
        """Advance every sequence by its candidates.

        Returns:
            The sequences that stay, the places of the chosen candidates among all, and the rows that they continue.
        """
        staying, places, rows = [], [], []
        width = self._totals.shape[1]
        per_sequence = zip(self.sequences, _candidates(choice, plain, width), strict=True)
        for index, (sequence, candidates) in enumerate(per_sequence):
            if any(isnan(candidate.total) for candidate in candidates):
                sequence.fail(NonFiniteOutputError(f"the output of the model for input {sequence.request.index}"))
                continue
            selected = sequence.advance(candidates)
            if selected:
                staying.append(index)
                places += [index * len(candidates) + place for place in selected]
                rows += [index * width + candidates[place].beam for place in selected]
            elif not sequence.hypotheses and not sequence.aborted:
                problem = f"every next token for input {sequence.request.index} is impossible or suppressed"
                sequence.fail(GenerationError(f"{problem}, so there is no answer; suppress fewer tokens"))
        return staying, places, rows


def _candidates(choice: StepCandidates, plain: Tensor, width: int) -> Iterator[list[Candidate]]:
    """Copy the candidates of each sequence to the host, in one transfer."""
    first = torch.arange(len(choice.tokens), device=plain.device)[:, None] * width
    logprobs = plain[first + choice.beams, choice.tokens]
    columns = (choice.totals, choice.tokens, choice.beams, logprobs)
    for row in torch.stack([column.double() for column in columns], dim=1).tolist():
        yield [
            Candidate(total, int(token), int(beam), logprob) for total, token, beam, logprob in zip(*row, strict=True)
        ]
