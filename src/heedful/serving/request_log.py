"""One log line for each request, as text or JSON, and the headers of every response."""

import json
import logging
import re
import secrets
import sys
import time
from datetime import UTC, datetime
from functools import cache
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import Busy, TooManyErrors, error_response
from .settings import Settings, is_network
from .state import CLIENT_CLOSED, ServerState

log = logging.getLogger("heedful.serving")

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",  # pages set their own
}
MAX_PATH = 200  # characters
IS_REQUEST = "is_request"  # attribute of the log records of requests

# Characters that would move the cursor, end the line or change the writing direction.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def configure(*, as_json: bool) -> None:
    """Log to standard error, including warnings of other packages."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(message)s"))
    logging.captureWarnings(True)
    for logger, level in ((log, logging.INFO), (logging.root, logging.WARNING)):
        logger.handlers[:] = [handler]
        logger.setLevel(level)
    log.propagate = False


class JsonLines(logging.Formatter):
    """Formats every log record as a JSON object. The message of a request is one already."""

    def format(self, record: logging.LogRecord) -> str:
        if getattr(record, IS_REQUEST, False):
            return record.getMessage()
        fields = {"time": _now(), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)


class RequestLogMiddleware:
    """The outermost middleware: it gives every request an id, response headers, a log line and a count."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        start, status = time.perf_counter(), CLIENT_CLOSED
        state = scope.setdefault("state", {})
        state["request_id"] = secrets.token_hex(8)

        async def add_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers["X-Request-ID"] = state["request_id"]
            await send(message)

        try:
            return await self._app(scope, receive, add_headers)
        finally:
            _record(self._state, scope, status, time.perf_counter() - start)


def raw_refusal(state: ServerState, scope: Scope, status: int) -> bytes:
    """Record a request that is refused before it reaches the app, as busy (503) or for earlier errors (429).

    Returns:
        The whole HTTP response.
    """
    request_id = secrets.token_hex(8)
    _record(state, {**scope, "state": {"request_id": request_id}}, status, 0.0)
    return _raw_refusal(status, scope["path"].startswith("/v1/")).replace(_PLACEHOLDER, request_id.encode())


_PLACEHOLDER = b"0" * 16


@cache
def _raw_refusal(status: int, is_v1: bool) -> bytes:
    response = error_response("/v1/" if is_v1 else "/", Busy() if status == Busy().status else TooManyErrors())
    headers = [*response.raw_headers, *((name.encode(), value.encode()) for name, value in HEADERS.items())]
    lines = [b"%s: %s" % pair for pair in [*headers, (b"X-Request-ID", _PLACEHOLDER)]]
    return b"\r\n".join([f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode(), *lines, b"", bytes(response.body)])


def _record(state: ServerState, scope: Scope, status: int, seconds: float) -> None:
    """Count a request and write its line to the log."""
    route = getattr(scope.get("route"), "path", "unknown")  # the template; clients must not create labels
    state.metrics.request(route, scope["method"], status, seconds)
    fields: dict[str, Any] = {
        "time": _now(),
        "peer": peer_of(scope, state.settings),
        "method": escape(scope["method"]),
        "path": path_of(scope),
        "status": status,
        "ms": round(seconds * 1000, 1),
        "model": scope["state"].get("model"),
        "id": scope["state"]["request_id"],
    }
    as_json, values = state.settings.json_log, fields.values()
    line = json.dumps(fields) if as_json else " ".join("-" if value is None else f"{value}" for value in values)
    log.info(line, extra={IS_REQUEST: True})


def peer_of(scope: Scope, settings: Settings) -> str:
    """Return the client's address: the last one in X-Forwarded-For that is not a trusted proxy."""
    peer: str = (scope.get("client") or ("-", 0))[0]
    forwarded = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
    while forwarded and settings.trusts(peer) and is_network(last := forwarded.pop().strip()) and "/" not in last:
        peer = last
    return peer


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def path_of(scope: Scope) -> str:
    """Return the path as it was sent, without the query and shortened; spaces and control characters are escaped."""
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    path = escape(raw.decode("ascii", "backslashreplace"))
    return path if len(path) <= MAX_PATH else f"{path[:MAX_PATH]}…"


def escape(text: str) -> str:
    """Replace characters that would do something in a terminal by their escape sequences."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
