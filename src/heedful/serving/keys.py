"""API keys: where clients may put them, and whether they are valid.

A key may be in `Authorization: Bearer …`, as OpenAI's clients send it, or be the `api_key` of the query or, in
LibreTranslate's routes, of the body.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from starlette.datastructures import Headers
from starlette.requests import Request

from .bodies import parsed_body
from .errors import APIError

KEY_IN_BODY = ("/translate", "/detect")  # where LibreTranslate's clients send it


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

    def client(self, headers: Headers) -> str | None:
        """Return the hash of the valid key in the Authorization header, or None."""
        return next((_hash(key).hex() for key in _bearer(headers) if self._hashes and self._is_valid(key)), None)

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
    yield from _bearer(request.headers)
    if key := request.query_params.get("api_key"):
        yield key


def _bearer(headers: Headers) -> Iterator[str]:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer":
        yield token.encode("latin-1").decode("utf-8", "replace").strip()  # headers are decoded as Latin-1


def _invalid_key(request: Request, *, wrong: bool) -> APIError:
    """Return the error: with 401 under /v1/, as OpenAI has it, else with 403, as LibreTranslate has it."""
    status, code = (401, "invalid_api_key") if request.scope["path"].startswith("/v1/") else (403, None)
    where = ", or as api_key in the body" if request.scope["path"] in KEY_IN_BODY else ""
    missing = f"this server needs an API key: as Authorization: Bearer KEY, or as api_key in the query{where}"
    return APIError(status, "the API key is wrong" if wrong else missing, code=code)


def _hash(key: str) -> bytes:
    return sha256(key.encode("utf-8", "surrogatepass")).digest()
