"""Errors as HTTP responses: in OpenAI's format under /v1/, in LibreTranslate's everywhere else."""

import json
import math
from typing import Any

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from ..errors import HeedfulError, MissingDependencyError, NonFiniteOutputError
from .client_errors import PENALTY

TYPES = {401: "authentication_error", 403: "permission_error"}  # OpenAI's names
RETRY_AFTER = 1.0  # seconds, where nothing better is known


class APIError(Exception):
    """A request that is refused, with its HTTP status and the reason. `code` and `param` are for OpenAI's clients."""

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


class Busy(APIError):  # noqa: N818  (the client did nothing wrong)
    """As many requests as may run at the same time are running already."""

    def __init__(self) -> None:
        super().__init__(503, "the server is busy; try again soon", code="busy")


class Overloaded(APIError):  # noqa: N818  (the client did nothing wrong)
    """Too many items wait for a model already; the client may retry after `retry_after` seconds."""

    def __init__(self, retry_after: float = RETRY_AFTER) -> None:
        super().__init__(503, "the model is busy; try again soon", code="busy", retry_after=retry_after)


class TooManyErrors(APIError):  # noqa: N818
    """The client has sent too many invalid requests."""

    def __init__(self) -> None:
        reason = "too many of your requests are invalid; correct them, and try again in a few seconds"
        super().__init__(429, reason, code="rate_limit_exceeded", retry_after=PENALTY)


class DeadlineExceeded(APIError):  # noqa: N818  (the client did nothing wrong)
    """A request took longer than the server allows."""

    def __init__(self) -> None:
        super().__init__(503, "the answer took too long; ask for less, or try again", code="timeout")


class PlainError(BaseModel):
    """The body of an error in LibreTranslate's format."""

    error: str


class ErrorDetails(BaseModel):
    """The details of an error in OpenAI's format."""

    message: str
    type: str
    param: str | None
    code: str | None


class V1Error(BaseModel):
    """The body of an error in OpenAI's format."""

    error: ErrorDetails


STATUSES = {
    400: "The request is invalid, or the model cannot do what it asks for.",
    404: "There is no such model or route.",
    405: "The route does not support this method.",
    408: "The request did not arrive in time.",
    413: "The request is too large.",
    415: "The route does not support this content type.",
    429: "The client's running requests need too much work, or too many were invalid; see Retry-After.",
    421: "The request is for another host name.",
    500: "An internal error; the server's log has the details under the id in X-Request-ID.",
    501: "The server lacks a package that this needs.",
    503: "The server is busy or stopping, or the request took too long; retry after the seconds in Retry-After.",
}


# For `responses=` of a route, so that the schema lists its errors.
def _responses(model: type[BaseModel], key_status: int) -> dict[int | str, dict[str, Any]]:
    statuses = {**STATUSES, key_status: "The API key is missing or wrong."}
    return {status: {"model": model, "description": text} for status, text in statuses.items()}


PLAIN_ERRORS, V1_ERRORS = _responses(PlainError, 403), _responses(V1Error, 401)


class Json(JSONResponse):
    """Strict JSON without NaN. Lone surrogates, which UTF-8 cannot encode, are escaped."""

    def render(self, content: Any) -> bytes:
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


def error_response(path: str, refusal: APIError) -> Json:
    """Return an error in the format of the API that the path belongs to."""
    status = refusal.status
    error: Any = refusal.message
    if path.startswith("/v1/"):
        kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
        error = {"message": refusal.message, "type": kind, "param": refusal.param, "code": refusal.code}
    headers = {401: {"WWW-Authenticate": "Bearer"}, 408: {"Connection": "close"}}.get(status, {})
    if status in (429, 503):
        headers["Retry-After"] = str(max(1, math.ceil(refusal.retry_after or RETRY_AFTER)))
    return Json({"error": error}, status, headers)


EVENTS, DONE = "text/event-stream", b"data: [DONE]\n\n"  # the type of a stream, and its end


def event(data: bytes) -> bytes:
    """Return JSON as a server-sent event."""
    return b"data: " + data + b"\n\n"


EXPECTED = (APIError, RequestValidationError, HTTPException, HeedfulError)


def as_api_error(error: Exception) -> APIError | None:
    """Return an exception as an APIError; None for an unexpected one."""
    if isinstance(error, APIError):
        return error
    if isinstance(error, RequestValidationError):
        return _invalid(error)
    if isinstance(error, HTTPException):
        return APIError(error.status_code, str(error.detail))
    if isinstance(error, MissingDependencyError):
        return APIError(501, str(error))
    if isinstance(error, NonFiniteOutputError):  # the client did nothing wrong
        return APIError(500, str(error))
    return APIError(400, str(error)) if isinstance(error, HeedfulError) else None


async def answer_error(request: Request, error: Exception) -> Json:
    """Handle an exception of a route. Those that are not EXPECTED go on to the middleware."""
    refusal = as_api_error(error)
    assert refusal is not None  # it is one of EXPECTED
    response = error_response(request.url.path, refusal)
    response.headers.update(getattr(error, "headers", None) or {})  # Allow, for an unsupported method
    return response


def _invalid(error: RequestValidationError) -> APIError:
    """Report the first invalid field by its name. The value is not repeated: it may be long, or a key."""
    fault = error.errors()[0]
    if isinstance(error.body, bytes):  # it was not parsed as JSON
        return APIError(415, "send JSON with Content-Type: application/json", code="invalid_content_type")
    names = [str(name) for name in fault["loc"] if name not in ("body", "query", "path")]
    where = ".".join(names)
    return APIError(400, f"{where or 'the body'}: {fault['msg']}", param=names[0] if names else None)
