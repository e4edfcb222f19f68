"""One line for each request, as text or as JSON, and the headers that every answer has."""

import json
import logging
import re
import secrets
import sys
import time
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .settings import is_network
from .state import CLIENT_CLOSED, ServerState

log = logging.getLogger("heedful.serving")

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",  # pages bring their own
}
LONGEST = 200  # characters of a path
A_LINE = "is_a_requests_line"  # of a log's record
UNKNOWN = "unknown"  # the route of what no route takes

# What would move the cursor, end the line or turn the writing round.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def configure(*, as_json: bool) -> None:
    """Lines go to the standard error, what others warn of among them."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else logging.Formatter("%(message)s"))
    logging.captureWarnings(True)
    for logger, level in ((log, logging.INFO), (logging.root, logging.WARNING)):
        logger.handlers[:] = [handler]
        logger.setLevel(level)
    log.propagate = False


class JsonLines(logging.Formatter):
    """Everything that is logged as an object: a request's line is one already, anything else becomes one."""

    def format(self, record: logging.LogRecord) -> str:
        if getattr(record, A_LINE, False):
            return record.getMessage()
        fields = {"time": now(), "level": record.levelname.lower(), "message": record.getMessage()}
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)


class RequestLogMiddleware:
    """The outermost middleware: every request has an id, an answer's headers, a line and a count, however it ended."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app, self._state = app, state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began, status = time.perf_counter(), CLIENT_CLOSED
        state = scope.setdefault("state", {})
        state["request_id"] = secrets.token_hex(8)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers["X-Request-ID"] = state["request_id"]
            await send(message)

        try:
            return await self._app(scope, receive, sending)
        finally:
            seconds = time.perf_counter() - began
            self._state.metrics.request(route_of(scope), scope["method"], status, seconds)
            log.info(self._line(scope, status, seconds), extra={A_LINE: True})

    def _line(self, scope: Scope, status: int, seconds: float) -> str:
        state = scope["state"]
        fields: dict[str, Any] = {
            "time": now(),
            "peer": self._peer(scope),
            "method": escaped(scope["method"]),
            "path": path_of(scope),
            "status": status,
            "ms": round(seconds * 1000, 1),
            "model": state.get("model"),
            "id": state["request_id"],
        }
        if self._state.settings.json_log:
            return json.dumps(fields)
        return " ".join("-" if value is None else f"{value}" for value in fields.values())

    def _peer(self, scope: Scope) -> str:
        """Who asks: the address at the other end, or, if that is a proxy we trust, the last one that is not."""
        peer: str = (scope.get("client") or ("-", 0))[0]
        trusts = self._state.settings.trusts
        named = ",".join(Headers(scope=scope).getlist("x-forwarded-for")).split(",")
        while named and trusts(peer) and is_network(before := named.pop().strip()) and "/" not in before:
            peer = before
        return peer


def now() -> str:
    """In UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def path_of(scope: Scope) -> str:
    """As it came over the wire, where it has neither spaces nor control characters; never the query."""
    raw = scope.get("raw_path") or quote(scope["path"]).encode()
    path = escaped(raw.decode("ascii", "backslashreplace"))
    return path if len(path) <= LONGEST else f"{path[:LONGEST]}…"


def route_of(scope: Scope) -> str:
    """The template of the route that took it."""
    return getattr(scope.get("route"), "path", UNKNOWN)


def escaped(text: str) -> str:
    """Without a character that does anything."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
