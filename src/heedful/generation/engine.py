"""From inputs of any length to answers in the same order: sorted, batched, searched, put back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..errors import DataError
from .config import GenerationConfig
from .hypothesis import Hypothesis
from .models import FromPrompt, FromSource, wiring_of
from .search import search
from .sentence import Sentence
from .strategies import Beam, Greedy, Strategy

SHORT = 16  # a shorter input takes as much of a batch's budget, since its answer has a length too


def generate(
    module: Any,
    inputs: Sequence[Sequence[int]],
    config: GenerationConfig | None = None,
    *,
    start: int = 1,
    end: int = 2,
    banned: Sequence[int] = (),
    **changes: Any,
) -> list[list[Hypothesis]]:
    """For each input its `n_best` answers, best first.

    Inputs are ids exactly as the encoder should see them (with the end, where it was trained so), or the prompts
    of a decoder alone. `banned` tokens are never written. Keywords change the config: beam, n_best,
    max_new_tokens, min_new_tokens, length_penalty, penalty, batch_tokens. The answer to an input does not
    depend on the others.

    >>> generate(model, [[5, 9, 2]], beam=4, length_penalty=0.6)
    """
    config = (GenerationConfig() if config is None else config).changed(**changes)
    wiring = wiring_of(module)
    limits = _limits(wiring, module, inputs, config)
    strategy: Strategy = Greedy() if config.beam == 1 else Beam(config.beam)
    device = _device_of(module)
    answers: list[list[Hypothesis]] = [[] for _ in inputs]
    with torch.inference_mode(), _evaluating(module):
        for batch in _batches([len(ids) for ids in inputs], config):
            sentences = [Sentence(config, limits[index], end) for index in batch]
            decoding = wiring(module, [inputs[index] for index in batch], start, device)
            search(decoding, strategy, sentences, end=end, banned=banned, min_new_tokens=config.min_new_tokens)
            for index, sentence in zip(batch, sentences, strict=True):
                answers[index] = sentence.best
    return answers


def _limits(
    wiring: type[FromSource] | type[FromPrompt],
    module: Any,
    inputs: Sequence[Sequence[int]],
    config: GenerationConfig,
) -> list[int]:
    """The most tokens to write for each input."""
    limits = []
    for index, ids in enumerate(inputs):
        if not len(ids):
            raise DataError(f"input {index} is empty; a model needs one token at least: leave it out, or give the end")
        room = wiring.room(module, len(ids))
        if room == 0:
            raise DataError(
                f"input {index} has {len(ids)} tokens, more than this model's positions; "
                "shorten it, or build the model with a larger max_length"
            )
        limits.append(config.limit(len(ids), room))
    return limits


def _batches(lengths: Sequence[int], config: GenerationConfig) -> Iterator[list[int]]:
    """Indices of inputs of like length, the longest first, as many at once as the budget allows, one at least."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if batch and (len(batch) + 1) * config.beam * max(lengths[batch[0]], SHORT) > config.batch_tokens:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def _device_of(module: Any) -> torch.device:
    tensor = next(module.parameters(), None) if isinstance(module, nn.Module) else None
    return torch.device("cpu") if tensor is None else tensor.device


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Dropout off; afterwards every part is as it was."""
    parts = module.modules() if isinstance(module, nn.Module) else ()
    training = [part for part in parts if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
