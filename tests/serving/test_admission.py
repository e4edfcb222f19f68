"""What never reaches a route: too large, too slow, too many, too long; and what a client sees of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from http.client import HTTPConnection
from select import select

import pytest
from running import ENOUGH, Lines, Running, add_blocking_route, in_thread, received
from starlette.types import Message, Scope

from heedful.serving import admission
from heedful.serving import server as server_module
from heedful.serving.admission import Bodies
from heedful.serving.errors import APIError
from heedful.serving.models import Models
from heedful.serving.settings import Settings
from heedful.serving.state import Metrics, ServerState

Serving = Callable[..., Running]
HEAD = b"POST /v1/predict/feelings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def test_a_body_that_is_too_large_is_refused_and_the_connection_goes_on(serving: Serving) -> None:
    running = serving("feelings", max_body=1000)
    fits = b'{"inputs": ["a"]}'.ljust(1000)
    connection = HTTPConnection("127.0.0.1", running.port, timeout=ENOUGH)
    for body, chunked, status in ((fits, False, 200), (fits + b" ", False, 413), (fits, True, 200)):
        connection.request(
            "POST", "/v1/predict/feelings", iter([body]) if chunked else body, {"Content-Type": "application/json"}
        )
        answer = connection.getresponse()
        assert (answer.status, b"at most 1,000 bytes" in answer.read()) == (status, status == 413)
    parts = iter([b" " * 400, b" " * 400, b" " * 400, b" " * 200_000])
    connection.request("POST", "/v1/predict/feelings", parts)
    answer = connection.getresponse()
    assert answer.status == 413
    answer.read()
    connection.request("GET", "/health")  # what was left of the body has been dropped
    assert connection.getresponse().status == 200
    connection.close()


def test_who_asks_before_sending_a_large_body_is_told_at_once(serving: Serving) -> None:
    with serving("feelings", max_body=1000).connect() as connection:
        connection.sendall(HEAD + b"Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize(
    ("sent", "status"),
    [(HEAD + b'Content-Length: 20\r\n\r\n{"inp', b"408"), (b"POST /v1/pre", b"408"), (b"", None)],
    ids=["half a body", "half a head", "nothing"],
)
def test_a_slow_client_is_cut(sent: bytes, status: bytes | None, serving: Serving) -> None:
    with serving("feelings", receive_seconds=0.2).connect() as connection:
        connection.sendall(sent)
        answer = received(connection)  # to the end: the server has closed
    assert answer.startswith(b"HTTP/1.1 408 ") if status else answer == b""


def test_a_body_that_is_refused_is_not_read_for_ever(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "GRACE", 0.1)
    with serving("feelings", receive_seconds=0.1, max_body=10).connect() as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n20\r\n" + b"x" * 32 + b"\r\n")
        assert connection.recv(20).startswith(b"HTTP/1.1 413 ")
        with pytest.raises(OSError, match=r"reset|Broken pipe"):  # until it is cut
            _send_for_ever(connection)


def _send_for_ever(connection: socket.socket) -> None:
    while True:
        connection.sendall(b"6\r\nxxxxxx\r\n")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((name, 200) for name in ("localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "LocalHost.", "")),
        *((name, 421) for name in ("evil.example", "evil.example:80", "127.0.0.1.evil.example", "[::", "localhost.x")),
    ],
)
def test_another_sites_name_that_leads_here_is_refused(host: str, status: int, server: Running) -> None:
    response = server.ask("/languages", Host=host)
    assert response.status == status
    assert status == 200 or "--trusted-proxy" in response.json["error"]


def test_behind_a_proxy_or_for_others_a_server_goes_by_any_name(serving: Serving) -> None:
    assert serving("feelings", trusted_proxies=("127.0.0.1",)).ask("/languages", Host="a.example").status == 200
    assert serving("feelings", host="0.0.0.0").ask("/languages", Host="a.example").status == 200


def test_requests_beyond_the_capacity_are_refused_at_once(serving: Serving) -> None:
    running = serving("feelings", max_concurrency=1)
    route = add_blocking_route(running)
    early = running.connect()  # let in, but its body takes longer than that of another
    early.sendall(HEAD + b"Content-Length: 17\r\nExpect: 100-continue\r\n\r\n")
    assert early.recv(100).startswith(b"HTTP/1.1 100 ")
    first = in_thread(running.ask, "/hold", {})
    route.wait()
    early.sendall(b'{"inputs": ["a"]}')
    assert early.recv(100).startswith(b"HTTP/1.1 503 ")
    early.close()
    refused = running.ask("/hold", {})
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert refused.json == {"error": "the server is busy; try again soon"}
    refused = running.ask("/v1/predict/feelings", {"inputs": ["a"]})
    assert (refused.status, refused.headers["retry-after"]) == (503, "1")
    assert refused.json["error"]["type"] == "server_error"
    with running.connect() as connection:  # before its body has come
        connection.sendall(HEAD + b"Content-Length: 20\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 503 ")
    assert running.ask("/health").json == {"status": "ok"}
    assert b"heedful_running_requests 1.0\n" in running.ask("/metrics").body
    route.release()
    assert first.result(ENOUGH).json == {"blocked": "no more"}
    assert running.ask("/v1/predict/feelings", {"inputs": ["a"]}).status == 200


def test_a_client_that_leaves_frees_its_place(serving: Serving, lines: Lines) -> None:
    running = serving("feelings", max_concurrency=1)
    route = add_blocking_route(running)
    with running.connect() as connection:
        connection.sendall(b"POST /hold HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}")
        route.wait()
    assert " POST /hold 499 " in lines.next()
    assert running.ask("/v1/predict/feelings", {"inputs": ["a"]}).status == 200


def test_a_request_has_only_so_much_time(serving: Serving) -> None:
    running = serving("feelings", seconds=0.2)
    add_blocking_route(running)
    add_blocking_route(running, "/v1/hold")
    assert running.ask("/hold", {}).json == {"error": "the answer took too long; ask for less, or try again"}
    answer = running.ask("/v1/hold", {})
    assert (answer.status, answer.headers["retry-after"], answer.json["error"]["code"]) == (503, "1", "timeout")
    assert running.state.metrics.running == 0


def test_what_nobody_foresaw_is_told_to_the_log_alone(serving: Callable[..., Running], lines: Lines) -> None:
    def broken() -> None:
        raise ZeroDivisionError("a secret")

    running = serving("feelings")
    running.app.add_api_route("/broken", broken, methods=["GET"])
    answer = running.ask("/broken")
    assert (answer.status, b"secret" in answer.body, b"Traceback" in answer.body) == (500, False, False)
    name = answer.headers["x-request-id"]
    assert name in answer.json["error"]
    line = lines.next()
    assert line.startswith(f"internal error, request {name}\nTraceback")
    assert "a secret" in line
    assert " GET /broken 500 " in lines.next()


@pytest.mark.parametrize(("path", "status"), [("/nowhere", 404), ("/v1/nowhere", 404), ("/v1/predict/feelings", 405)])
def test_what_is_not_there_is_refused_in_the_words_of_its_api(path: str, status: int, server: Running) -> None:
    answer = server.ask(path, method="GET")
    assert answer.status == status
    error = answer.json["error"]
    assert set(error) == {"message", "type", "param", "code"} if path.startswith("/v1/") else isinstance(error, str)


def test_every_answer_has_the_headers_that_protect_and_none_that_invite(server: Running) -> None:
    for path in ("/health", "/nowhere", "/docs", "/v1/predict/feelings"):
        headers = server.ask(path, Origin="http://elsewhere.example").headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in headers
        assert not [name for name in headers if name.startswith("access-control-")]


def test_the_docs_list_every_route_and_load_nothing(server: Running) -> None:
    page, schema = server.ask("/docs").body.decode(), server.ask("/openapi.json").json
    assert "POST /v1/predict/{model}" in page
    assert all(path in page for path in schema["paths"])
    assert "://" not in page
    assert not [
        path
        for path, response in schema["paths"].items()
        for operation in response.values()
        if "422" in operation["responses"]
    ]


def test_strangers_do_not_take_the_room_of_those_who_have_a_key(
    serving: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MAX_UNAUTHENTICATED", 1)
    running = serving("feelings", max_body=100, api_keys=("key",))
    translate = HEAD.replace(b"/v1/predict/feelings", b"/translate")  # where a key may be in the body
    with running.connect() as first, running.connect() as second:
        first.sendall(translate + b"Content-Length: 90\r\nExpect: 100-continue\r\n\r\n")
        assert first.recv(100).startswith(b"HTTP/1.1 100 ")
        first.sendall(b" " * 80)
        second.sendall(translate + b"Content-Length: 90\r\n\r\n" + b" " * 80)
        (refused,) = select([first, second], [], [], ENOUGH)[0]  # whichever came later
        assert refused.recv(100).startswith(b"HTTP/1.1 503 ")
        accepted = running.ask("/v1/predict/feelings", {"inputs": ["a"]}, Authorization="Bearer key")
        assert accepted.status == 200


def test_the_memory_of_all_bodies_is_limited() -> None:
    settings = Settings(max_body=10)
    bodies = Bodies(ServerState(Models([]), settings, Metrics()), n_largest=2)
    scope: Scope = {"type": "http", "headers": []}

    async def receive() -> Message:
        return {"type": "http.request", "body": b"x" * 10}

    async def check() -> None:
        async with bodies.read(scope, receive), bodies.read(scope, receive) as body:
            assert body == b"x" * 10
            with pytest.raises(APIError, match="busy"):
                async with bodies.read(scope, receive):
                    pass
        async with bodies.read(scope, receive), bodies.read(scope, receive):
            pass

    asyncio.run(check())
