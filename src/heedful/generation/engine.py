"""The engine: requests in, answers out. One loop serves `generate`, `stream`, predictors and the server."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from threading import Lock
from typing import Any, Generic, TypeVar, Unpack

import torch
from torch import Tensor, nn

from ..backends import prepare
from .batch import SequenceBatch, Starting
from .config import GenerationConfig, GenerationOptions
from .logits import LogitsProcessors
from .request import GenerationRequest, RequestState, create_requests
from .runners import EncoderMemory, new_runner
from .scheduler import Scheduler
from .sequence import Hypothesis, SearchStep, SequenceState
from .strategies import strategy_of

CPU_BUDGET, GPU_BUDGET = 4096, 1 << 16  # input tokens, times the beam, that run together unless a config says otherwise
ONLINE_WAIT = 4  # steps that a newcomer waits at most, where somebody waits for it

Item = TypeVar("Item")
Whole = TypeVar("Whole")


class Stream(Iterator[Item], Generic[Item, Whole]):
    """An answer item by item, each as soon as it is certain; once all have come, `answer` is the whole."""

    def __init__(self, items: Generator[Item, None, Whole]) -> None:
        self._items = items
        self.answer: Whole | None = None

    def __next__(self) -> Item:
        try:
            return next(self._items)
        except StopIteration as end:
            self.answer = self.answer or end.value
            raise

    def close(self) -> None:
        """Write no more."""
        self._items.close()


class GenerationEngine:
    """Decodes requests with continuous batching.

    >>> engine = GenerationEngine(model)
    >>> states = [engine.add_request(request) for request in requests]
    >>> while engine.has_unfinished_requests:
    ...     for state in engine.step():
    ...         print(state.request.index, state.certain_tokens())

    `add_request` and `abort` are safe in any thread. With several workers, each calls `step(worker)` in a thread of
    its own. What newcomers wait for at most, `max_wait_steps`, is a matter of latency: None is best for throughput.
    """

    def __init__(self, module: Any, *, n_workers: int = 1, max_wait_steps: int | None = ONLINE_WAIT) -> None:
        self.module = module
        tensor = next(module.parameters(), None) if isinstance(module, nn.Module) else None
        self.device = torch.device("cpu") if tensor is None else tensor.device
        self._max_wait_steps = max_wait_steps
        budget = GPU_BUDGET if self.device.type == "cuda" else CPU_BUDGET
        self._scheduler = Scheduler(self._new_batch, budget, n_workers, padded=max_wait_steps is None)
        self._states: dict[GenerationRequest, RequestState] = {}
        self._lock = Lock()

    def add_request(self, request: GenerationRequest) -> RequestState:
        """Queue a request; its state says what becomes of it."""
        state = RequestState(request)
        with self._lock:
            if request in self._states:
                raise ValueError(f"the request for input {request.index} is already being answered")
            self._states[request] = state
        self._scheduler.add(state.sequences)
        return state

    def abort(self, *requests: GenerationRequest) -> None:
        """Nobody waits for these any more: their rows are free at the next step. What has finished is left alone."""
        with self._lock:
            states = [state for request in requests if (state := self._states.pop(request, None)) is not None]
            sequences = [sequence for state in states for sequence in state.sequences]
            for sequence in sequences:
                sequence.aborted = True
        if sequences:
            self._scheduler.remove_aborted()

    def step(self, worker: int = 0) -> list[RequestState]:
        """One step of everything that this worker decodes; the requests that it changed, finished ones among them.

        A request that fails has an `error`, and the others go on.
        """
        return self._update(self._scheduler.step(worker))

    def fail_all(self, error: Exception, worker: int = 0) -> list[RequestState]:
        """End all that waits, or that this worker decodes, with an error."""
        dropped = self._scheduler.clear(worker)
        for sequence in dropped:
            sequence.fail(error)
        return self._update(dropped)

    def generate(self, requests: Sequence[GenerationRequest]) -> list[list[Hypothesis]]:
        """Answer all of them: each one's `n_best` hypotheses, best first. The first error is raised."""
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
        """The tokens of the best answer, each as soon as it is certain."""
        return Stream(self._tokens(request.as_stream()))

    @property
    def has_unfinished_requests(self) -> bool:
        """Whether anything is left to decode."""
        return self._scheduler.has_work

    def has_work_for(self, worker: int) -> bool:
        """Whether a step of this worker would do anything."""
        return self._scheduler.has_work_for(worker)

    @property
    def n_waiting(self) -> int:
        """Sequences that have not begun."""
        return self._scheduler.n_waiting

    @property
    def n_running(self) -> int:
        """Sequences that are being decoded."""
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
        """Hand the result of a step to its requests, and queue what goes on past its context."""
        updated: dict[RequestState, None] = {}  # once each, in order
        for sequence in sequences:
            state = self._states.get(sequence.request)
            if state is not None and (not sequence.finished or self._finish(state, sequence)):
                updated[state] = None
        for state in updated:
            if state.request.on_token is not None:
                state.request.on_token(state)
        return [*updated]

    def _finish(self, state: RequestState, sequence: SequenceState) -> bool:
        """Take a finished search; False where nobody waits for it any more."""
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
        """An empty batch for sequences with the settings of this one."""
        request, config = first.request, first.config
        model = prepare(self.module, config.precision)
        # A prepared copy has no dropout left; the module itself may be in training.
        guard = partial(_evaluation, self.module) if model.module is self.module else nullcontext

        def prefill(sequences: Sequence[SequenceState]) -> Starting:
            inputs = [sequence.inputs for sequence in sequences]
            return new_runner(self.module, model, inputs, request.start, self.device)

        processors = LogitsProcessors(config, request.end, request.suppress_tokens, request.logit_bias)
        strategy = strategy_of(config, len(request.end))
        return SequenceBatch(prefill, strategy, processors, guard=guard, max_wait_steps=self._max_wait_steps)


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
    """For each input its `n_best` answers, best first. The answer to an input does not depend on the others.

    Args:
        module: any model with a decoder.
        inputs: token ids exactly as the encoder should see them (with the end, where it was trained so), or the
            prompts of a decoder-only model. For encoders of something else: float tensors that the encoder's
            embedding takes, without their batch dimension, or an EncoderMemory each.
        config: the settings; keywords change them: beam, n_best, sample, temperature, precision …
        start: the token before every answer of an encoder-decoder; None for decoder-only models.
        end: the token that ends an answer, or several, or none: ().
        suppress_tokens: tokens that are never written.
        logit_bias: what is added to the logits of these tokens.
        prefixes: what the answers begin with, one for each input.
        search_trace: a list that is filled with every candidate of every step, for each input.
        context: how many tokens a decoder-only model sees at once; beyond, it goes on from the second half of them.

    >>> generate(model, [[5, 9, 2]], beam=4, length_penalty=0.6)
    """
    requests = create_requests(
        module,
        inputs,
        _changed(config, overrides),
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
    """The tokens of the best answer to one input, each as soon as it is certain: with a beam, when all agree.

    When the last has come, the stream's `answer` is the whole one. The arguments are those of `generate`.
    """
    (request,) = create_requests(
        module,
        [inputs],
        _changed(config, overrides),
        start=start,
        end=end,
        suppress_tokens=suppress_tokens,
        logit_bias=logit_bias,
        prefixes=[prefix],
        context=context,
    )
    return GenerationEngine(module).stream(request)


def _changed(config: GenerationConfig | None, overrides: GenerationOptions) -> GenerationConfig:
    config = GenerationConfig() if config is None else config
    return config.changed(**overrides) if overrides else config


@contextmanager
def _evaluation(module: Any) -> Iterator[None]:
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
