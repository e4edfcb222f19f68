"""Heads that a proxy may read in another way, heads that are too large, and refusals that cost almost nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from running import ENOUGH, Lines, Running, add_blocking_route, in_thread, received

from heedful.serving.request_head import MAX_HEAD, head_error, plain_request

HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /v1/predict/feelings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n"
BODY = b'{"inputs": ["a"]}'
WHOLE = POST + b"Content-Length: 17\r\n\r\n" + BODY

REFUSED = {
    "length beside chunks": (POST + b"Content-Length: 5\r\n" + CHUNKED + b"\r\n0\r\n\r\n", 400),
    "chunks before a length": (POST + CHUNKED + b"content-length : 5\r\n\r\n0\r\n\r\n", 400),
    "chunks in HTTP/1.0": (POST.replace(b"/1.1", b"/1.0") + CHUNKED + b"\r\n0\r\n\r\n", 400),
    "a bare line feed": (b"GET /health HTTP/1.1\nHost: localhost\r\n\r\n", 400),
    "bare line feeds at the end": (b"GET /health HTTP/1.1\r\nHost: localhost\n\n", 400),
    "HTTP/9.9": (HEALTH.replace(b"1.1", b"9.9") + b"\r\n", 505),
    "HTTP/0.9": (HEALTH.replace(b"1.1", b"0.9") + b"\r\n", 505),
    "a whole head that is too large": (HEALTH + b"X: " + b"x" * 100_000 + b"\r\n\r\n", 431),
    "a head that is too large and does not end": (HEALTH + b"X: " + b"x" * 100_000, 431),
}


@pytest.fixture
def busy(serving: Callable[..., Running]) -> Iterator[Running]:
    """A server with as many requests as it may have."""
    running = serving("feelings", max_concurrency=1)
    route = add_blocking_route(running)
    first = in_thread(running.ask, "/hold", {})
    route.wait()
    yield running
    route.release()
    assert first.result(ENOUGH).status == 200


@pytest.mark.parametrize("fault", REFUSED)
def test_an_ambiguous_or_large_head_is_refused_and_the_connection_closed(fault: str, server: Running) -> None:
    sent, status = REFUSED[fault]
    with server.connect() as connection:
        connection.sendall(sent)
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"\r\n\r\n") == 1


def test_a_head_after_another_request_is_checked_as_well(server: Running) -> None:
    with server.connect() as connection:
        connection.sendall(HEALTH + b"\r\n" + REFUSED["length beside chunks"][0])
        answer = received(connection)
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 400 " in answer
    assert answer.count(b"\r\n\r\n") == 2


@pytest.mark.parametrize("size", [MAX_HEAD - 1, MAX_HEAD, MAX_HEAD + 1])
def test_the_limit_of_a_head_does_not_depend_on_how_it_arrives(size: int) -> None:
    head = HEALTH + b"X: " + b"x" * (size - len(HEALTH) - 7) + b"\r\n\r\n"
    assert len(head) == size
    in_parts = [head_error(head[:end]) for end in range(1, size)]
    assert (head_error(head) is None) is (size <= MAX_HEAD)
    assert any(in_parts) is (size > MAX_HEAD)


def test_a_busy_server_refuses_whole_requests_without_parsing_them(
    busy: Running, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = busy.ask("/v1/predict/feelings", {"inputs": ["a"]}, Connection="close")  # reaches the app
    lines.next()
    monkeypatch.setattr("h11.Connection.receive_data", None)  # nothing can be parsed any more
    with busy.connect() as connection:
        for _ in range(3):  # on the same connection
            connection.sendall(WHOLE)
            head, _, body = connection.recv(4096).partition(b"\r\n\r\n")
            assert body == slow.body
            names = {line.split(b": ")[0].decode().lower() for line in head.split(b"\r\n")[1:]}
            assert {*slow.headers} - {"date", "connection"} <= names
            assert " POST /v1/predict/feelings 503 " in lines.next()
    monkeypatch.undo()
    assert b'heedful_requests_total{method="POST",route="unknown",status="503"} 4.0\n' in busy.ask("/metrics").body


def test_a_busy_server_parses_what_it_must(busy: Running) -> None:
    for sent, answer in ((HEALTH + b"\r\n", b" 200 "), (REFUSED["length beside chunks"][0], b" 400 ")):
        with busy.connect() as connection:
            connection.sendall(sent)
            assert connection.recv(100).startswith(b"HTTP/1.1" + answer)


@pytest.mark.parametrize(
    "sent",
    [
        WHOLE + b"x",
        WHOLE[:-1],
        WHOLE.replace(b"17", b"+17"),
        WHOLE.replace(b"17", b"\xb217"),
        WHOLE.replace(b"Host: localhost\r\n", b""),
        WHOLE.replace(b"Host", b"Expect: 100-continue\r\nHost"),
        WHOLE.replace(b"Host", b"Connection: close\r\nHost"),
        WHOLE.replace(b"Host", b"Content-Length: 17\r\nHost"),
        WHOLE.replace(b"Host", b" folded\r\nHost"),
        WHOLE.replace(b"Host:", b"Host :"),
        WHOLE.replace(b"/feelings", b"/%66eelings"),
        WHOLE.replace(b"1.1", b"1.0"),
        WHOLE.replace(b"\r\nHost", b"\nHost"),
        POST + CHUNKED + b"\r\n0\r\n\r\n",
    ],
)
def test_only_a_plain_whole_request_is_read_without_h11(sent: bytes) -> None:
    assert plain_request(sent) is None
    scope = plain_request(WHOLE)
    assert scope is not None
    assert (scope["method"], scope["path"]) == ("POST", "/v1/predict/feelings")
