"""What is refused, and how each API says so: under /v1/ as OpenAI does, everywhere else as LibreTranslate does."""

import json
import math
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from ..errors import HeedfulError, MissingDependencyError
from .worker import DeadlineExceeded, Overloaded

TYPES = {401: "authentication_error", 403: "permission_error"}  # as OpenAI calls them
AGAIN = 1.0  # seconds until another try, where nobody knows better


class APIError(Exception):  # nothing has gone wrong here
    """A request that is not answered, and why. `code` and `param` are for OpenAI's clients."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.code, self.param, self.retry_after = code, param, retry_after


class PlainError(BaseModel):
    """As LibreTranslate says it."""

    error: str


class ErrorDetails(BaseModel):
    """What went wrong, for people and for programs."""

    message: str
    type: str
    param: str | None
    code: str | None


class V1Error(BaseModel):
    """As OpenAI says it."""

    error: ErrorDetails


STATUSES = {
    400: "The request cannot be understood, or asks for what the model cannot do.",
    404: "There is no such model or route.",
    405: "The route takes another method.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    415: "The body is of a kind that the route does not read.",
    421: "The server goes by another name.",
    500: "Something went wrong here; the log knows more, by the id in X-Request-ID.",
    501: "The server lacks a package for this.",
    503: "The server is busy or stopping, or the time was over; try again after the seconds in Retry-After.",
}


# For `responses=` of a route, so that the schema tells the truth.
def _responses(model: type[BaseModel], key_status: int) -> dict[int | str, dict[str, Any]]:
    statuses = {**STATUSES, key_status: "The API key is missing or wrong."}
    return {status: {"model": model, "description": text} for status, text in statuses.items()}


PLAIN_ERRORS, V1_ERRORS = _responses(PlainError, 403), _responses(V1Error, 401)


class Json(JSONResponse):
    """Strict JSON: no NaN; half a surrogate pair, which UTF-8 has no bytes for, is escaped."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def error_response(path: str, refusal: APIError) -> Json:
    """A refusal as clients of this path understand it."""
    status = refusal.status
    error: Any = refusal.message
    if path.startswith("/v1/"):
        kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        error = {"message": refusal.message, "type": kind, "param": refusal.param, "code": refusal.code}
    headers = {401: {"WWW-Authenticate": "Bearer"}, 408: {"Connection": "close"}}.get(status, {})
    if refusal.retry_after is not None or status == 503:
        headers["Retry-After"] = str(max(1, math.ceil(refusal.retry_after or AGAIN)))
    return Json({"error": error}, status, headers)


def as_api_error(error: Exception) -> APIError | None:
    """What an error means for a client; None for one that should not have happened."""
    if isinstance(error, APIError):
        return error
    if isinstance(error, Overloaded):
        return APIError(503, "the model has too much to do; try again soon", code="busy", retry_after=error.retry_after)
    if isinstance(error, DeadlineExceeded):
        return APIError(503, "the answer took too long; ask for less, or try again", code="timeout", retry_after=AGAIN)
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return APIError(error.status_code, str(error.detail))
    if isinstance(error, MissingDependencyError):
        return APIError(501, str(error))
    return APIError(400, str(error)) if isinstance(error, HeedfulError) else None


def handle(app: FastAPI) -> None:
    """Let an app refuse in this way. What is not foreseen goes on to the middleware."""
    for kind in (APIError, Overloaded, DeadlineExceeded, RequestValidationError, HTTPException, HeedfulError):
        app.add_exception_handler(kind, _answer)


async def _answer(request: Request, error: Exception) -> Json:
    refusal = as_api_error(error)
    assert refusal is not None  # `handle` names only what it knows
    answer = error_response(request.url.path, refusal)
    answer.headers.update(getattr(error, "headers", None) or {})  # a wrong method's Allow
    return answer


def _invalid(error: RequestValidationError) -> APIError:
    """The first fault by its place; what was given is not repeated, for it may be long, or a key."""
    fault = error.errors()[0]
    if isinstance(error.body, bytes):  # nobody has read it as JSON
        return APIError(415, "send JSON, and say so: Content-Type: application/json", code="invalid_content_type")
    if fault["type"] == "json_invalid":
        return APIError(400, "the body is not valid JSON", code="invalid_json")
    names = [str(name) for name in fault["loc"] if name not in ("body", "query", "path")]
    where = ".".join(names)
    return APIError(400, f"{where or 'the body'}: {fault['msg']}", param=names[0] if names else None)
