"""What the engine is asked for: one request for each input, checked, and its state until it is answered."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from operator import index as as_int
from typing import Any

import torch
from torch import Tensor

from ..errors import ConfigError, DataError
from .config import GenerationConfig
from .runners import DecoderOnlyRunner, EncoderMemory, ModelInput, runner_of
from .sequence import Hypothesis, SearchStep, SequenceState, common_prefix, state_class


@dataclass(eq=False, kw_only=True)
class GenerationRequest:
    """One input and how to answer it; `create_requests` makes and checks them.

    `limit` is the most tokens of the answer, its end included. Where a decoder-only model has a `context`, a longer
    answer goes on from the second half of it (`RequestState`). `occurrence` counts how often the same input came
    before in the same call, so that it is sampled anew. A list given as `search_trace` is filled step by step, within
    the first context. `on_token` is called after every step, in the thread that steps the engine: it must be quick
    and raise nothing.
    """

    inputs: ModelInput
    config: GenerationConfig
    limit: int
    start: int | None = None
    end: tuple[int, ...] = ()
    suppress_tokens: tuple[int, ...] = ()
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    prefix: tuple[int, ...] = ()
    prompt: tuple[int, ...] = ()  # what the answer continues, where the input is not a source
    context: int | None = None
    input_length: int = 1
    index: int = 0  # its place among the inputs, for messages
    input_key: str = ""
    occurrence: int = 0
    search_trace: list[SearchStep] | None = None
    on_token: Callable[[RequestState], None] | None = None

    def as_stream(self) -> GenerationRequest:
        """The same for the best answer alone, which can come token by token."""
        if self.config.sample and self.config.n_best > 1:
            raise ConfigError("several samples cannot be streamed as one; leave n_best at 1")
        return replace(self, config=self.config.changed(n_best=1)) if self.config.n_best > 1 else self


@dataclass
class _Branch:
    """An answer of a request: what of it was written in earlier contexts, and the search in this one, if any."""

    written: Hypothesis
    sequence: SequenceState | None = None


class RequestState:
    """A request while it is answered: `hypotheses` are its answers, best first, once it is `finished`.

    Where an answer reaches the end of the context, it continues from the second half of what the model sees. Beyond
    that place each answer goes on by itself: of several beams, each of the n best begins a search of its own.
    """

    def __init__(self, request: GenerationRequest) -> None:
        self.request = request
        self.hypotheses: list[Hypothesis] = []
        self.finished = False
        self.error: Exception | None = None
        nothing = Hypothesis((), 0.0, 0.0, finished=False)
        self._branches = [_Branch(nothing, self._search(nothing, request.config, place=0))]
        self._single = request.config.changed(n_best=1) if request.context is not None else request.config

    @property
    def sequences(self) -> list[SequenceState]:
        """The searches that have not finished."""
        return [branch.sequence for branch in self._branches if branch.sequence is not None]

    def finish(self, sequence: SequenceState) -> list[SequenceState]:
        """Take the result of one of its searches. The answers that go on past the context are searches again."""
        place, branch = next((n, one) for n, one in enumerate(self._branches) if one.sequence is sequence)
        if sequence.error is not None:
            self.error, self.finished = sequence.error, True
            return []
        branches = []
        for n, answer in enumerate(sequence.hypotheses, place):
            whole = self._joined(branch.written, answer)
            at_limit = not answer.tokens or len(whole.tokens) >= self.request.limit
            ended = self.request.context is None or answer.finished or at_limit  # else it only had no more room
            branches.append(_Branch(whole, None if ended else self._search(whole, self._single, place=n)))
        self._branches[place : place + 1] = branches
        self.finished = not self.sequences
        if self.finished:
            self.hypotheses = sorted((one.written for one in self._branches), key=lambda answer: -answer.score)
        return [branch.sequence for branch in branches if branch.sequence is not None]

    def certain_tokens(self) -> tuple[int, ...]:
        """The tokens that the best answer is sure to begin with; all of them once it is finished."""
        if self.finished:
            return self.hypotheses[0].tokens
        return common_prefix(
            [
                (*branch.written.tokens, *(branch.sequence.certain_tokens() if branch.sequence is not None else ()))
                for branch in self._branches
            ]
        )

    def certain_logprobs(self) -> tuple[float, ...]:
        """The log-probability of each certain token."""
        count = len(self.certain_tokens())
        if self.finished:
            return self.hypotheses[0].token_logprobs[:count]
        first = self._branches[0]
        current = first.sequence.certain_logprobs() if first.sequence is not None else ()
        return (*first.written.token_logprobs, *current)[:count]

    def _search(self, written: Hypothesis, config: GenerationConfig, place: int) -> SequenceState:
        """The search for what follows: as many tokens as may still come and have room, as few as still must."""
        request, n_written = self.request, len(written.tokens)
        inputs, limit, key = request.inputs, request.limit - n_written, request.input_key
        prompt, length = request.prompt, request.input_length
        if request.context is not None:
            ids = (*prompt, *written.tokens)
            inputs = prompt = ids if len(ids) <= request.context else ids[-max(1, request.context // 2) :]
            length, key = len(prompt), str(list(prompt)) if n_written else key
            limit = min(limit, request.context - length + 1)  # the last token need not be seen itself
        return state_class(config)(
            request,
            inputs,
            length,
            config,
            limit,
            min_new_tokens=min(max(0, config.min_new_tokens - n_written), limit),
            prefix=request.prefix[n_written:],
            prompt=prompt,
            seed_key=f"{key} {request.occurrence}" + (f" {place}" if place else ""),
            trace=None if n_written else request.search_trace,
        )

    def _joined(self, written: Hypothesis, more: Hypothesis) -> Hypothesis:
        if not written.tokens:
            return more
        logprobs = (*written.token_logprobs, *more.token_logprobs)
        logprob = written.logprob + more.logprob
        score = logprob / self.request.config.length_normalizer(len(logprobs))
        return Hypothesis((*written.tokens, *more.tokens), logprob, score, more.finished, logprobs)


def create_requests(
    module: Any,
    inputs: Sequence[Sequence[int] | Tensor | EncoderMemory] | Tensor,
    config: GenerationConfig,
    *,
    start: int | None,
    end: int | Sequence[int],
    suppress_tokens: Sequence[int] = (),
    logit_bias: Mapping[int, float] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    context: int | None = None,
) -> list[GenerationRequest]:
    """A request for each input of `generate`, checked against the model.

    Raises:
        DataError: for an input, a prefix or a start that this model cannot take; it names the input.
    """
    runner = runner_of(module)
    if prefixes is not None and len(prefixes) != len(inputs):
        raise DataError(f"there are {len(inputs)} inputs and {len(prefixes)} prefixes; give one for each, [] for none")
    ends = (as_int(end),) if hasattr(end, "__index__") else tuple(map(as_int, end))
    from_prompt = runner is DecoderOnlyRunner
    target_size = _vocab_size(module, "target_embedding")
    if start is None and not from_prompt:
        raise DataError("an encoder-decoder begins every answer with a start token: give it as start=…")
    if start is not None and not 0 <= start < target_size:
        raise DataError(f"start is one of this model's tokens, which go from 0 to {target_size - 1}, but is {start}")
    if context is not None and not from_prompt:
        raise ConfigError("a context is for decoder-only models; an encoder-decoder has the room of its positions")
    positions = runner.room(module, 1) if from_prompt else None
    context = context if context is None or positions is None else min(context, positions)
    requests, occurrences = [], Counter[str]()
    for index, item in enumerate(inputs):
        model_input, length, key = _checked_input(module, item, index, from_prompt)
        room = runner.room(module, length if isinstance(model_input, tuple) and context is None else 1)
        if room == 0:
            raise DataError(
                f"input {index} has {length} tokens, more than this model's positions; "
                "shorten it, or build the model with a larger max_length"
            )
        limit = config.limit(length, room if context is None else None)
        request = GenerationRequest(
            inputs=model_input,
            config=config,
            limit=limit,
            start=start,
            end=ends,
            suppress_tokens=tuple(suppress_tokens),
            logit_bias=dict(logit_bias or {}),
            prefix=tuple(map(as_int, prefixes[index])) if prefixes is not None else (),
            prompt=model_input if from_prompt and isinstance(model_input, tuple) else (),
            context=context,
            input_length=length,
            index=index,
            input_key=key,
            occurrence=occurrences[key],  # the same input twice is drawn twice, whatever stands beside it
        )
        _check_prefix(request)
        occurrences[key] += 1
        requests.append(request)
    return requests


def _checked_input(module: Any, item: Any, index: int, from_prompt: bool) -> tuple[ModelInput, int, str]:
    """An input as the model takes it, its length in tokens, and a text that is different for different inputs."""
    if isinstance(item, EncoderMemory) or (isinstance(item, Tensor) and item.is_floating_point()):
        if from_prompt:
            raise DataError(f"input {index} is not a list of token ids, and this model has no encoder to read it")
        return _encoder_input(module, item, index)
    if not hasattr(item, "__len__") or any(isinstance(token, list | tuple) for token in item):
        raise DataError(f"inputs are lists of token ids, but input {index} is {item!r}; one input is [[5, 9, 2]]")
    ids = tuple(map(as_int, item))
    if not ids:
        raise DataError(f"input {index} is empty; a model needs one token at least: leave it out, or give the end")
    size = _vocab_size(module, "source_embedding")
    unknown = [token for token in ids if not 0 <= token < size]
    if unknown:
        raise DataError(
            f"input {index} has the token {unknown[0]}, but this model's tokens go from 0 to {size - 1}; "
            "was it made with another tokeniser?"
        )
    return ids, len(ids), str(list(ids))


def _encoder_input(module: Any, item: Tensor | EncoderMemory, index: int) -> tuple[ModelInput, int, str]:
    """A tensor for the encoder's embedding, or an encoder's output without its padding."""
    if isinstance(item, EncoderMemory):
        memory = item.memory if item.keep is None else item.memory[item.keep.to(item.memory.device)]
        if memory.dim() != 2 or not len(memory):
            raise DataError(
                f"input {index}: a memory has the shape (S, D), and S is not 0, but is {tuple(memory.shape)}"
            )
        return EncoderMemory(memory), len(memory), _digest(memory)
    if not item.dim() or not item.numel():
        raise DataError(f"input {index} is empty; an encoder needs something to read")
    patches = getattr(getattr(module, "source_embedding", None), "n_patches", None)
    return item, patches or len(item), _digest(item)


def _digest(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.detach().to("cpu", torch.float64).contiguous().numpy().tobytes()).hexdigest()


def _check_prefix(request: GenerationRequest) -> None:
    index, prefix, limit = request.index, request.prefix, request.limit
    forbidden = [token for token in prefix if token in request.suppress_tokens]
    if forbidden:
        raise DataError(
            f"the prefix of input {index} has the token {forbidden[0]}, which is in suppress_tokens; change one of them"
        )
    if ends := [token for token in prefix if token in request.end]:
        raise DataError(f"the prefix of input {index} has the end, {ends[0]}, in it; an answer would end there")
    if len(prefix) >= limit:
        raise DataError(
            f"the prefix of input {index} has {len(prefix)} tokens, but an answer may have {limit}, its end among them"
        )


def _vocab_size(module: Any, side: str) -> float:
    """How many tokens an embedding has; no bound where it is of another kind."""
    embedding = getattr(module, side, getattr(module, "embedding", None))
    weight = getattr(embedding, "weight", None)
    return inf if weight is None else len(weight)
