"""The admission of requests: host name, capacity, size, time and API key are checked before the route runs.

It is plain ASGI middleware, so that responses can stream and a disconnect is noticed.

API keys are required on every route but a few that reveal nothing about requests. A key may be in
`Authorization: Bearer …`, as OpenAI's clients send it, or be the `api_key` of the query or, in LibreTranslate's routes,
of the body. It is checked before the body is read wherever that is possible. The middleware reads the whole body and
passes it on, so routes need not know of keys.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from ipaddress import ip_address
from socket import getaddrinfo
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .bodies import parsed_body
from .errors import DONE, EVENTS, APIError, Busy, DeadlineExceeded, as_api_error, error_response, event
from .request_log import peer_of
from .settings import Settings
from .state import CLIENT_CLOSED, ServerState
from .work import WorkBudget

log = logging.getLogger("heedful.serving")

# These need no model, so they need neither a key nor free capacity.
OPEN = ("/", "/health", "/metrics", "/docs", "/openapi.json", "/languages", "/frontend/settings")
OPEN_BELOW = "/page/"  # the files of the page at /
KEY_IN_BODY = ("/translate", "/detect")  # where LibreTranslate's clients send it
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
            return await response(scope, receive, send)
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
            async with self._bodies.read(scope, receive) as body:
                return await self._run_route(scope, body, client, receive, send)
        async with self._unauthenticated.read(scope, receive) as body:
            client = await self._keys.in_body(Request(scope, replay(body, receive)), body)
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


class Keys:
    """The hashes of the valid API keys; without keys everyone is admitted."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._hashes = [_hash(key) for key in keys]

    def __len__(self) -> int:
        return len(self._hashes)

    def in_head(self, request: Request) -> str | None:
        """Return the hash of the valid key in the headers or the query; None if a key may be in the body.

        Raises:
            APIError: The key is wrong, or there is none and the body cannot have one either.
        """
        keys = [*_keys_in_head(request)]
        valid = next(filter(self._is_valid, keys), None)
        if valid is None and (keys or request.scope["path"] not in KEY_IN_BODY):
            raise _invalid_key(request, wrong=bool(keys))
        return None if valid is None else _hash(valid).hex()

    async def in_body(self, request: Request, body: bytes) -> str:
        """Return the hash of the valid key in a body, which is parsed only if it may contain one; raise APIError."""
        fields: Any = None
        if b"api_key" in body:
            with suppress(APIError):  # a body that cannot be parsed has no key
                fields = await parsed_body(request)
        key = fields.get("api_key") if isinstance(fields, Mapping) else None
        if not isinstance(key, str) or not self._is_valid(key):
            raise _invalid_key(request, wrong=bool(key))
        return _hash(key).hex()

    def _is_valid(self, key: str) -> bool:
        """Compare all hashes in constant time, so that the time reveals nothing about the keys."""
        digest = _hash(key)
        return sum(hmac.compare_digest(digest, valid) for valid in self._hashes) > 0


def _keys_in_head(request: Request) -> Iterator[str]:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield token.encode("latin-1").decode("utf-8", "replace").strip()  # headers are decoded as Latin-1
    if key := request.query_params.get("api_key"):
        yield key


def _invalid_key(request: Request, *, wrong: bool) -> APIError:
    """Return the error: with 401 under /v1/, as OpenAI has it, else with 403, as LibreTranslate has it."""
    status, code = (401, "invalid_api_key") if request.scope["path"].startswith("/v1/") else (403, None)
    where = ", or as api_key in the body" if request.scope["path"] in KEY_IN_BODY else ""
    missing = f"this server needs an API key: as Authorization: Bearer KEY, or as api_key in the query{where}"
    return APIError(status, "the API key is wrong" if wrong else missing, code=code)


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
