"""Large requests are worked on in slices, beside small ones that come later; budgets limit a request and a client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from running import ENOUGH, Running, in_thread
from test_crowd import blocked, until

from every_task import classifier
from heedful.generation import GenerationConfig, GenerationRequest
from heedful.serving.batch_engine import MAX_BATCH, MAX_SLICE, BatchEngine, BatchRequest
from heedful.serving.errors import APIError
from heedful.serving.fair_queue import FairQueue
from heedful.serving.settings import Settings
from heedful.serving.work import RequestWork, WorkBudget, current_work

Serving = Callable[..., Running]


class RecordingEngine:
    """Has a budget of 4096, so that a request with a beam of 4 costs a sixty-fourth; it finishes what it is told to."""

    budget = 4096

    def __init__(self) -> None:
        self.decoding: list[GenerationRequest] = []
        self.aborted: list[GenerationRequest] = []

    def add_request(self, request: GenerationRequest) -> None:
        self.decoding.append(request)

    def abort(self, *requests: GenerationRequest) -> None:
        self.aborted += requests

    def finish(self, request: GenerationRequest) -> None:
        self.decoding.remove(request)
        state: Any = type("State", (), {"finished": True, "error": None})
        assert request.on_token is not None
        request.on_token(state)


def requests(count: int, **config: Any) -> list[GenerationRequest]:
    settings = GenerationConfig(beam=4, **config)
    return [GenerationRequest(inputs=(1,), config=settings, limit=9, index=index) for index in range(count)]


def queue_of(engine: RecordingEngine) -> FairQueue:
    any_engine: Any = engine
    return FairQueue(any_engine)


def test_a_large_request_is_admitted_in_slices_and_a_small_one_is_scheduled_between_them() -> None:
    engine = RecordingEngine()
    queue = queue_of(engine)
    large, small = requests(128), requests(2)
    queue.add(RequestWork(), large)
    assert engine.decoding == large[:16]  # a quarter of the budget
    assert queue.n_waiting == 112
    queue.add(RequestWork(), small)
    assert engine.decoding == [*large[:16], *small]  # not behind the rest of the large one
    for request in large[:3]:
        engine.finish(request)
    assert engine.decoding == [*large[3:16], *small, *large[16:19]]
    while engine.decoding:
        engine.finish(engine.decoding[0])
    assert (queue.n_waiting, queue.n_unfinished(99), queue._used.total()) == (0, 0, 0)


def test_large_requests_take_turns_and_leave_room_for_small_ones() -> None:
    engine = RecordingEngine()
    queue = queue_of(engine)
    for _ in range(8):
        queue.add(RequestWork(), requests(100))
    assert len(engine.decoding) == 16 + 16 + 6 * 4  # two quarters, then only what anyone may have
    engine.finish(engine.decoding[-1])
    assert len(engine.decoding) == 16 + 16 + 6 * 4
    small = requests(4)
    queue.add(RequestWork(), small)
    assert engine.decoding[-4:] == small
    wide = GenerationRequest(inputs=(1,), config=GenerationConfig(beam=4), limit=9, input_length=5000)
    queue.add(RequestWork(), [wide])  # larger than any share
    assert engine.decoding[-1] is wide


def test_what_is_aborted_leaves_the_queue_and_the_engine() -> None:
    engine, owner = RecordingEngine(), RequestWork()
    queue = queue_of(engine)
    large, other = requests(40), requests(3)
    queue.add(owner, large)
    queue.add(owner, other)
    queue.add(owner, [])
    queue.abort(owner, large)
    assert set(engine.aborted) == set(large)
    assert [request for request in engine.decoding if request not in large] == other
    assert (queue.n_waiting, queue.n_unfinished(99), queue.n_unfinished(2)) == (0, 3, 2)


def test_a_large_request_does_not_keep_others_out(serving: Serving) -> None:
    running = serving("en-ko", max_waiting=32)
    worker = running.state.models["en-ko"].worker
    large = {"q": [f"the cat {number}" for number in range(100)], "source": "en", "target": "ko"}
    small = {"q": "the sea", "source": "en", "target": "ko"}
    with blocked(worker):
        first = in_thread(running.ask, "/translate", large)
        until(running, lambda: worker.waiting >= 100)
        second = in_thread(running.ask, "/translate", small)
        until(running, lambda: worker.waiting >= 101)
    assert [answer.result(ENOUGH).status for answer in (first, second)] == [200, 200]


def test_a_batch_takes_a_slice_of_each_request_and_errors_name_their_item(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = classifier()
    batches: list[list[str]] = []
    predict = predictor.predict_valid

    def recorded(items: list[str]) -> list[Any]:
        batches.append(list(items))
        if "bad" in items:
            raise predictor_error(items.index("bad"))
        results: list[Any] = predict(items)
        return results

    def predictor_error(index: int) -> Exception:
        from heedful.tasks.predictor import ItemError

        return ItemError("text", index, "it is bad")

    monkeypatch.setattr(predictor, "predict_valid", recorded)
    engine = BatchEngine(predictor)
    large = BatchRequest([f"the cat {number}" for number in range(100)])
    small, failing = BatchRequest(["the sea"]), BatchRequest(["a"] * 20 + ["bad"])
    for request in (large, small, failing):
        engine.add_request(request)
    assert (engine.n_waiting, engine.n_ahead(10)) == (122, 21)
    engine.step(0)
    assert batches[0][: MAX_SLICE + 1] == [*large.items[:MAX_SLICE], "the sea"]
    assert len(batches[0]) == MAX_BATCH or "bad" in batches[0]
    assert small.future.done()
    while engine.has_work_for(0):
        engine.step(0)
    error: Any = failing.future.exception()
    assert (error.index, error.reason) == (20, "it is bad")
    assert large.future.result() == predict(large.items)
    assert engine.n_waiting == 0


def test_long_texts_count_as_several_in_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = classifier()
    batches: list[int] = []

    def answers(items: list[Any]) -> list[Any]:
        batches.append(len(items))
        return [{}] * len(items)

    monkeypatch.setattr(predictor, "predict_valid", answers)
    engine = BatchEngine(predictor)
    engine.add_request(BatchRequest(["x" * 16_000] * 10))  # 4000 tokens each, as many as 15 short ones
    while engine.has_work_for(0):
        engine.step(0)
    assert batches == [5, 5]


def test_work_is_counted_for_a_request_and_for_all_of_a_client() -> None:
    budget = WorkBudget(Settings(max_work=100, max_client_work=150))
    with budget.request("a"):
        current_work().add(60)
        with pytest.raises(APIError, match=r"needs up to 110 tokens of work, but a request may need 100") as refused:
            current_work().add(50)
        assert refused.value.status == 400
        current_work().add(40)
        with budget.request("a"):
            with pytest.raises(APIError, match="your other requests") as refused:
                current_work().add(60)
            assert refused.value.status == 429
            current_work().add(50)
        with budget.request("b"):
            current_work().add(100)
    assert not budget._tokens
    current_work().add(10**9)  # outside of any request there is no budget


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/predict/en-ko", {"inputs": ["the cat"] * 5, "beam": 4, "max_new_tokens": 1000}),
        ("/v1/predict/feelings", {"inputs": ["the cat " * 2000]}),
        ("/v1/completions", {"model": "writer", "prompt": ["a"] * 60, "max_tokens": 1000, "n": 2}),
    ],
)
def test_a_request_that_needs_too_much_work_is_refused(path: str, body: Any, serving: Serving) -> None:
    running = serving("en-ko", "feelings", "writer", max_work=3000)
    answer = running.ask(path, body)
    assert (answer.status, answer.json["error"]["code"]) == (400, "too_much_work"), answer.body
    assert running.state.metrics.running == 0


def test_a_clients_work_is_limited_by_its_key(serving: Serving) -> None:
    running = serving("en-ko", max_work=400, max_client_work=500, api_keys=("one", "two"))
    worker = running.state.models["en-ko"].worker
    body = {"inputs": ["the cat"], "beam": 4, "max_new_tokens": 90}
    with blocked(worker):
        first = in_thread(running.ask, "/v1/predict/en-ko", body, Authorization="Bearer one")
        until(running, lambda: worker.waiting >= 1)
        refused = running.ask("/v1/predict/en-ko?api_key=one", body)
        assert (refused.status, refused.json["error"]["code"]) == (429, "rate_limit_exceeded")
        assert int(refused.headers["retry-after"]) >= 1
        other = in_thread(running.ask, "/v1/predict/en-ko", body, Authorization="Bearer two")
        until(running, lambda: worker.waiting >= 2)
    assert [answer.result(ENOUGH).status for answer in (first, other)] == [200, 200]
    assert running.ask("/v1/predict/en-ko", body, Authorization="Bearer one").status == 200


def test_a_stream_that_runs_out_of_time_ends_with_an_error_event(serving: Serving) -> None:
    running = serving("writer", seconds=0.5)
    worker: Any = running.state.models["writer"].worker
    stream = worker.stream

    async def stalled(*arguments: Any, **options: Any) -> Any:
        async for item in stream(*arguments, **options):
            yield item
            await asyncio.Event().wait()

    worker.stream = stalled
    answer = running.ask("/v1/completions", {"model": "writer", "prompt": "the cat", "stream": True, "max_tokens": 50})
    assert answer.status == 200
    *_, error, done, end = answer.body.split(b"\n\n")
    assert (done, end) == (b"data: [DONE]", b"")
    assert b'"code":"timeout"' in error
    assert running.state.metrics.running == 0
