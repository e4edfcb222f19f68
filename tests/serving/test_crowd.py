"""Many at once: nobody's answer depends on who else asks, and who comes too many is told so at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from running import ENOUGH, Answer, Running, in_thread

from heedful.serving.worker import ModelWorker

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
MANY = 40


def texts(count: int) -> list[str]:
    """No two alike, of one word to as many as there are."""
    return [
        " ".join(TERMS[(index + step) % len(TERMS)] for step in range(1 + index % len(TERMS))) for index in range(count)
    ]


def translations() -> list[dict[str, Any]]:
    more: list[dict[str, Any]] = [{}, {"alternatives": 2}, {"format": "html"}, {"source": "auto"}]
    return [
        {"q": text, "source": "en", "target": "ko", **more[index % len(more)]} for index, text in enumerate(texts(MANY))
    ]


def completions() -> list[dict[str, Any]]:
    more: list[dict[str, Any]] = [{}, {"n": 2}, {"top_p": 0.8}, {"temperature": 0, "seed": None}]
    return [
        {"model": "writer", "prompt": text, "max_tokens": 10, "seed": index, **more[index % len(more)]}
        for index, text in enumerate(texts(MANY))
    ]


@pytest.mark.parametrize(
    ("model", "path", "questions"),
    [("en-ko", "/translate", translations()), ("writer", "/v1/completions", completions())],
    ids=["translations", "seeded completions"],
)
def test_an_answer_is_the_same_alone_and_in_a_crowd(
    server: Running, model: str, path: str, questions: list[dict[str, Any]]
) -> None:
    single = [translations_of(server.ask(path, question)) for question in questions]
    worker = server.state.models[model].worker
    with blocked(worker):
        crowd = [in_thread(server.ask, path, question) for question in questions]
        until(server, lambda: worker.waiting >= MANY)
    assert [translations_of(answer.result(ENOUGH)) for answer in crowd] == single
    assert len({str(answer) for answer in single}) > MANY / 2  # or it says nothing that they are the same


@pytest.mark.parametrize("limit", ["max_concurrency", "max_waiting"])
def test_who_comes_too_many_is_refused_at_once_and_nothing_is_left_of_it(
    serving: Callable[..., Running], limit: str
) -> None:
    running = serving("en-ko", **{limit: 3})
    worker = running.state.models["en-ko"].worker
    questions = [{"q": text, "source": "en", "target": "ko"} for text in texts(3)]
    single = [translations_of(running.ask("/translate", question)) for question in questions]
    with blocked(worker):
        inside = [in_thread(running.ask, "/translate", question) for question in questions]
        until(running, lambda: worker.waiting >= 3)
        for _ in range(10):  # each is answered while the model stands still
            refused = running.ask("/translate", questions[0])
            assert refused.status in (429, 503), refused.body
            assert int(refused.headers["retry-after"]) >= 1
            assert set(refused.json) == {"error"}
            assert running.ask("/health").json == {"status": "ok"}
    assert [translations_of(answer.result(ENOUGH)) for answer in inside] == single
    assert [translations_of(running.ask("/translate", question)) for question in questions] == single
    assert (worker.waiting, worker.running, running.state.metrics.running) == (0, 0, 0)


@contextmanager
def blocked(worker: ModelWorker) -> Iterator[None]:
    """The model's thread stands still within."""
    entered, released = threading.Event(), threading.Event()

    def stand_still() -> bool:
        entered.set()
        return released.wait(ENOUGH)

    standing = in_thread(lambda: asyncio.run(worker.call(stand_still)))
    assert entered.wait(ENOUGH)
    try:
        yield
    finally:
        released.set()
    assert standing.result(ENOUGH)


def until(running: Running, true: Callable[[], bool]) -> None:
    """Asks for the server's health until something is so; it always has an answer."""
    end = time.monotonic() + ENOUGH
    while not true():
        assert running.ask("/health").status == 200
        assert time.monotonic() < end, "it never came to this"


def translations_of(answer: Answer) -> Any:
    """All that does not name the request itself."""
    assert answer.status == 200, answer.body
    return {key: value for key, value in answer.json.items() if key not in ("id", "created")}
