"""From inputs of any length to answers in the same order: sorted, batched, searched, put back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from operator import index as whole
from typing import Any

import torch
from torch import nn

from ..backends import prepare
from ..backends.native.runner import NativeRunner
from ..errors import ConfigError, DataError
from .config import GenerationConfig
from .hypothesis import Hypothesis
from .models import FromPrompt, wiring_of
from .queue import Queue
from .rules import Rules
from .search import Starting, Waiting, search
from .sentence import Drawn, Fate, Request, Searched, Sentence
from .strategies import strategy_of
from .streams import Stream

ON_CPU, ON_GPU = 4096, 1 << 16  # input tokens, times the beam, read at once unless told otherwise


def generate(
    module: Any,
    inputs: Sequence[Sequence[int]],
    config: GenerationConfig | None = None,
    *,
    start: int = 1,
    end: int | Sequence[int] = 2,
    banned: Sequence[int] = (),
    boosted: Mapping[int, float] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    histories: list[list[list[Fate]]] | None = None,
    **changes: Any,
) -> list[list[Hypothesis]]:
    """For each input its `n_best` answers, best first.

    Inputs are ids exactly as the encoder should see them (with the end, where it was trained so), or the prompts
    of a decoder alone. Several tokens may be an `end`, or none. `banned` tokens are never written; `boosted` ones
    have a number added to their logit.
    `prefixes` are what the answers begin with, one for each input. A list given as `histories` is filled with
    what each input's search kept and pruned, step by step. Keywords change the config: beam, n_best, sample,
    temperature, precision … (see GenerationConfig). The answer to an input does not depend on the others.

    >>> generate(model, [[5, 9, 2]], beam=4, length_penalty=0.6)
    """
    asked = Asked.of(
        module, inputs, config, start=start, end=end, banned=banned, boosted=boosted, prefixes=prefixes, **changes
    )
    return asked.found(histories)


def stream(
    module: Any,
    ids: Sequence[int],
    config: GenerationConfig | None = None,
    *,
    start: int = 1,
    end: int | Sequence[int] = 2,
    banned: Sequence[int] = (),
    boosted: Mapping[int, float] | None = None,
    prefix: Sequence[int] = (),
    **changes: Any,
) -> Stream[int, Hypothesis]:
    """The tokens of the best answer to one input, each as soon as it is certain: with a beam, when all agree.

    When the last has come, the stream's `answer` is the whole one.
    """
    asked = Asked.of(
        module, [ids], config, start=start, end=end, banned=banned, boosted=boosted, prefixes=[prefix], **changes
    ).as_stream()
    return Stream(_stream(asked))


def _stream(asked: Asked) -> Generator[int, None, Hypothesis]:
    sent = 0
    best: list[Hypothesis] = []
    for (sentence,) in asked.written():
        best = sentence.best
        sure = sentence.certain()
        yield from sure[sent:]
        sent = len(sure)
    return best[0]


@dataclass(frozen=True)
class Asked:
    """A checked call: the model, its config, and a request for each input."""

    module: Any
    config: GenerationConfig
    rules: Rules
    requests: list[Request]
    start: int

    @classmethod
    def of(
        cls,
        module: Any,
        inputs: Sequence[Sequence[int]],
        config: GenerationConfig | None = None,
        *,
        start: int = 1,
        end: int | Sequence[int] = 2,
        banned: Sequence[int] = (),
        boosted: Mapping[int, float] | None = None,
        prefixes: Sequence[Sequence[int]] | None = None,
        **changes: Any,
    ) -> Asked:
        """What `generate` is given; nothing is written yet."""
        config = GenerationConfig() if config is None else config
        config = config.changed(**changes) if changes else config
        ends = (whole(end),) if hasattr(end, "__index__") else tuple(map(whole, end))
        rules = Rules(config, ends, tuple(banned), dict(boosted or {}))
        requests = _requests(module, inputs, config, rules, prefixes)
        size = _vocab_size(module, "target_embedding")
        if not 0 <= start < size:
            raise DataError(f"start is one of this model's tokens, which go from 0 to {size - 1}, but is {start}")
        return cls(module, config, rules, requests, start)

    def found(self, histories: list[list[list[Fate]]] | None = None) -> list[list[Hypothesis]]:
        """Write it all: `generate`."""
        if histories is not None:
            histories[:] = [[] for _ in self.requests]
            for request, history in zip(self.requests, histories, strict=True):
                request.history = history
        answers: list[list[Hypothesis]] = [[] for _ in self.requests]
        for sentences in self.written():
            for sentence in sentences:
                answers[sentence.request.index] = sentence.best
        return answers

    def as_stream(self) -> Asked:
        """The same, where its answer can come token by token."""
        if self.config.sample and self.config.n_best > 1:
            raise ConfigError("several samples cannot be streamed as one; leave n_best at 1")
        return self

    @property
    def budget(self) -> int:
        """How many input tokens, times the answers written at the same time, are read at once."""
        return self.config.batch_tokens or (ON_GPU if _device_of(self.module).type == "cuda" else ON_CPU)

    def sentence(self, request: Request) -> Sentence:
        """One of its requests, before it is written."""
        kind = Searched if self.config.beam > 1 else Drawn
        return kind(self.config, self.rules.ends, request)

    def steps(self, waiting: Waiting) -> Iterator[list[Sentence]]:
        """Write those that wait; after each step come the sentences that took it.

        They may be another's, if that one asked this model for the same way to write.
        """
        wiring, ready = wiring_of(self.module), prepare(self.module, self.config.precision)
        device = _device_of(self.module)
        as_it_is = self.module if ready.module is self.module else None  # what was prepared has no dropout left

        def begin(sentences: Sequence[Sentence]) -> Starting:
            inputs = [sentence.request.ids for sentence in sentences]
            return (
                wiring(ready, inputs, self.start, device)
                if ready.native is None
                else NativeRunner(ready.native, inputs, self.start)
            )

        strategy = strategy_of(self.config, len(self.rules.ends))
        return _quietly(search(begin, strategy, self.rules, waiting), as_it_is)

    def written(self) -> Iterator[list[Sentence]]:
        """Write every answer; after each step come the sentences that took it.

        What does not fit the memory of a GPU is begun again, half as much at once.
        """
        settled: set[int] = set()
        budget = self.budget
        while True:
            left = [self.sentence(request) for request in self.requests if request.index not in settled]
            queue = Queue(left, budget, self.config.width)
            try:
                for sentences in self.steps(queue):
                    settled.update(sentence.request.index for sentence in sentences if sentence.settled)
                    yield sentences
                return
            except torch.OutOfMemoryError:
                if queue.most_at_once <= 1:
                    raise
            # Here the error is gone, and with it what its traceback held.
            budget = max(1, min(budget, queue.most_tokens) // 2)
            for request in self.requests:
                if request.history is not None and request.index not in settled:
                    request.history.clear()
            torch.cuda.empty_cache()


def _quietly(steps: Iterator[list[Sentence]], module: Any) -> Iterator[list[Sentence]]:
    """Each step without gradients and without dropout; between two steps everything is as it was."""
    while True:
        with torch.inference_mode(), _evaluating(module):
            sentences = next(steps, None)
        if sentences is None:
            return
        yield sentences


def _requests(
    module: Any,
    inputs: Sequence[Sequence[int]],
    config: GenerationConfig,
    rules: Rules,
    prefixes: Sequence[Sequence[int]] | None,
) -> list[Request]:
    """One for each input, with the most tokens to write."""
    wiring = wiring_of(module)
    if prefixes is not None and len(prefixes) != len(inputs):
        raise DataError(f"there are {len(inputs)} inputs and {len(prefixes)} prefixes; give one for each, [] for none")
    requests, seen = [], Counter[tuple[int, ...]]()
    size = _vocab_size(module, "source_embedding")
    for index, given in enumerate(inputs):
        if not hasattr(given, "__len__") or any(isinstance(token, list | tuple) for token in given):
            raise DataError(f"inputs are lists of token ids, but input {index} is {given!r}; one input is [[5, 9, 2]]")
        ids = tuple(map(whole, given))
        if not ids:
            raise DataError(f"input {index} is empty; a model needs one token at least: leave it out, or give the end")
        room = wiring.room(module, len(ids))
        if room == 0:
            raise DataError(
                f"input {index} has {len(ids)} tokens, more than this model's positions; "
                "shorten it, or build the model with a larger max_length"
            )
        strange = [token for token in ids if not 0 <= token < size]
        if strange:
            raise DataError(
                f"input {index} has the token {strange[0]}, but this model's tokens go from 0 to {size - 1}; "
                "was it made with another tokeniser?"
            )
        limit = config.limit(len(ids), room)
        prefix = tuple(map(whole, prefixes[index])) if prefixes is not None else ()
        _check_prefix(index, prefix, limit, rules)
        past = ids if wiring is FromPrompt else ()
        key = f"{list(ids)} {seen[ids]}"  # the same input twice is drawn twice, whatever stands beside it
        seen[ids] += 1
        requests.append(Request(index, ids, limit, prefix, past, key))
    return requests


def _check_prefix(index: int, prefix: Sequence[int], limit: int, rules: Rules) -> None:
    forbidden = [token for token in prefix if token in rules.banned]
    if forbidden:
        raise DataError(
            f"the prefix of input {index} has the token {forbidden[0]}, which is banned; change one of them"
        )
    if ends := [token for token in prefix if token in rules.ends]:
        raise DataError(f"the prefix of input {index} has the end, {ends[0]}, in it; an answer would end there")
    if len(prefix) >= limit:
        raise DataError(
            f"the prefix of input {index} has {len(prefix)} tokens, but an answer may have {limit}, its end among them"
        )


def _vocab_size(module: Any, side: str) -> float:
    """How many tokens an embedding knows; no bound where it is of another make."""
    embedding = getattr(module, side, getattr(module, "embedding", None))
    weight = getattr(embedding, "weight", None)
    return inf if weight is None else len(weight)


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
