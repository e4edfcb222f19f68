"""Where a server listens, and how it ends."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest
from running import ENOUGH, Running, add_blocking_route, in_thread

from heedful.errors import ConfigError
from heedful.serving.server import GC_SECONDS, GC_THRESHOLDS, ListenError, Server, address, listen
from heedful.serving.settings import Settings

Serving = Callable[..., Running]


def test_the_address_is_where_the_server_listens() -> None:
    with listen(Settings(port=0)) as listener:
        assert address(listener) == f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ListenError, match="the port is in use; choose another"):
            listen(Settings(port=listener.getsockname()[1]))
    with pytest.raises(ListenError, match="cannot listen on 'no host at all'"):
        listen(Settings(host="no host at all"))
    with pytest.raises(ListenError, match="this machine does not have this address"):
        listen(Settings(host="192.0.2.1"))


def test_an_address_of_six_parts_is_written_in_brackets() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine knows no IPv6")
    try:
        listener = listen(Settings(host="::1", port=0))
    except ListenError:
        pytest.skip("this machine has no IPv6 address")
    with listener:
        assert address(listener) == f"http://[::1]:{listener.getsockname()[1]}"


def test_a_stopping_server_answers_running_requests_and_refuses_new_ones(serving: Serving) -> None:
    running = serving("feelings")
    route = add_blocking_route(running)
    first = in_thread(running.ask, "/hold", {})
    route.wait()
    running.state.draining.set()  # as a signal does first
    answer = running.ask("/health")
    assert (answer.status, answer.json) == (503, {"status": "draining"})
    answer = running.ask("/v1/predict/feelings", {"inputs": ["a"]})
    assert (answer.status, answer.json["error"]["code"], answer.headers["retry-after"]) == (503, "stopping", "1")
    running.server.stop()
    assert running.ask("/health").json == {"status": "draining"}  # new connections are accepted until all is answered
    route.release()
    assert first.result(ENOUGH).json == {"blocked": "no more"}
    running.thread.join(ENOUGH)
    with pytest.raises(ConnectionRefusedError):
        running.connect()


def test_what_does_not_end_in_time_is_told_so(serving: Serving) -> None:
    running = serving("feelings", drain_seconds=1.0)
    route = add_blocking_route(running)
    first = in_thread(running.ask, "/hold", {})
    route.wait()
    running.stop()
    answer = first.result(ENOUGH)
    assert (answer.status, answer.json) == (503, {"error": "the server is stopping"})


def test_too_many_connections_are_told_so(serving: Serving) -> None:
    running = serving("feelings", max_connections=1, max_concurrency=1)
    with running.connect() as first:
        first.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert first.recv(100).startswith(b"HTTP/1.1 200 ")
        answer = running.ask("/health")
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
        assert answer.json == {"error": "there are too many connections; try again soon"}


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"port": 65536}, "port must be from 0"),
        ({"host": " "}, "host is empty"),
        ({"max_body": 0}, "max_body must be at least 1"),
        ({"seconds": 0.0}, "seconds must be more than 0"),
        ({"max_connections": 2, "max_concurrency": 3}, "3 requests at once need as many connections"),
        ({"api_keys": ("a", " ")}, "an API key is empty"),
        ({"trusted_proxies": ("proxy.example",)}, "a trusted proxy must be an address"),
    ],
)
def test_invalid_limits_are_refused(limits: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Settings(**limits)


def test_all_garbage_is_collected_while_no_request_runs_or_once_in_a_while(
    serving: Callable[..., Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    running = serving("feelings")
    server, collected, times = Server(running.app), list[float](), [0.0]
    monkeypatch.setattr("heedful.serving.server.gc.collect", lambda: collected.append(times[-1]))
    monkeypatch.setattr("heedful.serving.server.gc.get_count", lambda: (0, 0, 1))
    monkeypatch.setattr("heedful.serving.server.time.monotonic", lambda: times[-1])
    server._last_collection = times[-1]
    asyncio.run(server.on_tick(1))
    assert not collected  # another program's server has the usual garbage collection
    monkeypatch.setattr("heedful.serving.server.gc.get_threshold", lambda: GC_THRESHOLDS)
    asyncio.run(server.on_tick(1))
    monkeypatch.setattr(running.state.metrics, "running", 1)
    for now in (1.0, GC_SECONDS - 1, GC_SECONDS, GC_SECONDS + 1):
        times.append(now)
        asyncio.run(server.on_tick(1))
    assert collected == [0.0, GC_SECONDS]
