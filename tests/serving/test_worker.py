"""Workers: concurrent requests are answered as single ones, limits hold, cancelled requests free their place."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest
import torch

from every_task import classifier, embedder, forecaster, image_classifier, language_model, translator
from heedful.errors import ConfigError, HeedfulError
from heedful.generation import GenerationConfig
from heedful.serving.errors import DeadlineExceeded, Overloaded
from heedful.serving.models import Served
from heedful.serving.settings import Settings
from heedful.serving.worker import CORE_BUDGET, Closed, ModelWorker
from heedful.tasks.predictor import ItemError
from heedful.tasks.text_generator import Answer, TextGenerator

ENOUGH = 30.0  # seconds for what takes none
TERMS = [
    "the",
    "cat",
    "reads",
    "a",
    "book",
    "by",
    "sea",
    "I",
    "drink",
    "water",
    "in",
    "garden",
    "and",
    "she",
    "plays",
]
TEXTS = [" ".join(TERMS[(5 * n + step) % 15] for step in range(1 + n % 12)) for n in range(50)]
WAYS: list[dict[str, Any]] = [
    {},
    {"beam": 1},
    {"beam": 3, "n_best": 2},
    {"sample": True, "seed": 3, "top_p": 0.9},
    {"sample": True, "seed": 4, "top_p": 0.9, "max_new_tokens": 5},
]


@contextmanager
def opened(predictor: Any, **limits: Any) -> Iterator[ModelWorker]:
    worker = Served.of("model", predictor, Settings(**limits)).worker
    try:
        yield worker
    finally:
        worker.close()


class BlockedWorker:
    """The model's thread stands still until it is let go."""

    def __init__(self, worker: ModelWorker) -> None:
        self.entered, self.released = threading.Event(), threading.Event()
        self._task = asyncio.create_task(worker.call(self._stand_still))

    def _stand_still(self) -> bool:
        self.entered.set()
        return self.released.wait(ENOUGH)

    async def __aenter__(self) -> None:
        assert await asyncio.to_thread(self.entered.wait, ENOUGH)

    async def __aexit__(self, *error: object) -> None:
        self.released.set()
        await asyncio.wait([self._task])


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(ENOUGH):
        while not holds():
            await asyncio.sleep(0)


def translating() -> Any:
    """A translator whose answers have different lengths."""
    model: Any = translator("en", "ko")
    model.settings = replace(model.settings, generation=GenerationConfig(max_new_tokens=30, beam=2))
    with torch.no_grad():
        model.module.head.weight[model.target_tokenizer.end] *= -6
    return model


def continuing() -> Any:
    """A language model whose answers have different lengths: many tokens end them."""
    model = language_model()
    model.settings = replace(model.settings, tokens=replace(model.settings.tokens, end=(2, *range(60, 90))))
    return model


def rolling() -> Any:
    """A language model that writes past its context: each answer takes several rounds."""
    model = endless()
    model.settings = replace(model.settings, context=32, generation=GenerationConfig(max_new_tokens=40))
    return model


def endless() -> Any:
    """A language model whose answers end at their limit only."""
    model = language_model()
    model.settings = replace(model.settings, tokens=replace(model.settings.tokens, end=()))
    return model


@pytest.mark.parametrize("make", [translating, continuing, rolling])
def test_concurrent_requests_are_answered_as_single_ones(
    make: Callable[[], TextGenerator],
) -> None:
    predictor = make()
    asks = list(zip(TEXTS, cycle(WAYS)))
    single = [predictor.candidates([text], **options)[0] for text, options in asks]

    async def crowd(worker: ModelWorker) -> list[Any]:
        tasks = [asyncio.create_task(worker.candidates([text], **options)) for text, options in asks]
        await until(lambda: worker.running > 0)
        for task in tasks[::7]:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        await until(lambda: (worker.waiting, worker.running) == (0, 0))
        return results

    with opened(predictor) as worker:
        results = asyncio.run(crowd(worker))
        batched = asyncio.run(worker.candidates(TEXTS[:9], sample=True, seed=1))
    assert batched == predictor.candidates(TEXTS[:9], sample=True, seed=1)
    gone = sum(isinstance(outcome, asyncio.CancelledError) for outcome in results)
    assert 0 < gone <= 8
    for outcome, answers in zip(results, single, strict=True):
        assert isinstance(outcome, asyncio.CancelledError) or outcome == [answers]
    lengths = {answers[0].n_tokens for answers in single}
    assert max(lengths) > 32 if make is rolling else len(lengths) > 3


@pytest.mark.parametrize("make", [translating, continuing, rolling])
def test_a_stream_has_the_tokens_of_the_answer(make: Callable[[], Any]) -> None:
    predictor = make()
    if predictor.task == "translation":
        predictor.settings = predictor.settings.changed(one_sentence=True)
    texts = ["The cat reads. I drink water in the garden. She plays!", "a book", "고양이"]

    async def streamed(worker: ModelWorker, text: str, **options: Any) -> tuple[list[Any], Any]:
        *batches, answer = [item async for item in worker.stream(text, **options)]
        return [token for batch in batches if isinstance(batch, list) for token in batch], answer

    async def all_of_them(worker: ModelWorker) -> list[Any]:
        return await asyncio.gather(*(streamed(worker, text, **options) for text in texts for options in WAYS[1:]))

    with opened(predictor) as worker:
        results = asyncio.run(all_of_them(worker))
    asks = [(text, options) for text in texts for options in WAYS[1:]]
    for (text, options), (tokens, answer) in zip(asks, results, strict=True):
        reference = predictor.stream(text, **options)
        assert "".join(token.text for token in tokens) == "".join(reference)
        assert answer == reference.answer
        written: list[tuple[int, float]] = []
        for ids in predictor.inputs(text):
            part = predictor.stream_tokens(ids, predictor.generation_config(options))
            visible = [*part]
            assert part.answer is not None
            written += zip(visible, part.answer.token_logprobs, strict=False)  # an end is not shown
        assert [token.id for token in tokens] == [token for token, _ in written]
        assert [token.logprob for token in tokens] == pytest.approx([logprob for _, logprob in written], abs=1e-5)


def ids_of(predictor: TextGenerator, text: str, **options: Any) -> list[int]:
    """Return the tokens of the best answer, generated without a server."""
    ((best, *_),) = predictor.generate(predictor.inputs(text), predictor.generation_config(options))
    return list(best.tokens)


def test_closing_a_stream_frees_its_place_and_a_slow_reader_delays_nobody() -> None:
    predictor = endless()

    async def leaving(worker: ModelWorker) -> list[Any]:
        slow, leaves = worker.stream("the cat", max_new_tokens=40), worker.stream("a book", max_new_tokens=40)
        first = await anext(slow)
        await anext(leaves)
        await leaves.aclose()
        others = await asyncio.gather(*(worker.candidates([text], max_new_tokens=40) for text in TEXTS[:5]))
        assert len(others) == 5
        await until(lambda: (worker.waiting, worker.running) == (0, 0))  # the slow one's answer waits for it
        rest, answer = [item async for item in slow]  # all that came meanwhile is one batch
        assert isinstance(first, list)
        assert isinstance(rest, list)
        assert isinstance(answer, Answer)
        return [*first, *rest]

    with opened(predictor) as worker:
        tokens = asyncio.run(leaving(worker))
    assert [token.id for token in tokens] == ids_of(predictor, "the cat", max_new_tokens=40)


READERS: dict[str, tuple[Callable[[], Any], list[Any], Any]] = {
    "classifier": (classifier, TEXTS, 7),
    "embedder": (embedder, TEXTS, None),
    "images": (image_classifier, [torch.rand(16, 16, 1).numpy() for _ in range(12)], torch.rand(4, 4, 7).numpy()),
    "forecaster": (forecaster, [[float((n * m) % 17) for m in range(48 + n)] for n in range(12)], [1.0, 2.0]),
}


def nearly(results: Any, wanted: Any) -> None:
    if isinstance(wanted, dict):
        assert results == pytest.approx(wanted, abs=1e-5)
        assert list(results) == list(wanted)
    else:
        torch.testing.assert_close(torch.tensor(results), torch.tensor(wanted), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", READERS)
def test_batched_requests_get_their_own_answers_whatever_others_send(name: str) -> None:
    make, items, bad = READERS[name]
    predictor = make()
    calls: list[int] = []
    predict = predictor.predict_valid

    def noted(arguments: list[Any]) -> list[Any]:
        calls.append(len(arguments))
        results: list[Any] = predict(arguments)
        return results

    predictor.predict_valid = noted
    asks = [items[first : first + 1 + first % 3] for first in range(len(items) - 2)]

    async def crowd(worker: ModelWorker) -> list[Any]:
        async with BlockedWorker(worker):
            tasks = [asyncio.create_task(worker.predict(ask)) for ask in asks]
            refused = asyncio.create_task(worker.predict([items[0], bad]))
            with pytest.raises(ItemError) as error:
                await refused
            assert error.value.index == 1
            assert error.value.reason == predictor.validation_error(bad)
            await until(lambda: worker._engine.n_waiting == worker.waiting == sum(map(len, asks)))
            tasks[0].cancel()
            await asyncio.wait([tasks[0]])
            assert worker.waiting == sum(map(len, asks[1:]))
        results = await asyncio.gather(*tasks[1:])
        assert (worker.waiting, worker.running) == (0, 0)
        return results

    with opened(predictor) as worker:
        results = asyncio.run(crowd(worker))
    assert 0 < len(calls) <= 1 + sum(calls) // 32
    for answers, ask in zip(results, asks[1:], strict=True):
        for answer, wanted in zip(answers, predict(ask), strict=True):
            nearly(answer, wanted)


def test_what_fails_only_when_it_is_read_fails_alone() -> None:
    predictor = forecaster()
    fine, huge = [float(n % 5) for n in range(48)], [(-1.0) ** n * 1e308 for n in range(48)]
    assert predictor.validation_error(huge) is None

    async def both(worker: ModelWorker) -> list[Any]:
        async with BlockedWorker(worker):
            tasks = [asyncio.create_task(worker.predict([fine, outcome])) for outcome in (fine, huge, fine)]
            await until(lambda: worker._engine.n_waiting == 6)
        return await asyncio.gather(*tasks, return_exceptions=True)

    with opened(predictor) as worker:
        first, failed, last = asyncio.run(both(worker))
    assert isinstance(failed, ItemError)
    assert failed.index == 1
    assert first == last == predictor.predict([fine, fine])


@pytest.mark.parametrize("make", [translating, classifier])
def test_too_many_items_are_refused_at_once_and_slow_ones_time_out(make: Callable[[], Any]) -> None:
    async def full(worker: ModelWorker) -> None:
        async with BlockedWorker(worker):
            inside = [asyncio.create_task(worker.predict(TEXTS[: 1 + n])) for n in range(6)]
            await until(lambda: worker.waiting == 21)  # of each request only a share of its items counts
            for count in (1, 3):
                with pytest.raises(Overloaded) as busy:
                    await worker.predict(TEXTS[:count])
                assert (busy.value.retry_after or 0) >= 1
            with pytest.raises(Overloaded):
                await worker.call(lambda: None)
        assert [len(answers) for answers in await asyncio.gather(*inside)] == [1, 2, 3, 4, 5, 6]
        assert len(await worker.predict(TEXTS[:9])) == 9  # more than may wait, but nothing else does

    async def late(worker: ModelWorker) -> None:
        blocked = BlockedWorker(worker)
        with pytest.raises(DeadlineExceeded):
            await worker.predict(TEXTS[:1])
        with pytest.raises(DeadlineExceeded):
            await worker.call(lambda: None)
        assert worker.waiting == 0
        blocked.released.set()

    with opened(make(), max_waiting=6) as worker:
        asyncio.run(full(worker))
    with opened(make(), seconds=0.05) as worker:
        asyncio.run(late(worker))


def test_several_threads_answer_as_one_does_and_leave_the_model_to_who_asks_for_it_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CORE_BUDGET, "total", 3)
    model, texts = translating(), [f"{text} {number}" for number in range(9) for text in TEXTS[:4]]
    single = model.predict(texts)
    begun: list[int] = []  # steps, by the thread that took them
    during: list[int] = []  # how many began or ended while somebody had the model alone
    ended: list[int] = []

    def moment() -> None:
        before = len(begun) + len(ended)
        threading.Event().wait(0.02)  # time enough for several
        during.append(len(begun) + len(ended) - before)

    async def crowd(worker: ModelWorker) -> list[list[str]]:
        step = worker._engine.step

        def calls_of(thread: int) -> None:
            begun.append(thread)
            step(thread)
            ended.append(thread)

        monkeypatch.setattr(worker._engine, "step", calls_of)
        requested = [asyncio.create_task(worker.predict([text])) for text in texts]
        for _ in range(5):
            await worker.call(moment)
        return await asyncio.gather(*requested)

    with opened(model) as worker:
        assert [answer for (answer,) in asyncio.run(crowd(worker))] == single
    assert len({*begun}) > 1
    assert during == [0] * 5


@pytest.mark.parametrize("make", [translating, classifier])
def test_closing_ends_the_thread_and_tells_who_waits(make: Callable[[], Any]) -> None:
    async def closed(worker: ModelWorker) -> list[Any]:
        async with BlockedWorker(worker):
            tasks: list[Awaitable[Any]] = [asyncio.create_task(worker.predict([text])) for text in TEXTS[:4]]
            await until(lambda: worker.waiting == 4)
            tasks.append(asyncio.create_task(worker.call(lambda: None)))
            await until(lambda: worker.waiting == 5)
            closing = asyncio.create_task(asyncio.to_thread(worker.close))
            await until(lambda: worker._closed)
        await closing
        with pytest.raises(Closed):
            await worker.predict(TEXTS[:1])
        return await asyncio.gather(*tasks, return_exceptions=True)

    with opened(make()) as worker:
        results = asyncio.run(closed(worker))
        assert not any(thread.is_alive() for thread in worker._threads)
    assert [type(outcome) for outcome in results] == [Closed] * 5


def test_invalid_requests_fail_before_anything_is_queued() -> None:
    async def mistakes(worker: ModelWorker, reading: ModelWorker) -> None:
        with pytest.raises(ItemError, match="text 2"):
            await worker.candidates(["a", "the cat " * 40])
        with pytest.raises(ConfigError, match="did you mean 'beam'"):
            await worker.candidates(["a"], beams=3)
        with pytest.raises(ConfigError, match="several samples"):
            await anext(worker.stream("a", sample=True, n_best=2))
        with pytest.raises(HeedfulError, match="does not generate text"):
            await reading.candidates(["a"])
        with pytest.raises(ZeroDivisionError):
            await worker.call(lambda: 1 / 0)
        assert await worker.call(lambda: threading.current_thread() is not threading.main_thread())
        assert await worker.candidates([]) == []
        assert await reading.predict([]) == []
        assert (worker.waiting, worker.running) == (0, 0)

    with opened(language_model()) as worker, opened(classifier()) as reading:
        asyncio.run(mistakes(worker, reading))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness for each thread")
def test_model_threads_have_a_lower_priority_than_the_event_loop() -> None:
    reference = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    with opened(classifier()) as worker:
        worker_niceness = asyncio.run(worker.call(lambda: os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
    assert worker_niceness == min(19, reference + 10)
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == reference
