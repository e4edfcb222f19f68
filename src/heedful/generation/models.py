"""Models as the search sees them: one class for each wiring that has a decoder.

Shapes: B sentences, T tokens of the longest input, R rows (the beams of each sentence in turn), V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..core import padding
from .search import GenerationError, indices


class FromSource:
    """An encoder-decoder: answers to sources. A sentence has one row of memory, however many beams read it."""

    def __init__(self, module: Any, sources: Sequence[Sequence[int]], start: int, device: torch.device) -> None:
        ids, self._real = _padded(sources, device, left=False)
        self._module = module
        self._lengths = [len(source) for source in sources]
        self._first = torch.full((len(sources),), start, device=device)
        self._keep = padding(self._real, lengths=self._lengths)
        self._memory: Tensor = module.encode(ids, self._keep)
        self._cache = module.new_cache()

    @staticmethod
    def room(module: Any, length: int) -> int | None:
        """How many tokens may answer an input of this length; 0 where the input itself is too long, None for any."""
        longest = _n_positions(module, "encoder")
        return _n_positions(module, "decoder") if longest is None or length <= longest else 0

    def start(self) -> Tensor:
        return self.step(self._first)

    def step(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self._module.decode(tokens[:, None], self._memory, self._keep, self._cache)
        return logits[:, -1]

    def go_on(self, rows: Sequence[int], sentences: Sequence[int] | None) -> None:
        chosen = indices(rows, self._memory.device)
        if sentences is None:
            self._cache.reorder(chosen)
            return
        staying = indices(sentences, self._memory.device)
        self._cache.select(chosen, staying)
        self._memory = self._memory.index_select(0, staying)
        self._real = self._real.index_select(0, staying)
        self._lengths = [self._lengths[index] for index in sentences]
        self._keep = padding(self._real, lengths=self._lengths)


class FromPrompt:
    """A decoder alone: prompts, and how they go on. Padding stands before them, so that all go on together.

    A prompt is its own start: the start token is not used.
    """

    def __init__(self, module: Any, prompts: Sequence[Sequence[int]], start: int, device: torch.device) -> None:
        self._prompts, real = _padded(prompts, device, left=True)
        self._module = module
        self._real = None if len({len(prompt) for prompt in prompts}) == 1 else real
        self._cache = module.new_cache()

    @staticmethod
    def room(module: Any, length: int) -> int | None:
        """How many tokens may follow a prompt of this length; 0 where the prompt itself is too long, None for any."""
        longest = _n_positions(module, "decoder")
        return None if longest is None else max(longest - length + 1, 0)

    def start(self) -> Tensor:
        logits: Tensor = self._module(self._prompts, self._real, cache=self._cache)
        return logits[:, -1]

    def step(self, tokens: Tensor) -> Tensor:
        if self._real is not None:
            self._real = torch.cat([self._real, self._real.new_ones(len(tokens), 1)], dim=1)
        logits: Tensor = self._module(tokens[:, None], self._real, cache=self._cache)
        return logits[:, -1]

    def go_on(self, rows: Sequence[int], sentences: Sequence[int] | None) -> None:
        chosen = indices(rows, self._prompts.device)
        self._cache.select(chosen)
        if self._real is not None:
            self._real = self._real.index_select(0, chosen)


def wiring_of(module: Any) -> type[FromSource] | type[FromPrompt]:
    """How this model writes."""
    if not hasattr(module, "new_cache"):
        raise GenerationError(f"{type(module).__name__} has no decoder, so it cannot generate")
    return FromSource if hasattr(module, "encode") else FromPrompt


def _n_positions(module: Any, stack: str) -> int | None:
    """The most tokens that a stack can place, where its positions end."""
    positions = getattr(getattr(module, stack, None), "positions", None)
    return getattr(positions, "limit", None)


def _padded(rows: Sequence[Sequence[int]], device: torch.device, *, left: bool) -> tuple[Tensor, Tensor]:
    """Ids as one (B, T) tensor, and which of it is real."""
    longest = max(map(len, rows))
    ids, real = [], []
    for row in rows:
        fill = longest - len(row)
        ids.append([0] * fill + list(row) if left else list(row) + [0] * fill)
        real.append([False] * fill + [True] * len(row) if left else [True] * len(row) + [False] * fill)
    return torch.tensor(ids).to(device, non_blocking=True), torch.tensor(real).to(device, non_blocking=True)
