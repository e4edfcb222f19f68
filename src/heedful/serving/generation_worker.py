"""A worker for models that generate text: each text joins those that are being written, and leaves when it is done."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from threading import Lock
from typing import Any

from ..backends import prepare
from ..generation import GenerationConfig, GenerationEngine, GenerationRequest, Hypothesis, RequestState
from ..tasks.text_generator import Answer, EncodedTexts, IncrementalDetokenizer, TextGenerator, joined
from .settings import Settings
from .worker import CORE_BUDGET, AnswerStream, DeadlineExceeded, ModelWorker, StreamedToken, run_in_thread

CertainToken = tuple[int, float]  # a token and its logprob
NO_TOKEN = (-1, 0.0)  # for text that no token wrote
CHARACTERS = 4  # of a token, more or less


class GenerationWorker(ModelWorker):
    """Its threads step one generation engine. On a CPU there is one for each core."""

    def __init__(self, predictor: TextGenerator, settings: Settings) -> None:
        self._generator = predictor
        prepare(predictor.module, settings.precision)  # now: the first who asks need not wait for it
        on_cpu = all(weight.device.type == "cpu" for weight in predictor.module.parameters())
        self._n_threads = CORE_BUDGET.total if on_cpu else 1
        self._engine = GenerationEngine(predictor.module, n_workers=self._n_threads)
        super().__init__(predictor, settings)

    async def predict(self, items: Sequence[str]) -> list[str]:
        """The best answer to each text."""
        return [best.text for best, *_ in await self.candidates(items)]

    async def candidates(self, texts: Sequence[str], **options: Any) -> list[list[Answer]]:
        """What the generator's `candidates` gives."""
        config = self._config(options)
        async with self._deadline():
            with self._admission(len(texts)):
                size = sum(map(len, map(str, texts)))
                encoded, requests = await run_in_thread(size, self._requests, texts, config)
            hypotheses = await self._generate(requests)
            size = sum(len(each.tokens) for several in hypotheses for each in several)
            return await run_in_thread(CHARACTERS * size, self._generator.decode, encoded, hypotheses, config.n_best)

    def stream(self, text: str, **options: Any) -> AnswerStream:
        """The best answer, token by token; what it would refuse is refused with the first."""
        return AnswerStream(self._stream(text, options))

    @property
    def running(self) -> int:
        """Parts of texts that are being written."""
        return self._engine.n_running

    def _config(self, options: Mapping[str, Any]) -> GenerationConfig:
        return self._generator.generation_config({"precision": self._settings.precision, **options})

    def _requests(self, texts: Sequence[str], config: GenerationConfig) -> tuple[EncodedTexts, list[GenerationRequest]]:
        """It reads texts: not for the event loop."""
        encoded = self._generator.encode(texts)
        return encoded, self._generator.requests(encoded.ids, config)

    async def _generate(self, requests: Sequence[GenerationRequest]) -> list[list[Hypothesis]]:
        """All answers, written beside what others ask."""
        if not requests:
            return []
        pending = _Pending(requests)
        try:
            self._enqueue(lambda: [self._engine.add_request(request) for request in requests])
            return await asyncio.wrap_future(pending.future)
        finally:
            self._engine.abort(*requests)

    async def _stream(self, text: str, options: Mapping[str, Any]) -> AsyncGenerator[StreamedToken | Answer, None]:
        until = asyncio.get_running_loop().time() + self._settings.seconds
        with self._admission(1):
            config = self._config(options)
            encoded, requests = await asyncio.to_thread(self._requests, [text], config)
            requests = [request.as_stream() for request in requests]
        done: list[Answer] = []
        for ids, request in zip(encoded.ids, requests, strict=True):
            tokens = _CertainTokens(request)
            spelling = _TokenTexts(self._generator.detokenizer(ids), " " if done else "")
            try:
                self._enqueue(partial(self._engine.add_request, request))
                while not isinstance(item := await tokens.next(until), Hypothesis):
                    for token in spelling.add(*item):
                        yield token
            finally:
                self._engine.abort(request)
            done.append(self._generator.answer(ids, item))
            for token in spelling.rest(done[-1].text):
                yield token
        yield joined(done)

    # The threads

    def _n_queued(self) -> int:
        return self._engine.n_waiting

    def _has_work(self, thread: int) -> bool:
        return self._engine.has_work_for(thread)

    def _step(self, thread: int) -> None:
        self._engine.step(thread)

    def _fail_all(self, error: Exception, thread: int) -> None:
        self._engine.fail_all(error, thread)


class _Pending:
    """The answers to several requests, once all of them are there. The engine's threads report to it."""

    def __init__(self, requests: Sequence[GenerationRequest]) -> None:
        self.future: Future[list[list[Hypothesis]]] = Future()
        self.future.set_running_or_notify_cancel()  # who stops waiting aborts the requests
        self._requests = requests
        self._hypotheses: dict[GenerationRequest, list[Hypothesis]] = {}
        self._lock = Lock()
        for request in requests:
            request.on_token = self._on_token

    def _on_token(self, state: RequestState) -> None:
        if not state.finished:
            return
        with self._lock:
            if self.future.done():
                return
            if state.error is not None:
                self.future.set_exception(state.error)
                return
            self._hypotheses[state.request] = state.hypotheses
            if len(self._hypotheses) == len(self._requests):
                self.future.set_result([self._hypotheses[request] for request in self._requests])


class _CertainTokens:
    """The certain tokens of one answer, brought from the engine's thread to the event loop, and at last the answer.

    A reader who is slow holds nobody up: what waits for it is never more than the answer.
    """

    def __init__(self, request: GenerationRequest) -> None:
        self._queue: asyncio.Queue[CertainToken | Hypothesis | Exception] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._n_sent = 0
        request.on_token = self._on_token

    async def next(self, until: float) -> CertainToken | Hypothesis:
        """The next token with its logprob, or the whole answer; DeadlineExceeded where it does not come in time."""
        try:
            async with asyncio.timeout_at(until):
                item = await self._queue.get()
        except TimeoutError:
            raise DeadlineExceeded from None
        if isinstance(item, Exception):
            raise item
        return item

    def _on_token(self, state: RequestState) -> None:
        """In the engine's thread: after a step."""
        if state.error is not None:
            self._send([state.error])
            return
        new = [*zip(state.certain_tokens(), state.certain_logprobs(), strict=True)][self._n_sent :]
        self._n_sent += len(new)
        self._send([*new, *(state.hypotheses[:1] if state.finished else ())])

    def _send(self, items: Sequence[CertainToken | Hypothesis | Exception]) -> None:
        if items and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._receive, items)

    def _receive(self, items: Sequence[CertainToken | Hypothesis | Exception]) -> None:
        for item in items:
            self._queue.put_nowait(item)


class _TokenTexts:
    """Tokens with their text. One that completes no character waits for those that do."""

    def __init__(self, detokenizer: IncrementalDetokenizer, before: str) -> None:
        self._detokenizer = detokenizer
        self._before = before  # the space after another part of the text
        self._held: list[CertainToken] = []

    def add(self, token: int, logprob: float) -> Iterator[StreamedToken]:
        """The tokens whose text is complete now."""
        self._held.append((token, logprob))
        text = self._detokenizer.add(token)
        return self._released(text) if text else iter(())

    def rest(self, whole: str) -> Iterator[StreamedToken]:
        """What was held back to the end, with what is missing of the whole."""
        text = self._detokenizer.rest(whole)
        return self._released(text) if self._held or self._before or text else iter(())

    def _released(self, text: str) -> Iterator[StreamedToken]:
        *held, (last, logprob) = self._held or [NO_TOKEN]
        self._held = []
        for token in held:
            yield StreamedToken("", *token)
        yield StreamedToken(self._before + text, last, logprob)
        self._before = ""
