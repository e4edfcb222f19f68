"""The one loop of generation: a step of the model, its candidates, what goes on, until nothing does.

It knows neither models nor strategies. Shapes: B sentences, W open prefixes of each, R = B · W rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from math import isnan
from typing import Protocol

import torch
from torch import Tensor

from ..errors import HeedfulError
from .sentence import Sentence
from .strategies import Candidates, Strategy


class GenerationError(HeedfulError, RuntimeError):
    """A model that cannot write, and why."""


class Decoding(Protocol):
    """A batch that is being written: what the loop needs of a model."""

    def start(self) -> Tensor:
        """Logits (B, V) for each answer's first token."""

    def step(self, tokens: Tensor) -> Tensor:
        """A new token for each row (R,) → logits (R, V) for the one after it."""

    def go_on(self, rows: Sequence[int], sentences: Sequence[int] | None) -> None:
        """Row i goes on from what row rows[i] held. Of the sentences only these stay; None: all."""


def search(
    decoding: Decoding,
    strategy: Strategy,
    sentences: Sequence[Sentence],
    *,
    end: int,
    banned: Sequence[int] = (),
    min_new_tokens: int = 0,
) -> None:
    """Write until every sentence is settled; each knows its answers then.

    A sentence that is settled leaves the batch at once. The host waits for the device once a step.
    """
    sentences = list(sentences)
    logits = decoding.start()
    _check_ids([end, *banned], logits.shape[-1])
    totals = torch.zeros(len(sentences), 1, device=logits.device)
    for length in count():
        logprobs = _logprobs(logits, [*banned, end] if length < min_new_tokens else banned)
        candidates = strategy.candidates(logprobs, totals)
        staying, places, rows = _advance(sentences, candidates, totals.shape[1])
        if not staying:
            return
        if rows != list(range(len(logits))):
            decoding.go_on(rows, None if len(staying) == len(sentences) else staying)
        sentences = [sentences[index] for index in staying]
        totals, tokens = candidates.totals.flatten(), candidates.tokens.flatten()
        if len(places) < len(tokens):
            chosen = indices(places, logits.device)
            totals, tokens = totals[chosen], tokens[chosen]
        totals = totals.view(len(sentences), -1)
        logits = decoding.step(tokens)


def _logprobs(logits: Tensor, forbidden: Sequence[int]) -> Tensor:
    """In float32 at least. What is forbidden keeps its share of the probability: the others' logprobs stay true."""
    logprobs = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(dim=-1)
    return logprobs.index_fill_(1, indices(forbidden, logits.device), -torch.inf) if forbidden else logprobs


def _advance(
    sentences: Sequence[Sentence], candidates: Candidates, width: int
) -> tuple[list[int], list[int], list[int]]:
    """Which sentences stay, which candidates go on (places in all of them), and the rows that these continue."""
    staying, places, rows = [], [], []
    columns = [part.tolist() for part in (candidates.totals, candidates.tokens, candidates.beams)]
    for index, (sentence, totals, tokens, beams) in enumerate(zip(sentences, *columns, strict=True)):
        if isnan(totals[0]):
            raise GenerationError("the model's logits are not numbers (NaN); its weights or its input hold NaN or inf")
        going = sentence.advance(totals, tokens, beams)
        if going:
            staying.append(index)
            places += [index * len(totals) + place for place in going]
            rows += [index * width + beams[place] for place in going]
        elif not sentence.best:
            raise GenerationError("every next token is impossible or banned, so there is no answer; ban fewer tokens")
    return staying, places, rows


def _check_ids(ids: Sequence[int], vocab_size: int) -> None:
    for token in ids:
        if not 0 <= token < vocab_size:
            raise GenerationError(f"end and banned tokens go from 0 to {vocab_size - 1} here, but {token} was given")


def indices(places: Sequence[int], device: torch.device) -> Tensor:
    """Places as a tensor on the device, without waiting for it."""
    return torch.tensor(places).to(device, non_blocking=True)
