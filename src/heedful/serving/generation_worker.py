"""The worker of a model that generates text. New texts join the running batch (continuous batching)."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from functools import partial
from typing import Any

from ..backends import prepare
from ..generation import GenerationConfig, GenerationEngine, GenerationRequest, Hypothesis, RequestState
from ..tasks.predictor import Errors, ItemError
from ..tasks.text_generator import Answer, IncrementalDetokenizer, TextGenerator, TextParts, joined
from .errors import DeadlineExceeded
from .fair_queue import FairQueue
from .settings import Settings
from .threads import run_in_thread
from .work import CHARACTERS, current_work
from .worker import CORE_BUDGET, ModelWorker, StreamedToken

FinalToken = tuple[int, float]  # a token that will not change any more, and its logprob
NO_TOKEN = (-1, 0.0)  # for text that belongs to no token


class GenerationWorker(ModelWorker):
    """The worker of a text generator: its threads step one engine. On a CPU there is one thread for each core."""

    _predictor: TextGenerator
    _engine: GenerationEngine

    def __init__(self, predictor: TextGenerator, settings: Settings) -> None:
        prepare(predictor.module, settings.precision)  # now, so that the first request need not wait for it
        on_cpu = all(weight.device.type == "cpu" for weight in predictor.module.parameters())
        n_threads = CORE_BUDGET.total if on_cpu else 1
        engine = GenerationEngine(predictor.module, n_workers=n_threads)
        self._queue = FairQueue(engine)
        super().__init__(predictor, settings, engine, n_threads)

    @property
    def waiting(self) -> int:
        return super().waiting + self._queue.n_waiting

    def _n_ahead(self, most: int) -> int:
        return min(self.waiting, self._n_admitted + len(self._jobs) + self._queue.n_unfinished(most))

    async def predict(self, items: Sequence[str], *, errors: Errors = "raise") -> list[str | ItemError]:
        """Return the best answer to each text."""
        several = await self.candidates(items, errors=errors)
        return [answers if isinstance(answers, ItemError) else answers[0].text for answers in several]

    async def candidates(self, texts: Sequence[str], *, errors: Errors = "raise", **options: Any) -> list[Any]:
        config, work = self._config(options), current_work()
        async with self._deadline():
            with self._admission(len(texts)):
                size = sum(map(len, map(str, texts)))
                refused, encoded, requests = await run_in_thread(size, self._requests, texts, config, errors)
                work.add(sum(map(_work, requests)))
            futures = [asyncio.wrap_future(_hypotheses(request)) for request in requests]
            try:
                self._enqueue(partial(self._queue.add, work, requests))
                hypotheses = await asyncio.gather(*futures)
            finally:
                self._queue.abort(work, requests)
            size = sum(len(each.tokens) for several in hypotheses for each in several)
            decode = self._predictor.decode
            answers = await run_in_thread(CHARACTERS * size, decode, encoded, hypotheses, config.n_best)
            return self._predictor.in_places(answers, refused, errors)

    async def stream(self, text: str, **options: Any) -> AsyncGenerator[list[StreamedToken] | Answer, None]:
        until, work = asyncio.get_running_loop().time() + self._settings.seconds, current_work()
        with self._admission(1):
            config = self._config(options)
            _, (parts,), requests = await run_in_thread(None, self._requests, [text], config)
            requests = [request.as_stream() for request in requests]
            work.add(sum(map(_work, requests)))
        answers: list[Answer] = []
        for ids, gap, request in zip(parts.ids, parts.gaps, requests, strict=False):
            updates = _TokenUpdates(request)
            texts = _TokenTexts(self._predictor.detokenizer(ids), gap)
            hypothesis: Hypothesis | None = None
            try:
                self._enqueue(partial(self._queue.add, work, [request]))
                while hypothesis is None:
                    tokens, hypothesis = await updates.next(until)
                    if batch := [complete for token in tokens for complete in texts.add(*token)]:
                        yield batch
            finally:
                self._queue.abort(work, [request])
            answers.append(self._predictor.answer(ids, hypothesis))
            if batch := list(texts.rest(answers[-1].text)):
                yield batch
        if parts.gaps[-1]:
            yield [StreamedToken(parts.gaps[-1], *NO_TOKEN)]
        yield joined(answers, parts.gaps)

    def _config(self, options: Mapping[str, Any]) -> GenerationConfig:
        return self._predictor.generation_config({"precision": self._settings.precision, **options})

    def _requests(
        self, texts: Sequence[str], config: GenerationConfig, errors: Errors = "raise"
    ) -> tuple[dict[int, str], list[TextParts], list[GenerationRequest]]:
        """Tokenize texts and make requests of all that are not refused; too slow for the event loop."""
        refused = self._predictor.refusals(texts) if errors == "return" else {}
        encoded = self._predictor.encode(text for index, text in enumerate(texts) if index not in refused)
        return refused, encoded, self._predictor.requests([ids for text in encoded for ids in text.ids], config)


def _work(request: GenerationRequest) -> int:
    """Return the most tokens that a request may need: those that are read, and those of all answers."""
    return request.input_length + request.config.width * request.limit


def _hypotheses(request: GenerationRequest) -> Future[list[Hypothesis]]:
    """Return a future of a request's hypotheses, which the engine's threads set."""
    future: Future[list[Hypothesis]] = Future()
    future.set_running_or_notify_cancel()  # from now on it cannot be cancelled; the request is aborted instead

    def on_token(state: RequestState) -> None:
        if not state.finished:
            return
        with suppress(InvalidStateError):  # two threads may report the end
            if state.error is None:
                future.set_result(state.hypotheses)
            else:
                future.set_exception(state.error)

    request.on_token = on_token
    return future


class _TokenUpdates:
    """Collects the final tokens of one answer from the engine's threads for the event loop, and the answer itself.

    A slow reader delays nobody: it gets everything since its last call at once.
    """

    def __init__(self, request: GenerationRequest) -> None:
        self._tokens: list[FinalToken] = []
        self._hypothesis: Hypothesis | None = None
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._n_sent = 0
        request.on_token = self._on_token

    async def next(self, until: float) -> tuple[list[FinalToken], Hypothesis | None]:
        """Wait for new tokens, and return them with the hypothesis if it is finished.

        Raises:
            DeadlineExceeded: There is nothing new at the time `until`.
        """
        try:
            async with asyncio.timeout_at(until):
                await self._changed.wait()
        except TimeoutError:
            raise DeadlineExceeded from None
        if self._error is not None:
            raise self._error
        tokens, self._tokens = self._tokens, []
        self._changed.clear()
        return tokens, self._hypothesis

    def _on_token(self, state: RequestState) -> None:
        """Send what is new; called in the engine's thread after each step."""
        tokens = []
        if state.error is None:
            tokens = [*zip(state.certain_tokens(), state.certain_logprobs(), strict=True)][self._n_sent :]
            self._n_sent += len(tokens)
        if (tokens or state.finished or state.error) and not self._loop.is_closed():
            hypothesis = state.hypotheses[0] if state.finished and state.error is None else None
            self._loop.call_soon_threadsafe(self._receive, tokens, hypothesis, state.error)

    def _receive(self, tokens: list[FinalToken], hypothesis: Hypothesis | None, error: Exception | None) -> None:
        self._tokens += tokens
        self._hypothesis, self._error = hypothesis, error
        self._changed.set()


class _TokenTexts:
    """Detokenizes a stream. A token that completes no character waits for one that does."""

    def __init__(self, detokenizer: IncrementalDetokenizer, prefix: str) -> None:
        self._detokenizer = detokenizer
        self._prefix = prefix  # a space after an earlier part of the text
        self._pending: list[FinalToken] = []

    def add(self, token: int, logprob: float) -> Iterator[StreamedToken]:
        """Add a token and return those whose text is complete now."""
        self._pending.append((token, logprob))
        text = self._detokenizer.add(token)
        return self._release(text) if text else iter(())

    def rest(self, whole: str) -> Iterator[StreamedToken]:
        """Return the pending tokens, with the text that is still missing of the whole answer."""
        text = self._detokenizer.rest(whole)
        return self._release(text) if self._pending or self._prefix or text else iter(())

    def _release(self, text: str) -> Iterator[StreamedToken]:
        *pending, (last, logprob) = self._pending or [NO_TOKEN]
        self._pending = []
        for token in pending:
            yield StreamedToken("", *token)
        yield StreamedToken(self._prefix + text, last, logprob)
        self._prefix = ""
