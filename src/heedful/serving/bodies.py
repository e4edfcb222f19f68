"""Parses the bodies of requests: off the event loop, one at a time, and only after their structure was checked.

A small body can be slow to parse and grow to many times its size: a megabyte of `[1],[1],…` is a quarter of a million
lists. Therefore texts, lists and numbers are counted in the bytes, before any of them becomes an object.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.datastructures import Headers, ImmutableMultiDict
from starlette.formparsers import MultiPartException, MultiPartParser

from .errors import APIError
from .settings import Settings
from .state import server_state
from .threads import parser

FORMS = URLENCODED, MULTIPART = ("application/x-www-form-urlencoded", "multipart/form-data")
MAX_FIELDS = 1000  # of a form
MAX_DEPTH = 8  # of nested lists and objects
MAX_IDS, MAX_PIXEL_LISTS, MAX_NUMBERS = 65_536, 65_536, 262_144
MAX_OPTIONS = 1100  # texts or lists of a request besides its items, such as the heads that a look page turns off
SMALL = 2000  # bytes that take less time to parse than to send to another thread

# It also matches one without an end, so that no part of a body is searched twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+\\?+(?:"|\Z)', re.DOTALL)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class StructureLimits(NamedTuple):
    """The most texts, the most lists and objects, and the most values of a JSON body."""

    texts: int
    lists: int
    values: int

    @classmethod
    def of(cls, settings: Settings, input_kind: str) -> StructureLimits:
        """Return the limits of a request with inputs of this kind."""
        items = 2 * settings.max_items + MAX_OPTIONS  # an item may be a pair
        has_numbers = input_kind in ("image", "series")
        return cls(items, MAX_PIXEL_LISTS if has_numbers else items, MAX_NUMBERS if has_numbers else MAX_IDS)

    def check(self, body: bytes) -> None:
        """Raise APIError if a body has more than that, or is nested too deeply; it need not be valid JSON."""
        symbols, n_texts = _STRING.subn(b"", body, count=self.texts + 1)
        self._check("texts", n_texts, self.texts)
        n_lists, n_commas = symbols.count(b"[") + symbols.count(b"{"), symbols.count(b",")
        self._check("lists and objects", n_lists, self.lists)
        self._check("values", n_lists + n_commas, self.values)
        brackets = symbols.translate(None, _NO_BRACKETS)
        depth = max(accumulate(1 if bracket in b"[{" else -1 for bracket in brackets), default=0)
        if depth > MAX_DEPTH:
            raise APIError(400, f"the body is nested too deeply: at most {MAX_DEPTH} levels", code="too_complex")

    @staticmethod
    def _check(name: str, count: int, limit: int) -> None:
        if count > limit:
            raise APIError(400, f"the body has too many {name}; send several requests", code="too_complex")


def content_type(request: Request) -> str:
    """Return the content type without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def is_json(request: Request) -> bool:
    """Return whether a request says that its body is JSON."""
    kind = content_type(request)
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


async def parsed_body(request: Request) -> Any:
    """Return a JSON body as objects, or the text fields of a form; each body is parsed once.

    Raises:
        APIError: The body is not valid, or too complex for this route.
    """
    if not hasattr(request.state, "parsed_body"):
        body = await request.body()
        is_form = content_type(request) in FORMS
        parse = (
            partial(_form_fields, body, request.headers) if is_form else partial(_json_value, body, _limits(request))
        )
        in_loop = len(body) <= SMALL and content_type(request) != MULTIPART
        loop = asyncio.get_running_loop()
        request.state.parsed_body = parse() if in_loop else await loop.run_in_executor(parser, parse)
    return request.state.parsed_body


def _limits(request: Request) -> StructureLimits:
    state = server_state(request)
    served = state.models.get(request.path_params.get("model", ""))
    return StructureLimits.of(state.settings, served.predictor.input_kind if served else "text")


def _json_value(body: bytes, limits: StructureLimits) -> Any:
    limits.check(body)
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise APIError(400, "the body is not valid JSON", code="invalid_json") from None


def _form_fields(body: bytes, headers: Headers) -> ImmutableMultiDict[str, str]:
    """Return the fields of a form. URL-encoded ones are parsed here: Starlette decodes unescaped bytes as Latin-1."""
    try:
        if not headers["content-type"].lower().lstrip().startswith(MULTIPART):
            fields = parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
            return ImmutableMultiDict(fields)
        parser = MultiPartParser(headers, _stream(body), max_files=0, max_fields=MAX_FIELDS)
        form = asyncio.run(parser.parse())  # in the parser's thread, where no loop runs
        return ImmutableMultiDict([(name, value) for name, value in form.multi_items() if isinstance(value, str)])
    except (ValueError, KeyError, MultiPartException):
        raise APIError(400, f"a form must be UTF-8 with at most {MAX_FIELDS:,} fields and no files") from None


async def _stream(body: bytes) -> AsyncGenerator[bytes, None]:
    yield body
    yield b""


class JsonRoute(APIRoute):
    """A route whose JSON body is parsed by `parsed_body` before FastAPI validates it."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_parsed(request: Request) -> Response:
            request = _ParsedRequest(request.scope, request.receive)
            if is_json(request) and await request.body():
                await parsed_body(request)
            return await handle(request)

        return handle_parsed


class _ParsedRequest(Request):
    async def json(self) -> Any:
        return await parsed_body(self)
