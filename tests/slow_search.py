"""Searches as a textbook writes them, over whole prefixes and one sentence at a time, for the real ones to equal.

A model is a function here: a prefix → the logprob of every next token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import torch
from torch import Tensor

from heedful.generation import GenerationConfig, GenerationRequest, Hypothesis
from heedful.generation.sequence import SequenceState, state_class

START, END = 1, 2
Prefix = tuple[int, ...]
Model = Callable[[Prefix], list[float]]


def score(logprob: float, length: int, config: GenerationConfig) -> float:
    """The formulas of the documentation."""
    if config.length_penalty_kind == "power":
        return logprob / length**config.length_penalty
    return logprob / ((5 + length) / 6) ** config.length_penalty


def allowed(prefix: Prefix, token: int, config: GenerationConfig) -> bool:
    return token != END or len(prefix) >= config.min_new_tokens


def exhaustive(model: Model, vocab_size: int, limit: int, config: GenerationConfig) -> list[Hypothesis]:
    """Every answer there is up to the limit, best first."""
    words = [token for token in range(vocab_size) if token != END]
    found = []
    for length in range(limit + 1):
        for prefix in product(words, repeat=length):
            logprob = sum(model(prefix[:i])[token] for i, token in enumerate(prefix))
            if length == limit:
                found.append(Hypothesis(prefix, logprob, score(logprob, length, config), finished=False))
            elif allowed(prefix, END, config):
                logprob += model(prefix)[END]
                found.append(Hypothesis(prefix, logprob, score(logprob, length + 1, config)))
    return sorted(found, key=lambda hypothesis: -hypothesis.score)


def beam_search(model: Model, limit: int, config: GenerationConfig) -> list[Hypothesis]:
    """Up to the limit in any case, without stopping early."""
    beams: list[tuple[float, Prefix]] = [(0.0, ())]
    found = []
    for length in range(1, limit + 1):
        ways = [
            (total + logprob, (*prefix, token))
            for total, prefix in beams
            for token, logprob in enumerate(model(prefix))
            if allowed(prefix, token, config)
        ]
        ways.sort(reverse=True)
        for total, prefix in ways[: config.beam]:
            if prefix[-1] == END or length == limit:
                ended = prefix[-1] == END
                tokens = prefix[:-1] if ended else prefix
                found.append(Hypothesis(tokens, total, score(total, length, config), ended))
        beams = [way for way in ways if way[1][-1] != END][: config.beam]
    return sorted(found, key=lambda hypothesis: -hypothesis.score)[: config.n_best]


def greedy_search(model: Model, limit: int) -> Prefix:
    prefix: Prefix = ()
    while len(prefix) < limit:
        logprobs = model(prefix)
        token = max(range(len(logprobs)), key=logprobs.__getitem__)
        if token == END:
            break
        prefix = (*prefix, token)
    return prefix


def random_model(seed: int, vocab_size: int) -> Model:
    """Any distribution after any prefix, and the same one each time."""

    def logprobs(prefix: Prefix) -> list[float]:
        mixed = torch.Generator().manual_seed(hash((seed, *prefix)) % 2**63)
        logits = 2 * torch.randn(vocab_size, generator=mixed, dtype=torch.float64)
        return logits.log_softmax(dim=0).tolist()

    return logprobs


class Prefixes:
    """What a batch needs of a model, over such functions, one for each sequence. It notes the rows of every step."""

    def __init__(self, models: Sequence[Model]) -> None:
        self.models = list(models)
        self.prefixes: list[Prefix] = [() for _ in models]
        self.rows: list[int] = []

    def prefill(self) -> Tensor:
        self.rows.append(len(self.prefixes))
        beams = len(self.prefixes) // len(self.models)
        return torch.tensor(
            [self.models[row // beams](prefix) for row, prefix in enumerate(self.prefixes)], dtype=torch.float64
        )

    def step(self, tokens: Tensor) -> Tensor:
        self.prefixes = [(*prefix, token) for prefix, token in zip(self.prefixes, tokens.tolist(), strict=True)]
        return self.prefill()

    def allocate(self, width: int, capacity: int) -> Prefixes:
        return self

    def extend(self, other: Prefixes) -> None:
        self.models += other.models
        self.prefixes += other.prefixes

    def reorder(self, rows: Sequence[int], staying: Sequence[int] | None) -> None:
        self.prefixes = [self.prefixes[row] for row in rows]
        if staying is not None:
            self.models = [self.models[index] for index in staying]


def sequences(config: GenerationConfig, *limits: int) -> list[SequenceState]:
    requests = [
        GenerationRequest(inputs=(0,), config=config, limit=limit, end=(END,), index=index)
        for index, limit in enumerate(limits)
    ]
    return [
        state_class(config)(request, (0,), 1, config, request.limit, min_new_tokens=config.min_new_tokens)
        for request in requests
    ]


def same(got: Sequence[Hypothesis], wanted: Sequence[Hypothesis], tolerance: float = 1e-9) -> None:
    """The same answers in the same order, with the same numbers."""
    assert [(one.tokens, one.finished) for one in got] == [(one.tokens, one.finished) for one in wanted]
    for one, other in zip(got, wanted, strict=True):
        assert math.isclose(one.logprob, other.logprob, rel_tol=tolerance, abs_tol=tolerance)
        assert math.isclose(one.score, other.score, rel_tol=tolerance, abs_tol=tolerance)


def translator_as_function(model: Any, source: Sequence[int]) -> Model:
    """A model's forward pass over the whole prefix, uncached, without padding."""

    def logprobs(prefix: Prefix) -> list[float]:
        with torch.no_grad():
            if hasattr(model, "encode"):
                logits = model(torch.tensor([list(source)]), torch.tensor([[START, *prefix]]))
            else:
                logits = model(torch.tensor([[*source, *prefix]]))
        return logits[0, -1].log_softmax(dim=-1).tolist()

    remembered: dict[Prefix, list[float]] = {}

    def once(prefix: Prefix) -> list[float]:
        if prefix not in remembered:
            remembered[prefix] = logprobs(prefix)
        return remembered[prefix]

    return once
