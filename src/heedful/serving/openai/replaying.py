"""A text read once more by the model that wrote it, to see what else it might have said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ...tasks.language_model import CausalLanguageModel

AT_ONCE = 128  # tokens: of each the whole vocabulary is weighed
IMPOSSIBLE = -9999.0  # as OpenAI writes it: JSON has no infinity


class Place(NamedTuple):
    """What a model gave to the token that came, and to the most likely ones."""

    logprob: float
    top: list[tuple[int, float]]


class Replay:
    """Reads along, a few tokens at a time. Beyond the context it goes on from the last half, as writing does."""

    def __init__(self, continuer: CausalLanguageModel, first: int, top: int) -> None:
        self._module, self._limit = continuer.module, continuer.settings.context
        self._device = next(self._module.parameters()).device
        self._top = top
        self._read: list[int] = []
        self._unread = first  # a token is read when the next one comes: after the last there may be no room
        self._cache = self._module.new_cache()

    @torch.inference_mode()
    def follow(self, tokens: Sequence[int]) -> list[Place]:
        """What was given to each of the tokens that come next."""
        if not tokens:
            return []
        reading, self._unread = [self._unread, *tokens[:-1]], tokens[-1]
        places: list[Place] = []
        while reading:
            room = self._room()
            logprobs = self._forward(reading[:room]).log_softmax(dim=-1).clamp(min=IMPOSSIBLE)
            came = tokens[len(places) : len(places) + len(logprobs)]
            own = logprobs.gather(1, torch.tensor(came, device=self._device)[:, None])[:, 0].tolist()
            best = logprobs.topk(min(self._top, logprobs.shape[-1]))
            for logprob, ids, values in zip(own, best.indices.tolist(), best.values.tolist(), strict=True):
                places.append(Place(logprob, list(zip(ids, values, strict=True))))
            del reading[:room]
        return places

    def _room(self) -> int:
        """How many tokens can be read now; where the context is full, it is begun anew."""
        if self._limit is None:
            return AT_ONCE
        if self._cache.length == self._limit:
            self._cache = self._module.new_cache()
            again = max(1, self._limit // 2) - 1  # the next to be read belongs to the half
            if again:
                past, self._read = self._read[-again:], self._read[:-again]
                self._forward(past)
        return min(AT_ONCE, self._limit - self._cache.length)

    def _forward(self, tokens: Sequence[int]) -> Tensor:
        self._read += tokens
        logits: Tensor = self._module(torch.tensor([tokens], device=self._device), cache=self._cache)
        return logits[0].float()
