"""What a request asks for, however it was sent: as JSON, as a form, or in its query."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import Request
from starlette.datastructures import ImmutableMultiDict

from ..errors import APIError
from ..inputs import FORMS, content_type, form_fields
from ..settings import Settings

JSON = "application/json"
FORMATS = ("text", "html")


@dataclass(frozen=True)
class Texts:
    """One text, or several in an array: the answer has the same form."""

    texts: list[str]
    several: bool


@dataclass(frozen=True)
class TranslateRequest:
    """What /translate is asked for."""

    q: Texts
    source: str
    target: str
    html: bool
    alternatives: int


async def request_parameters(request: Request) -> dict[str, Any]:
    """All parameters by name; those of the body win. One that is null is not given."""
    parameters = _fields(request.query_params)
    if body := await request.body():
        kind = content_type(request)
        if kind == JSON or kind.endswith("+json"):
            parameters |= _members(body)
        elif kind in FORMS:
            try:
                parameters |= _fields(await form_fields(request))
            except ValueError:
                raise APIError(400, "Invalid request: a form is in UTF-8, with a thousand fields at most") from None
        else:
            raise APIError(415, f"a body is {JSON}, {FORMS[0]} or {FORMS[1]}, not {kind[:60]!r}")
    return {name: value for name, value in parameters.items() if value is not None}


def translate_request(parameters: Mapping[str, Any], limits: Settings) -> TranslateRequest:
    """Checked, but for the languages."""
    q = texts_of(parameters, limits)
    source, target = _word(parameters, "source"), _word(parameters, "target")
    alternatives = _count(parameters.get("alternatives", 0), limits.max_alternatives)
    form = _string("format", parameters.get("format", "")) or "text"
    if form not in FORMATS:
        raise APIError(400, f"{form[:40]!r} format is not supported; the formats are: {', '.join(FORMATS)}")
    return TranslateRequest(q, source, target, form == "html", alternatives)


def texts_of(parameters: Mapping[str, Any], limits: Settings) -> Texts:
    """The texts, not too many and none too long."""
    q = parameters.get("q")
    if q is None or q in ("", []):
        raise _missing("q")
    if not isinstance(q, str | list):
        raise APIError(400, f"Invalid request: q is a string or an array of strings, not {_kind(q)}")
    texts = [_string("q", text) for text in ([q] if isinstance(q, str) else q)]
    if len(texts) > limits.max_items:
        raise APIError(400, f"Invalid request: request ({len(texts)} texts) exceeds the limit ({limits.max_items})")
    for text in texts:
        if len(text) > limits.max_characters:
            size = f"{len(text)} characters"
            raise APIError(400, f"Invalid request: request ({size}) exceeds text limit ({limits.max_characters})")
    return Texts(texts, isinstance(q, list))


def _fields(sent: ImmutableMultiDict[str, Any]) -> dict[str, Any]:
    """A field that was sent several times is an array."""
    return {name: values[0] if len(values := sent.getlist(name)) == 1 else values for name in sent}


def _members(body: bytes) -> dict[str, Any]:
    try:
        parameters = json.loads(body)
    except (ValueError, RecursionError):
        raise APIError(400, "Invalid JSON format: this is not JSON") from None
    if not isinstance(parameters, dict):
        raise APIError(400, f"Invalid JSON format: the parameters are members of an object, not of {_kind(parameters)}")
    return parameters


def _word(parameters: Mapping[str, Any], name: str) -> str:
    word = _string(name, parameters.get(name, ""))
    if not word:
        raise _missing(name)
    return word


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise APIError(400, f"Invalid request: {name} is a string, not {_kind(value)}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise APIError(400, f"Invalid request: {name} has half a surrogate pair in it, which is no character")
    return value


def _count(value: object, most: int) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise APIError(400, "Invalid request: alternatives parameter is not a number")
    if not 0 <= value <= most:
        raise APIError(400, f"Invalid request: alternatives parameter must be >= 0 and <= {most}")
    return value


def _missing(name: str) -> APIError:
    return APIError(400, f"Invalid request: missing {name} parameter")


def _kind(value: object) -> str:
    """What JSON calls it."""
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
