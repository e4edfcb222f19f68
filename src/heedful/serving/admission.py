"""What a request passes before its route: in time, not too large, with a key, and only while there is room.

In plain ASGI, so that a stream stays a stream and a client that leaves is noticed.

API keys are required on every route but a few that say nothing about what people ask. A key may stand in
`Authorization: Bearer …`, as OpenAI's clients send it, or be the `api_key` of the query or the body, as
LibreTranslate's do. The middleware has the whole body by then and hands it on unread, so a route reads it as usual and
need not know of keys.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from hashlib import sha256
from ipaddress import ip_address
from socket import getaddrinfo
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .errors import APIError, as_api_error, error_response
from .inputs import FORMS, MOST, content_type, form_fields
from .settings import Settings
from .state import CLIENT_CLOSED, ServerState
from .worker import DeadlineExceeded

log = logging.getLogger("heedful.serving")

# These touch no model: they need no key and are answered however much the models have to do.
OPEN = ("/", "/health", "/metrics", "/docs", "/openapi.json", "/languages", "/frontend/settings")
OPEN_BELOW = "/page/"  # what the page at / is made of
BUSY, STOPPING = "the server has too much to do; try again soon", "the server is stopping"
STRANGERS = 8  # bodies of the largest size, of those whose key, if they have one, is in the body


class AdmissionMiddleware:
    """Around all routes."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app, self._state = app, state
        self._keys = Keys(state.settings.api_keys)
        self._bodies = Bodies(state, state.settings.max_concurrency)
        self._of_strangers = Bodies(state, STRANGERS)
        self._names = names_of(state.settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            async with asyncio.timeout(self._state.settings.seconds) as time:
                return await self._let_in(scope, receive, sending)
        except Exception as error:
            refusal = as_api_error(DeadlineExceeded() if time.expired() else error) or _unforeseen(scope, error)
        except asyncio.CancelledError:
            if not self._state.draining.is_set():
                raise
            refusal = APIError(503, STOPPING, code="stopping")
        if begun:  # too late for words: the server closes a connection whose answer does not end
            return log.warning(f"broken off, request {scope['state']['request_id']}: {refusal.message}")
        return await error_response(scope["path"], refusal)(scope, receive, send)

    async def _let_in(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check_name(scope)
        if is_open(scope["path"]):
            async with self._bodies.arriving(scope, receive) as body:
                return await self._app(scope, again(body, receive), send)
        self._check_room()  # before a byte of the body is read: refusing must cost nothing
        if self._keys.in_head(Request(scope)):
            async with self._bodies.arriving(scope, receive) as body:
                return await self._answered(scope, body, receive, send)
        async with self._of_strangers.arriving(scope, receive) as body:
            await self._keys.check_body(Request(scope, again(body, receive)))
            with self._of_strangers.moved(len(body), self._bodies):
                return await self._answered(scope, body, receive, send)

    async def _answered(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        self._check_room()
        metrics, taken = self._state.metrics, 1

        def leave() -> None:
            nonlocal taken
            metrics.running, taken = metrics.running - taken, 0

        async def sending(message: Message) -> None:
            # A client that has its answer asks again at once, and must find the place free that it has had.
            if message["type"] == "http.response.body" and not message.get("more_body", False):
                leave()
            await send(message)

        metrics.running += 1
        try:
            return await self._app(scope, again(body, receive), sending)
        finally:
            leave()

    def _check_name(self, scope: Scope) -> None:
        """Another site's name may be made to lead here, and its pages would then read what is said here."""
        name = _hostname(Headers(scope=scope).get("host", ""))
        if self._names and name and name not in self._names:
            raise APIError(
                421,
                f"this server is {' or '.join(sorted(self._names))}, not {name[:64]!r}; "
                "behind a proxy, start it with --trusted-proxy",
            )

    def _check_room(self) -> None:
        if self._state.draining.is_set():
            raise APIError(503, STOPPING, code="stopping")
        if self._state.metrics.running >= self._state.settings.max_concurrency:
            raise APIError(503, BUSY, code="busy")


class Bodies:
    """Reads a request's body whole, within its limits; of all that are here, no more than so many of the largest."""

    def __init__(self, state: ServerState, n_largest: int) -> None:
        self._settings = state.settings
        self._most = n_largest * state.settings.max_body
        self._held = 0

    @asynccontextmanager
    async def arriving(self, scope: Scope, receive: Receive) -> AsyncIterator[bytes]:
        """The body; its memory is counted until the request is over."""
        body = bytearray()
        try:
            await self._fill(body, scope, receive)
            yield bytes(body)
        finally:
            self._held -= len(body)

    @contextmanager
    def moved(self, size: int, others: Bodies) -> Iterator[None]:
        """So much of it is counted among others."""
        self._held, others._held = self._held - size, others._held + size
        try:
            yield
        finally:
            self._held, others._held = self._held + size, others._held - size

    async def _fill(self, body: bytearray, scope: Scope, receive: Receive) -> None:
        most, seconds = self._settings.max_body, self._settings.receive_seconds
        too_large = f"the request is too large: a body has at most {most:,} bytes"
        if int(Headers(scope=scope).get("content-length", 0)) > most:
            raise APIError(413, too_large, code="too_large")
        try:
            async with asyncio.timeout(seconds):
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise APIError(CLIENT_CLOSED, "the client has left")
                    part, more = message.get("body", b""), message.get("more_body", False)
                    body += part
                    self._held += len(part)
                    if len(body) > most:
                        raise APIError(413, too_large, code="too_large")
                    if self._held > self._most:
                        raise APIError(503, BUSY, code="busy")
        except TimeoutError:
            raise APIError(408, f"the request did not arrive within {seconds:g} seconds") from None


def names_of(settings: Settings) -> frozenset[str]:
    """What a server of this machine alone may be called; nothing where others may come, or a proxy speaks for them."""
    try:
        address = getaddrinfo(settings.host, None)[0][4][0]
    except (OSError, UnicodeError):  # nobody can listen there
        return frozenset()
    if not ip_address(address).is_loopback or settings.trusted_proxies:
        return frozenset()
    return frozenset({"localhost", "127.0.0.1", "::1", settings.host.lower()})


def _hostname(host: str) -> str:
    """Without its port, in small letters."""
    try:
        return (urlsplit(f"//{host}").hostname or "").rstrip(".")
    except ValueError:  # no name that anything has
        return host


def is_open(path: str) -> bool:
    """Whether a route answers whatever there is to do, and whoever asks."""
    return path in OPEN or path.startswith(OPEN_BELOW)


def again(body: bytes, receive: Receive) -> Receive:
    """What has arrived, as if it were arriving; after that, what comes: that the client leaves."""
    first = True

    async def receiving() -> Message:
        nonlocal first
        if not first:
            return await receive()
        first = False
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving


def _unforeseen(scope: Scope, error: Exception) -> APIError:
    name = scope["state"]["request_id"]
    log.error(f"internal error, request {name}", exc_info=error)
    return APIError(500, f"internal error; the server's log knows more: request {name}", code="internal_error")


class Keys:
    """The hashes of those that are good; none where everyone may ask."""

    def __init__(self, keys: Iterable[str]) -> None:
        self._hashes = [_hash(key) for key in keys]

    def in_head(self, request: Request) -> bool:
        """Whether a request has a good key, or needs none, before its body is there."""
        return not self._hashes or any(map(self._holds, _of_head(request)))

    async def check_body(self, request: Request) -> None:
        """Refuse a request without a good key in its body: 401 under /v1/, as OpenAI does, 403 elsewhere."""
        key = await _in_body(request)
        if key and self._holds(key):
            return
        status, code = (401, "invalid_api_key") if request.url.path.startswith("/v1/") else (403, None)
        missing = "this server wants an API key: as Authorization: Bearer KEY, or as api_key"
        wrong = key or [*_of_head(request)]
        raise APIError(status, "the API key is wrong" if wrong else missing, code=code)

    def _holds(self, key: str) -> bool:
        """In a time that says nothing about the key: all hashes are compared, whole."""
        digest = _hash(key)
        return sum(hmac.compare_digest(digest, valid) for valid in self._hashes) > 0


def _of_head(request: Request) -> Iterator[str]:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield token.encode("latin-1").decode("utf-8", "replace").strip()  # a header's bytes come as Latin-1
    if key := request.query_params.get("api_key"):
        yield key


async def _in_body(request: Request) -> str | None:
    """What cannot be read has none; its route will say what is wrong with it."""
    try:
        if content_type(request) in FORMS:
            key = (await form_fields(request, max_files=MOST)).get("api_key")
        else:
            body = json.loads(await request.body() or b"null")
            key = body.get("api_key") if isinstance(body, dict) else None
    except (ValueError, RecursionError, MultiPartException, HTTPException):
        return None
    return key if isinstance(key, str) else None


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
