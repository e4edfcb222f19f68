"""The admission of requests: host name, capacity, size, time and API key are checked before the route runs.

It is plain ASGI middleware, so that responses can stream and a disconnect is noticed.

API keys are required on every route but a few that reveal nothing about requests. They are checked before the body is
read wherever that is possible. The middleware reads the whole body and passes it on, so routes need not know of keys.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from socket import getaddrinfo
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import DONE, EVENTS, APIError, Busy, DeadlineExceeded, TooManyErrors, as_api_error, error_response, event
from .keys import Keys
from .request_log import peer_of
from .settings import Settings
from .state import CLIENT_CLOSED, ServerState
from .work import WorkBudget

log = logging.getLogger("heedful.serving")

# These need no model, so they need neither a key nor free capacity.
OPEN = ("/", "/health", "/metrics", "/docs", "/openapi.json", "/languages", "/frontend/settings")
OPEN_BELOW = "/page/"  # the files of the page at /
COUNTED = {400, 401, 403, 404, 405, 413, 415, 422}  # statuses of invalid requests, of which a client may have some
STOPPING = "the server is stopping"
MAX_UNAUTHENTICATED = 8  # bodies of the largest size, of requests whose key, if any, is in the body


class AdmissionMiddleware:
    """Admits or refuses requests; it also turns exceptions of all routes into responses."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app, self._state = app, state
        self._keys = Keys(state.settings.api_keys)
        self._bodies = Bodies(state, state.settings.max_concurrency)
        self._unauthenticated = Bodies(state, MAX_UNAUTHENTICATED)
        self._work = WorkBudget(state.settings)
        self._host_names = host_names(state.settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        started, ended, name = "", False, scope["state"]["request_id"]  # the content type, once there is a response

        async def track(message: Message) -> None:
            nonlocal started, ended
            if message["type"] == "http.response.start" and message["status"] in COUNTED:
                self._state.client_errors.add(client_of(scope, self._state.settings))
            started = started or Headers(raw=message["headers"]).get("content-type", "none")
            ended = message["type"] == "http.response.body" and not message.get("more_body", False)
            await send(message)

        try:
            async with asyncio.timeout(self._state.settings.seconds) as time:
                return await self._admit(scope, receive, track)
        except Exception as error:
            refusal = as_api_error(DeadlineExceeded() if time.expired() else error)
            if refusal is None:
                log.error(f"internal error, request {name}", exc_info=error)
                reason = f"internal error; the server's log has the details: request {name}"
                refusal = APIError(500, reason, code="internal_error")
        except asyncio.CancelledError:
            if not self._state.draining.is_set():
                raise
            refusal = APIError(503, STOPPING, code="stopping")
        response = error_response(scope["path"], refusal)
        if not started:
            return await response(scope, receive, track)
        # Too late for an error response. A stream ends with an event; any other connection is closed by the server.
        log.warning(f"response aborted, request {name}: {refusal.message}")
        if started.startswith(EVENTS) and not ended:
            return await send({"type": "http.response.body", "body": event(bytes(response.body)) + DONE})
        return None

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check_host(scope)
        if is_open(scope["path"]):
            async with self._bodies.read(scope, receive) as body:
                return await self._app(scope, replay(body, receive), send)
        self._check_capacity()  # before the body is read: refusing must be cheap
        client = self._keys.in_head(Request(scope)) if self._keys else peer_of(scope, self._state.settings)
        if client is not None:
            scope["state"]["client"] = client
        if self._state.is_flooded_by(client_of(scope, self._state.settings)):
            raise TooManyErrors
        if client is not None:
            async with self._bodies.read(scope, receive) as body:
                return await self._run_route(scope, body, client, receive, send)
        async with self._unauthenticated.read(scope, receive) as body:
            client = await self._keys.in_body(Request(scope, replay(body, receive)), body)
            scope["state"]["client"] = client
            with self._unauthenticated.moved(len(body), self._bodies):
                return await self._run_route(scope, body, client, receive, send)

    async def _run_route(self, scope: Scope, body: bytes, client: str, receive: Receive, send: Send) -> None:
        self._check_capacity()
        metrics, n_slots = self._state.metrics, 1

        def release() -> None:
            nonlocal n_slots
            metrics.running, n_slots = metrics.running - n_slots, 0

        async def release_at_end(message: Message) -> None:
            # Before the last part is sent: a client that has it may send its next request at once.
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                release()
            await send(message)

        metrics.running += 1
        try:
            with self._work.request(client):
                return await self._app(scope, replay(body, receive), release_at_end)
        finally:
            release()

    def _check_host(self, scope: Scope) -> None:
        """Refuse other host names, so that no web site can reach this server by DNS rebinding."""
        try:
            host = Headers(scope=scope).get("host", "")
            name = (urlsplit(f"//{host}").hostname or "").rstrip(".")
        except ValueError:  # not a valid host name
            name = host
        if self._host_names and name and name not in self._host_names:
            raise APIError(
                421,
                f"this server is {' or '.join(sorted(self._host_names))}, not {name[:64]!r}; "
                "behind a proxy, start it with --trusted-proxy",
            )

    def _check_capacity(self) -> None:
        if self._state.draining.is_set():
            raise APIError(503, STOPPING, code="stopping")
        if self._state.is_busy:
            raise Busy


class Bodies:
    """Reads whole request bodies, and limits the memory of all bodies together to a number of the largest size."""

    def __init__(self, state: ServerState, n_largest: int) -> None:
        self._settings = state.settings
        self._max_bytes = n_largest * state.settings.max_body
        self._n_bytes = 0

    @asynccontextmanager
    async def read(self, scope: Scope, receive: Receive) -> AsyncIterator[bytes]:
        """Read the body of a request; its size is counted until the context ends."""
        body = bytearray()
        try:
            await self._fill(body, scope, receive)
            yield bytes(body)
        finally:
            self._n_bytes -= len(body)

    @contextmanager
    def moved(self, size: int, other: Bodies) -> Iterator[None]:
        """Count this many bytes among the others until the context ends."""
        self._n_bytes, other._n_bytes = self._n_bytes - size, other._n_bytes + size
        try:
            yield
        finally:
            self._n_bytes, other._n_bytes = self._n_bytes + size, other._n_bytes - size

    async def _fill(self, body: bytearray, scope: Scope, receive: Receive) -> None:
        max_body, seconds = self._settings.max_body, self._settings.receive_seconds
        too_large = APIError(413, f"the request is too large: a body has at most {max_body:,} bytes", code="too_large")
        if int(Headers(scope=scope).get("content-length", 0)) > max_body:
            raise too_large
        try:
            async with asyncio.timeout(seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise APIError(CLIENT_CLOSED, "the client has disconnected")
                    part, more = message.get("body", b""), message.get("more_body", False)
                    body += part
                    self._n_bytes += len(part)
                    if len(body) > max_body:
                        raise too_large
                    if self._n_bytes > self._max_bytes:
                        raise Busy
        except TimeoutError:
            raise APIError(408, f"the request did not arrive within {seconds:g} seconds") from None


def client_of(scope: Scope, settings: Settings) -> str:
    """Return the client of a request: the hash of its key once that is known to be valid, or its address."""
    client: str | None = scope["state"].get("client")
    return peer_of(scope, settings) if client is None else client


def host_names(settings: Settings) -> frozenset[str]:
    """Return the host names of a server that listens on the loopback address; none for any other or behind a proxy."""
    try:
        address = getaddrinfo(settings.host, None)[0][4][0]
    except (OSError, UnicodeError):  # the address is invalid; listening will fail
        return frozenset()
    if not ip_address(address).is_loopback or settings.trusted_proxies:
        return frozenset()
    return frozenset({"localhost", "127.0.0.1", "::1", settings.host.lower()})


def is_open(path: str) -> bool:
    """Return whether a route needs neither a key nor free capacity."""
    return path in OPEN or path.startswith(OPEN_BELOW)


def replay(body: bytes, receive: Receive) -> Receive:
    """Return a `receive` that first gives the body that was read already."""
    first = True

    async def receive_again() -> Message:
        nonlocal first
        if not first:
            return await receive()
        first = False
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again
