"""The one loop of generation: a step of the model, its candidates, what goes on, until nothing does.

It knows neither models nor strategies. Shapes: B sentences, W open prefixes of each, R = B · W rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import isnan
from typing import Any, Protocol

import torch
from torch import Tensor

from ..backends.native.library import log_softmax
from ..backends.single_step import indices
from ..errors import GenerationError
from .rules import Rules
from .sentence import Candidate, Sentence
from .strategies import Choice, Strategy


class Decoding(Protocol):
    """A batch that is being written: what the loop needs of a model."""

    def step(self, tokens: Tensor) -> Tensor:
        """A new token for each row (R,) → logits (R, V) for the one after it, which the loop may write over."""

    def go_on(self, rows: Sequence[int], sentences: Sequence[int] | None) -> None:
        """Row i goes on from what row rows[i] held. Of the sentences only these stay; None: all."""

    def join(self, other: Any) -> None:
        """The rows of another batch, which has started, come after these."""


class Starting(Decoding, Protocol):
    """A batch that was just read."""

    def start(self) -> Tensor:
        """Logits (B, V) for each answer's first token."""

    def settle(self, width: int, capacity: int) -> Decoding:
        """What goes on, once the first tokens are chosen: `width` rows a sentence, with room for so many tokens."""


class Waiting(Protocol):
    """Sentences that have not begun."""

    capacity: int  # the most tokens that any of them may have, what was there before its answer included

    def next_for(self, running: Sequence[Sentence], vacancies: int | None) -> list[Sentence]:
        """Those that should begin now, beside those that run; none while it is not worth it, or none is left."""


Begin = Callable[[Sequence[Sentence]], Starting]


def search(begin: Begin, strategy: Strategy, rules: Rules, waiting: Waiting) -> Iterator[list[Sentence]]:
    """Write until every sentence is settled; each knows its answers then.

    A sentence that is settled leaves the batch at once, and those that wait take the place of those that left.
    After every step come the sentences that took it. The host waits for the device once a step.
    """
    batch: Batch | None = None
    while True:
        arrived = waiting.next_for(batch.sentences, batch.vacancies) if batch else waiting.next_for([], None)
        if arrived:
            group = Batch(begin(arrived), arrived, strategy, rules)
            yield arrived
            batch = batch.joined(group) if batch else group.settled(waiting.capacity)
        if not batch:
            if not arrived:
                return
            continue
        stepping = batch.sentences
        batch.step()
        yield stepping


class Batch:
    """Sentences that are written together."""

    def __init__(self, starting: Starting, sentences: list[Sentence], strategy: Strategy, rules: Rules) -> None:
        self.sentences = sentences
        self._starting = starting
        self._decoding: Decoding = starting
        self._strategy, self._rules = strategy, rules
        logits = starting.start()
        forced = [token for sentence in sentences for token in sentence.request.forced]
        _check_ids([*rules.ends, *rules.banned, *rules.boosted, *forced], logits.shape[-1])
        self._totals = torch.zeros(len(sentences), 1, dtype=torch.float32, device=logits.device)  # (B, W)
        self._tokens = torch.zeros(0, device=logits.device)  # (R,) the newest of each row
        self._choose(logits)

    def __bool__(self) -> bool:
        return bool(self.sentences)

    @property
    def vacancies(self) -> int | None:
        """How many more sentences have a place here; None for any number."""
        return getattr(self._decoding, "vacancies", None)

    def step(self) -> None:
        """Every row gets its new token, and what comes after it is chosen."""
        self._choose(self._decoding.step(self._tokens))

    def joined(self, other: Batch) -> Batch:
        """Both as one; either may be empty."""
        if not (self and other):
            return self or other
        self._decoding.join(other._decoding)
        self.sentences = [*self.sentences, *other.sentences]
        self._totals = torch.cat([self._totals, other._totals])
        self._tokens = torch.cat([self._tokens, other._tokens])
        return self

    def settled(self, capacity: int) -> Batch:
        """The same, where it is to stay; those that come later join it there."""
        if self:
            self._decoding = self._starting.settle(self._totals.shape[1], capacity)
        return self

    def _choose(self, logits: Tensor) -> None:
        logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
        swayed = self._rules.swayed(logits, self.sentences)  # before its logits are gone
        plain = log_softmax(logits)  # (R, V)
        scores = plain if swayed is None else swayed
        self._rules.hide(scores, self.sentences)
        choice = self._strategy.choose(scores, self._totals, self.sentences)
        staying, places, rows = self._advance(choice, plain)
        if not staying:
            self.sentences = []
            return
        if rows != list(range(len(logits))):
            self._decoding.go_on(rows, None if len(staying) == len(self.sentences) else staying)
        self.sentences = [self.sentences[index] for index in staying]
        totals, self._tokens = choice.totals.flatten(), choice.tokens.flatten()
        if len(places) < len(self._tokens):
            chosen = indices(places, logits.device)
            totals, self._tokens = totals[chosen], self._tokens[chosen]
        self._totals = totals.view(len(self.sentences), -1)

    def _advance(self, choice: Choice, plain: Tensor) -> tuple[list[int], list[int], list[int]]:
        """Which sentences stay, which candidates go on (places in all of them), and the rows that these continue."""
        staying, places, rows = [], [], []
        width = self._totals.shape[1]
        for index, (sentence, candidates) in enumerate(zip(self.sentences, _read(choice, plain, width), strict=True)):
            if any(isnan(candidate.total) for candidate in candidates):
                sentence.fail(
                    GenerationError(
                        f"the logits for input {sentence.request.index} are not numbers (NaN); "
                        "the model's weights or this input hold NaN or inf"
                    )
                )
                continue
            going = sentence.advance(candidates)
            if going:
                staying.append(index)
                places += [index * len(candidates) + place for place in going]
                rows += [index * width + candidates[place].beam for place in going]
            elif not sentence.best:
                sentence.fail(
                    GenerationError(
                        f"every next token for input {sentence.request.index} is impossible or banned, "
                        "so there is no answer; ban fewer tokens"
                    )
                )
        return staying, places, rows


def _read(choice: Choice, plain: Tensor, width: int) -> Iterator[list[Candidate]]:
    """The candidates of each sentence on the host, in one transfer."""
    first = torch.arange(len(choice.tokens), device=plain.device)[:, None] * width
    logprobs = plain[first + choice.beams, choice.tokens]
    parts = (choice.totals, choice.tokens, choice.beams, logprobs)
    for totals, tokens, beams, own in torch.stack([part.double() for part in parts], dim=1).tolist():
        yield [
            Candidate(total, int(token), int(beam), logprob)
            for total, token, beam, logprob in zip(totals, tokens, beams, own, strict=True)
        ]


def _check_ids(ids: Sequence[int], vocab_size: int) -> None:
    for token in ids:
        if not 0 <= token < vocab_size:
            raise GenerationError(
                f"the end and banned, boosted and forced tokens go from 0 to {vocab_size - 1} here, "
                f"but {token} was given"
            )
