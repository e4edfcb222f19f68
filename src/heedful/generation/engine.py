"""The generation engine. `generate`, `stream`, the predictors and the server all use it."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import Lock
from typing import Any, Generic, TypeVar, Unpack

import torch
from torch import Tensor, nn

from ..backends import prepare
from .batch import PrefillRunner, SequenceBatch
from .config import GenerationConfig, GenerationOptions
from .request import GenerationRequest, RequestState, create_requests
from .runners import EncoderMemory, new_runner
from .scheduler import Scheduler
from .sequence import Hypothesis, SearchStep, SequenceState
from .strategies import LogitsProcessors, strategy_of

CPU_BUDGET, GPU_BUDGET = 4096, 1 << 16  # input tokens, times the beam, that run at once unless a config sets it
ONLINE_WAIT = 4  # steps that a new sequence waits at most in online use

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Stream(Iterator[Item], Generic[Item, Answer]):
    """Iterates over an answer, each item as soon as it is certain. After the last one, `answer` is the whole answer."""

    def __init__(self, items: Generator[Item, None, Answer]) -> None:
        self._items = items
        self.answer: Answer | None = None

    def __next__(self) -> Item:
        try:
            return next(self._items)
        except StopIteration as end:
            self.answer = self.answer or end.value
            raise

    def close(self) -> None:
        """Stop generating and free the request."""
        self._items.close()


class GenerationEngine:
    """Decodes requests with continuous batching.

    >>> engine = GenerationEngine(model)
    >>> states = [engine.add_request(request) for request in requests]
    >>> while engine.has_unfinished_requests:
    ...     for state in engine.step():
    ...         print(state.request.index, state.certain_tokens())

    `add_request` and `abort` may be called from any thread.

    Args:
        module: any model with a decoder.
        n_workers: how many threads call `step(worker)`, each with its own number.
        max_wait_steps: how many steps a new request waits at most, so that several are prefilled at once. None, no
            limit, gives the best throughput.
    """

    def __init__(self, module: Any, *, n_workers: int = 1, max_wait_steps: int | None = ONLINE_WAIT) -> None:
        self.module = module
        tensor = next(module.parameters(), None) if isinstance(module, nn.Module) else None
        self.device = torch.device("cpu") if tensor is None else tensor.device
        self._max_wait_steps = max_wait_steps
        self.budget = GPU_BUDGET if self.device.type == "cuda" else CPU_BUDGET
        self._scheduler = Scheduler(self._new_batch, self.budget, n_workers, padded=max_wait_steps is None)
        self._states: dict[GenerationRequest, RequestState] = {}
        self._lock = Lock()

    def add_request(self, request: GenerationRequest) -> RequestState:
        """Queue a request and return its state, which every step updates."""
        state = RequestState(request)
        with self._lock:
            if request in self._states:
                raise ValueError(f"the request for input {request.index} is already being answered")
            self._states[request] = state
        self._scheduler.add(state.sequences)
        return state

    def abort(self, *requests: GenerationRequest) -> None:
        """Cancel requests. Their rows are freed at the next step; finished requests are ignored."""
        with self._lock:
            states = [state for request in requests if (state := self._states.pop(request, None)) is not None]
            sequences = [sequence for state in states for sequence in state.sequences]
            for sequence in sequences:
                sequence.aborted = True
        if sequences:
            self._scheduler.remove_aborted()

    def step(self, worker: int = 0) -> list[RequestState]:
        """Take one step of everything that this worker decodes.

        Returns:
            The requests that changed, finished ones included. A request that failed has an `error`.
        """
        return self._update(self._scheduler.step(worker))

    def fail_all(self, error: Exception, worker: int = 0) -> list[RequestState]:
        """Fail every request that waits or that this worker decodes. Return the requests that changed."""
        dropped = self._scheduler.clear(worker)
        for sequence in dropped:
            sequence.fail(error)
        return self._update(dropped)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Hypothesis]]:
        """Return the `n_best` hypotheses of each request, best first. The first error is raised."""
        longest_first = sorted(requests, key=lambda request: -request.input_length)  # least padding
        states = {request: self.add_request(request) for request in longest_first}
        n_left = len(states)
        try:
            while n_left:
                finished = [state for state in self.step() if state.finished and state.request in states]
                n_left -= len(finished)
                for state in finished:
                    if state.error is not None:
                        raise state.error
        finally:
            self.abort(*requests)
        return [states[request].hypotheses for request in requests]

    def stream(self, request: GenerationRequest) -> Stream[int, Hypothesis]:
        """Stream the tokens of the best answer, each as soon as it is certain."""
        return Stream(self._tokens(request.as_stream()))

    @property
    def has_unfinished_requests(self) -> bool:
        return self._scheduler.has_work

    def has_work_for(self, worker: int) -> bool:
        """Return True if a step of this worker would do anything."""
        return self._scheduler.has_work_for(worker)

    @property
    def n_waiting(self) -> int:
        return self._scheduler.n_waiting

    @property
    def n_running(self) -> int:
        return self._scheduler.n_running

    def _tokens(self, request: GenerationRequest) -> Generator[int, None, Hypothesis]:
        state, n_sent = self.add_request(request), 0
        try:
            while not state.finished:
                self.step()
                if state.error is not None:
                    raise state.error
                tokens = state.certain_tokens()
                yield from tokens[n_sent:]
                n_sent = max(n_sent, len(tokens))
        finally:
            self.abort(request)
        return state.hypotheses[0]

    def _update(self, sequences: Iterable[SequenceState]) -> list[RequestState]:
        """Update the requests of these sequences, call their `on_token`, and queue searches past the context."""
        updated: dict[RequestState, None] = {}  # an ordered set
        for sequence in sequences:
            state = self._states.get(sequence.request)
            if state is not None and (not sequence.finished or self._finish(state, sequence)):
                updated[state] = None
        for state in updated:
            if state.request.on_token is not None:
                state.request.on_token(state)
        return [*updated]

    def _finish(self, state: RequestState, sequence: SequenceState) -> bool:
        """Take a finished search. Return False if its request was aborted."""
        with self._lock:  # other searches of the same request may finish in other workers
            if state.request not in self._states:
                return False
            self._scheduler.add(state.finish(sequence))
            if state.finished:
                del self._states[state.request]
                for other in state.sequences:  # of a request that failed
                    other.aborted = True
        return True

    def _new_batch(self, first: SequenceState) -> SequenceBatch:
        """Return an empty batch for sequences with the settings of this one."""
        request, config = first.request, first.config
        model = prepare(self.module, config.precision)
        # A prepared copy is in evaluation mode; the module itself may be in training mode.
        guard = partial(_evaluation, self.module) if model.module is self.module else nullcontext

        def runner_for(sequences: Sequence[SequenceState]) -> PrefillRunner:
            inputs = [sequence.inputs for sequence in sequences]
            return new_runner(self.module, model, inputs, request.start, self.device)

        processors = LogitsProcessors(config, request.end, request.suppress_tokens, request.logit_bias)
        strategy = strategy_of(config, len(request.end))
        return SequenceBatch(runner_for, strategy, processors, guard=guard, max_wait_steps=self._max_wait_steps)


def generate(
    module: Any,
    inputs: Sequence[Sequence[int] | Tensor | EncoderMemory] | Tensor,
    config: GenerationConfig | None = None,
    *,
    start: int | None = 1,
    end: int | Sequence[int] = 2,
    suppress_tokens: Sequence[int] = (),
    logit_bias: Mapping[int, float] | None = None,
    prefixes: Sequence[Sequence[int]] | None = None,
    search_trace: list[list[SearchStep]] | None = None,
    context: int | None = None,
    **overrides: Unpack[GenerationOptions],
) -> list[list[Hypothesis]]:
    """Return the `n_best` answers to each input, best first. The answer to an input does not depend on the others.

    Args:
        module: any model with a decoder.
        inputs: token ids exactly as the encoder should see them (with the end token, if it was trained so), or the
            prompts of a decoder-only model. For encoders of something else: a float tensor that the encoder's
            embedding takes, without the batch dimension, or an EncoderMemory each.
        config: the settings; keywords override them: beam, n_best, sample, temperature, precision …
        start: the token before every answer of an encoder-decoder; None for decoder-only models.
        end: the token or tokens that end an answer; () for none.
        suppress_tokens: tokens that are never generated.
        logit_bias: what is added to the logits of these tokens.
        prefixes: what the answers begin with, one for each input.
        search_trace: a list to fill with every candidate of every step, for each input.
        context: how many tokens a decoder-only model sees at once. A longer answer continues from the second half.

    >>> generate(model, [[5, 9, 2]], beam=4, length_penalty=0.6)
    """
    requests = create_requests(
        module,
        inputs,
        (config or GenerationConfig()).changed(**overrides),
        start=start,
        end=end,
        suppress_tokens=suppress_tokens,
        logit_bias=logit_bias,
        prefixes=prefixes,
        context=context,
    )
    if search_trace is not None:
        search_trace[:] = [[] for _ in requests]
        for request, trace in zip(requests, search_trace, strict=True):
            request.search_trace = trace
    return GenerationEngine(module, max_wait_steps=None).generate(requests)


def stream(
    module: Any,
    inputs: Sequence[int] | Tensor | EncoderMemory,
    config: GenerationConfig | None = None,
    *,
    start: int | None = 1,
    end: int | Sequence[int] = 2,
    suppress_tokens: Sequence[int] = (),
    logit_bias: Mapping[int, float] | None = None,
    prefix: Sequence[int] = (),
    context: int | None = None,
    **overrides: Unpack[GenerationOptions],
) -> Stream[int, Hypothesis]:
    """Stream the tokens of the best answer to one input, each as soon as it is certain: with a beam, when all agree.

    After the last token, the stream's `answer` is the whole answer. The arguments are those of `generate`.
    """
    (request,) = create_requests(
        module,
        [inputs],
        (config or GenerationConfig()).changed(**overrides),
        start=start,
        end=end,
        suppress_tokens=suppress_tokens,
        logit_bias=logit_bias,
        prefixes=[prefix],
        context=context,
    )
    return GenerationEngine(module).stream(request)


@contextmanager
def _evaluation(module: Any) -> Iterator[None]:
    """Turn dropout off inside, and restore the mode of every module afterwards."""
    parts = module.modules() if isinstance(module, nn.Module) else ()
    training = [part for part in parts if part.training]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
