"""Generation requests: one for each input, checked against the model, and its state until it is answered."""

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
    """One input and how to answer it; `create_requests` creates and checks requests.

    `limit` is the most tokens of the answer, its end included. With a `context`, an answer of a decoder-only model that
    reaches its end continues from its second half (see `RequestState`). `occurrence` counts earlier requests of the
    same call with the same input, so that each is sampled differently. A list passed as `search_trace` is filled step
    by step, within the first context. `on_token` is called after every step in the thread that steps the engine: it
    must be fast and must not raise.
    """

    inputs: ModelInput
    config: GenerationConfig
    limit: int
    start: int | None = None
    end: tuple[int, ...] = ()
    suppress_tokens: tuple[int, ...] = ()
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    prefix: tuple[int, ...] = ()
    prompt: tuple[int, ...] = ()  # what the answer of a decoder-only model continues
    context: int | None = None
    input_length: int = 1
    index: int = 0  # of the input, for messages
    input_key: str = ""
    occurrence: int = 0
    search_trace: list[SearchStep] | None = None
    on_token: Callable[[RequestState], None] | None = None

    def as_stream(self) -> GenerationRequest:
        """Return the request for the best answer alone, which can be streamed token by token."""
        if self.config.sample and self.config.n_best > 1:
            raise ConfigError("several samples cannot be streamed; set n_best to 1")
        return replace(self, config=self.config.changed(n_best=1)) if self.config.n_best > 1 else self


@dataclass
class _Branch:
    """An answer of a request: its tokens from earlier contexts, and the search in this context, if it continues."""

    written: Hypothesis
    sequence: SequenceState | None = None


class RequestState:
    """The progress of a request. `hypotheses` are its answers, best first, once it is `finished`.

    An answer that reaches the end of the context continues from the second half of what the model sees. From there on
    each of the n best answers is searched independently.
    """

    def __init__(self, request: GenerationRequest) -> None:
        self.request = request
        self.hypotheses: list[Hypothesis] = []
        self.finished = False
        self.error: Exception | None = None
        empty = Hypothesis((), 0.0, 0.0, finished=False)
        self._branches = [_Branch(empty, self._search(empty, request.config, place=0))]
        self._single = request.config.changed(n_best=1) if request.context is not None else request.config

    @property
    def sequences(self) -> list[SequenceState]:
        return [branch.sequence for branch in self._branches if branch.sequence is not None]

    def finish(self, sequence: SequenceState) -> list[SequenceState]:
        """Take the result of a finished search. Return the searches for the answers that continue past the context."""
        place, branch = next((n, branch) for n, branch in enumerate(self._branches) if branch.sequence is sequence)
        if sequence.error is not None:
            self.error, self.finished = sequence.error, True
            return []
        branches = []
        for n, answer in enumerate(sequence.hypotheses, place):
            whole = self._joined(branch.written, answer)
            at_limit = not answer.tokens or len(whole.tokens) >= self.request.limit
            ended = self.request.context is None or answer.finished or at_limit  # else it reached the context's end
            branches.append(_Branch(whole, None if ended else self._search(whole, self._single, place=n)))
        self._branches[place : place + 1] = branches
        self.finished = not self.sequences
        if self.finished:
            self.hypotheses = sorted((branch.written for branch in self._branches), key=lambda answer: -answer.score)
        return [branch.sequence for branch in branches if branch.sequence is not None]

    def certain_tokens(self) -> tuple[int, ...]:
        """Return the tokens that the best answer is certain to begin with; all of them once it is finished."""
        if self.finished:
            return self.hypotheses[0].tokens
        return common_prefix(
            [
                (*branch.written.tokens, *(branch.sequence.certain_tokens() if branch.sequence is not None else ()))
                for branch in self._branches
            ]
        )

    def certain_logprobs(self) -> tuple[float, ...]:
        """Return the log-probability of each certain token."""
        count = len(self.certain_tokens())
        if self.finished:
            return self.hypotheses[0].token_logprobs[:count]
        first = self._branches[0]
        current = first.sequence.certain_logprobs() if first.sequence is not None else ()
        return (*first.written.token_logprobs, *current)[:count]

    def _search(self, written: Hypothesis, config: GenerationConfig, place: int) -> SequenceState:
        """Return the search for the tokens after `written`, with what remains of the limits."""
        request, n_written = self.request, len(written.tokens)
        inputs, limit, key = request.inputs, request.limit - n_written, request.input_key
        prompt, length = request.prompt, request.input_length
        if request.context is not None:
            ids = (*prompt, *written.tokens)
            inputs = prompt = ids if len(ids) <= request.context else ids[-max(1, request.context // 2) :]
            length, key = len(prompt), str(list(prompt)) if n_written else key
            limit = min(limit, request.context - length + 1)  # the model need not read the last token
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
    """Create a request for each input of `generate`, checked against the model.

    Raises:
        DataError: for an input, a prefix or a start token that this model cannot take; it names the input.
        ConfigError: for a context of a model with an encoder.
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
        raise DataError(f"start must be one of this model's tokens, from 0 to {target_size - 1}, not {start}")
    if context is not None and not from_prompt:
        raise ConfigError("context is for decoder-only models; omit it for a model with an encoder")
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
            occurrence=occurrences[key],  # so that an input that occurs twice is sampled twice
        )
        _check_prefix(request)
        occurrences[key] += 1
        requests.append(request)
    return requests


def _checked_input(module: Any, item: Any, index: int, from_prompt: bool) -> tuple[ModelInput, int, str]:
    """Return an input as the model takes it, its length in tokens, and a key that identifies it for sampling."""
    if isinstance(item, EncoderMemory) or (isinstance(item, Tensor) and item.is_floating_point()):
        if from_prompt:
            raise DataError(f"input {index} is not a list of token ids, and this model has no encoder to read it")
        return _encoder_input(module, item, index)
    if not hasattr(item, "__len__") or any(isinstance(token, list | tuple) for token in item):
        raise DataError(f"inputs must be lists of token ids, but input {index} is {item!r}; one input is [[5, 9, 2]]")
    ids = tuple(map(as_int, item))
    if not ids:
        raise DataError(f"input {index} is empty, but a model needs at least one token; omit it, or pass the end token")
    size = _vocab_size(module, "source_embedding")
    unknown = [token for token in ids if not 0 <= token < size]
    if unknown:
        raise DataError(
            f"input {index} has the token {unknown[0]}, but this model's tokens go from 0 to {size - 1}; "
            "was it encoded with another tokenizer?"
        )
    return ids, len(ids), str(list(ids))


def _encoder_input(module: Any, item: Tensor | EncoderMemory, index: int) -> tuple[ModelInput, int, str]:
    """Check a tensor for the encoder's embedding, or an encoder's output, whose padding is removed."""
    if isinstance(item, EncoderMemory):
        memory = item.memory if item.keep is None else item.memory[item.keep.to(item.memory.device)]
        if memory.dim() != 2 or not len(memory):
            raise DataError(f"input {index}: a memory must be (S, D) with S above 0, not {tuple(memory.shape)}")
        return EncoderMemory(memory), len(memory), _digest(memory)
    if not item.dim() or not item.numel():
        raise DataError(f"input {index} is empty; pass a tensor with at least one element")
    patches = getattr(getattr(module, "source_embedding", None), "n_patches", None)
    return item, patches or len(item), _digest(item)


def _digest(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.detach().to("cpu", torch.float64).contiguous().numpy().tobytes()).hexdigest()


def _check_prefix(request: GenerationRequest) -> None:
    index, prefix, limit = request.index, request.prefix, request.limit
    forbidden = [token for token in prefix if token in request.suppress_tokens]
    if forbidden:
        raise DataError(f"the prefix of input {index} has the token {forbidden[0]}, which suppress_tokens forbids")
    if ends := [token for token in prefix if token in request.end]:
        raise DataError(f"the prefix of input {index} contains the end token {ends[0]}; an answer would end there")
    if len(prefix) >= limit:
        raise DataError(
            f"the prefix of input {index} has {len(prefix)} tokens; an answer may have {limit} with its end"
        )


def _vocab_size(module: Any, side: str) -> float:
    """Return the number of tokens of an embedding; infinity for an embedding of something else."""
    embedding = getattr(module, side, getattr(module, "embedding", None))
    weight = getattr(embedding, "weight", None)
    return inf if weight is None else len(weight)
