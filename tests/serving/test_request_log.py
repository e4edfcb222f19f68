"""A line for each request: what stands in it, and what cannot be made to."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable

import pytest
from running import Lines, Running
from starlette.types import Scope

from heedful.serving.request_log import IS_REQUEST, JsonLines, escape, path_of
from heedful.serving.settings import Settings

Serving = Callable[..., Running]


def test_a_line_says_when_who_what_and_how_it_went(server: Running, lines: Lines) -> None:
    answer = server.ask("/v1/predict/feelings?api_key=s3cret&q=%EA%B0%80", {"inputs": ["a"]})
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
    wanted = rf"{time} 127\.0\.0\.1 POST /v1/predict/feelings 200 \d+\.\d feelings ([0-9a-f]{{16}})"
    match = re.fullmatch(wanted, lines.next())
    assert match
    assert match[1] == answer.headers["x-request-id"]
    server.ask("/nowhere%0A%1B[31m%20%E2%80%AE", X_Forwarded_For="10.1.2.3")
    assert re.fullmatch(rf"{time} 127\.0\.0\.1 GET /nowhere%0A%1B\[31m%20%E2%80%AE 404 \d+\.\d - \w+", lines.next())


def test_lines_of_json_and_proxies_that_are_trusted(serving: Serving, lines: Lines) -> None:
    running = serving("feelings", json_log=True, trusted_proxies=("127.0.0.0/8", "10.0.0.1"))
    for named, peer in (
        ("203.0.113.9", "203.0.113.9"),
        ("6.6.6.6, 203.0.113.9, 10.0.0.1", "203.0.113.9"),  # what a client claims stands before what a proxy adds
        ("2001:db8::1", "2001:db8::1"),
        ('"\x1b[31m', "127.0.0.1"),
    ):
        running.ask("/health", X_Forwarded_For=named)
        entry = json.loads(lines.next())
        assert (entry["peer"], entry["path"], entry["status"], entry["model"]) == (peer, "/health", 200, None)
        assert set(entry) == {"time", "peer", "method", "path", "status", "ms", "model", "id"}


def test_every_line_is_json_where_json_was_asked_for() -> None:
    lines = JsonLines()
    assert lines.format(logging.makeLogRecord({IS_REQUEST: True, "msg": '{"path": "/"}'})) == '{"path": "/"}'
    assert json.loads(lines.format(logging.makeLogRecord({"msg": "a word"})))["message"] == "a word"
    try:
        raise OSError("no\nmore")
    except OSError:
        broken = {"levelno": logging.ERROR, "levelname": "ERROR", "msg": "it %s", "args": ("broke",)}
        entry = json.loads(lines.format(logging.makeLogRecord({**broken, "exc_info": sys.exc_info()})))
    assert (entry["level"], entry["message"]) == ("error", "it broke")
    assert entry["traceback"].endswith("OSError: no\nmore")


@pytest.mark.parametrize(("peer", "trusted"), [("10.9.9.9", True), ("11.0.0.1", False), ("::1", True), ("-", False)])
def test_networks_are_trusted_by_address(peer: str, trusted: bool) -> None:
    assert Settings(trusted_proxies=("10.0.0.0/8", "::1")).trusts(peer) is trusted
    assert not Settings().trusts(peer)


def test_nothing_that_is_written_does_anything() -> None:
    assert escape("a\r\n\x1b[31m\u202e\x9b한\ud800") == "a\\u000d\\u000a\\u001b[31m\\u202e\\u009b한\\ud800"
    scope: Scope = {"path": "/a\nb c", "raw_path": None}
    assert path_of(scope) == "/a%0Ab%20c"
    assert len(path_of({"raw_path": b"/" + b"x" * 9000})) < 300
