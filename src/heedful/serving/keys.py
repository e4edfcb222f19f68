"""API keys: required on every route but a few that say nothing about what people ask.

A key may stand in `Authorization: Bearer …`, as OpenAI's clients send it, or be the `api_key` of the query or the body,
as LibreTranslate's do. The guard has the whole body by then and hands it on unread, so a route reads it as usual and
need not know of keys.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterable, Iterator
from hashlib import sha256

from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request

from .forms import FORMS, MOST, form_of, kind_of
from .refusals import Refusal


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
        raise Refusal(status, "the API key is wrong" if wrong else missing, code=code)

    def _holds(self, key: str) -> bool:
        """In a time that says nothing about the key: all hashes are compared, whole."""
        given = _hash(key)
        return sum(hmac.compare_digest(given, known) for known in self._hashes) > 0


def _of_head(request: Request) -> Iterator[str]:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield token.encode("latin-1").decode("utf-8", "replace").strip()  # a header's bytes come as Latin-1
    if key := request.query_params.get("api_key"):
        yield key


async def _in_body(request: Request) -> str | None:
    """What cannot be read has none; its route will say what is wrong with it."""
    try:
        if kind_of(request) in FORMS:
            key = (await form_of(request, max_files=MOST)).get("api_key")
        else:
            body = json.loads(await request.body() or b"null")
            key = body.get("api_key") if isinstance(body, dict) else None
    except (ValueError, RecursionError, MultiPartException, HTTPException):
        return None
    return key if isinstance(key, str) else None


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
