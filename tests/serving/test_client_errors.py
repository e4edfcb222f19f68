"""A client that sends many invalid requests is refused unread while others are answered; the others are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from running import ENOUGH, Running, add_blocking_route, in_thread

from heedful.serving.client_errors import MAX_CLIENTS, MAX_ERRORS, PENALTY, PERIOD, ClientErrors
from heedful.serving.state import FEW

Serving = Callable[..., Running]
WRONG = {"inputs": 7}
RIGHT = {"inputs": ["The cat reads."]}
PATH = "/v1/predict/feelings"


def test_a_client_with_too_many_errors_in_a_period_is_refused_for_a_while() -> None:
    now = 0.0
    errors = ClientErrors(lambda: now)
    for _ in range(MAX_ERRORS - 1):
        errors.add("a")
    now = PERIOD
    errors.add("a")  # another period
    assert not errors
    assert not errors.has_exceeded("a")
    for _ in range(MAX_ERRORS - 1):
        errors.add("a")
    assert errors
    assert errors.has_exceeded("a")
    assert not errors.has_exceeded("b")
    now += PENALTY - 0.1
    assert errors.has_exceeded("a")
    now += 0.1
    assert not errors.has_exceeded("a")
    assert not errors


def test_the_number_of_counted_clients_is_limited() -> None:
    errors = ClientErrors(lambda: 0.0)
    for number in range(3 * MAX_CLIENTS):
        errors.add(str(number))
    assert len(errors._counts) <= MAX_CLIENTS + 1


def stop_clock(server: Running) -> None:
    """Let all requests be in one period, however slow this machine is."""
    server.state.client_errors._clock = lambda: 0.0


@pytest.fixture
def running(serving: Serving) -> Iterator[Running]:
    """A server that is answering more than a few other requests."""
    server = serving("feelings", api_keys=("one", "two"))
    stop_clock(server)
    route = add_blocking_route(server)
    held = [in_thread(server.ask, "/hold", {}, Authorization="Bearer one") for _ in range(FEW + 1)]
    for _ in held:
        route.wait()
    yield server
    route.release()
    assert [answer.result(ENOUGH).status for answer in held] == [200] * (FEW + 1)


def statuses(running: Running, body: Any, **headers: str) -> list[int]:
    return [running.ask(PATH, body, **headers).status for _ in range(MAX_ERRORS)]


def test_invalid_requests_of_one_key_do_not_stop_another(running: Running) -> None:
    assert set(statuses(running, WRONG, Authorization="Bearer one")) == {400}
    refused = running.ask(PATH, RIGHT, Authorization="Bearer one")
    assert (refused.status, refused.json["error"]["code"]) == (429, "rate_limit_exceeded")
    assert int(refused.headers["retry-after"]) >= PENALTY
    assert running.ask(PATH, RIGHT, Authorization="Bearer one", Transfer_Encoding="chunked").status == 429  # by the app
    assert running.ask(PATH, RIGHT, Authorization="Bearer two").status == 200
    assert running.ask("/health").status == 200


def test_requests_without_a_key_do_not_stop_those_with_one(running: Running) -> None:
    assert set(statuses(running, RIGHT)) == {401}
    assert running.ask(PATH, RIGHT).status == 429
    assert running.ask(PATH, RIGHT, Authorization="Bearer wrong").status == 429
    assert running.ask(PATH, RIGHT, Authorization="Bearer one").status == 200


def test_where_few_requests_are_open_nobody_is_refused(serving: Serving) -> None:
    server = serving("feelings")
    stop_clock(server)
    assert set(statuses(server, WRONG)) == {400}
    assert server.state.client_errors
    assert server.ask(PATH, WRONG).status == 400
    assert server.ask(PATH, RIGHT).status == 200
