"""The parameters of a LibreTranslate request, sent as JSON, as a form, or in the query."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from fastapi import Request
from starlette.datastructures import ImmutableMultiDict

from ..bodies import FORMS, content_type, is_json, parsed_body
from ..errors import APIError
from ..settings import Settings

JSON = "application/json"
FORMATS = ("text", "html")
T = TypeVar("T")

_SURROGATE = re.compile("[\ud800-\udfff]")  # half of a pair; texts may have a million characters


@dataclass(frozen=True)
class TranslateRequest:
    """The parameters of /translate. If the texts came as an array (`is_array`), so does the answer."""

    texts: list[str]
    is_array: bool
    source: str
    target: str
    html: bool
    alternatives: int


async def request_parameters(request: Request) -> dict[str, Any]:
    """Return all parameters that are not null by name; those of the body override those of the query."""
    parameters = _fields(request.query_params)
    if await request.body():
        if not is_json(request) and (kind := content_type(request)) not in FORMS:
            raise APIError(415, f"the body must be {JSON}, {FORMS[0]} or {FORMS[1]}, not {kind[:60]!r}")
        parsed = await parsed_body(request)
        if not isinstance(parsed, dict | ImmutableMultiDict):
            raise APIError(400, f"Invalid JSON format: the body must be an object, not {_kind(parsed)}")
        parameters |= parsed if isinstance(parsed, dict) else _fields(parsed)
    return {name: value for name, value in parameters.items() if value is not None}


def translate_request(parameters: Mapping[str, Any], limits: Settings) -> TranslateRequest:
    """Check all parameters of /translate but the languages."""
    texts = requested_texts(parameters, limits)
    source, target = (_required(name, _string(name, parameters.get(name, ""))) for name in ("source", "target"))
    alternatives = _count(parameters.get("alternatives", 0), limits.max_alternatives)
    form = _string("format", parameters.get("format", "")) or "text"
    if form not in FORMATS:
        raise APIError(400, f"{form[:40]!r} format is not supported; the formats are: {', '.join(FORMATS)}")
    return TranslateRequest(texts, isinstance(parameters["q"], list), source, target, form == "html", alternatives)


def requested_texts(parameters: Mapping[str, Any], limits: Settings) -> list[str]:
    """Return the texts of `q`; raise APIError if they are missing, too many or too long."""
    q = _required("q", parameters.get("q"))
    if not isinstance(q, str | list):
        raise APIError(400, f"Invalid request: q must be a string or an array of strings, not {_kind(q)}")
    texts = [_string("q", text) for text in ([q] if isinstance(q, str) else q)]
    if len(texts) > limits.max_items:
        raise APIError(400, f"Invalid request: request ({len(texts)} texts) exceeds the limit ({limits.max_items})")
    for text in texts:
        if len(text) > limits.max_characters:
            size = f"{len(text)} characters"
            raise APIError(400, f"Invalid request: request ({size}) exceeds text limit ({limits.max_characters})")
    return texts


def _fields(fields: ImmutableMultiDict[str, Any]) -> dict[str, Any]:
    """Return fields by name; the values of a repeated field as a list."""
    return {name: values[0] if len(values := fields.getlist(name)) == 1 else values for name in fields}


def _required(name: str, value: T) -> T:
    if value in (None, "", []):
        raise APIError(400, f"Invalid request: missing {name} parameter")
    return value


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise APIError(400, f"Invalid request: {name} must be a string, not {_kind(value)}")
    if _SURROGATE.search(value):
        raise APIError(400, f"Invalid request: {name} contains a lone surrogate, which is not a character")
    return value


def _count(value: object, most: int) -> int:
    if isinstance(value, str) and value.isdecimal() and len(value) < 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise APIError(400, "Invalid request: alternatives parameter is not a number")
    if not 0 <= value <= most:
        raise APIError(400, f"Invalid request: alternatives parameter must be >= 0 and <= {most}")
    return value


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return kinds.get(type(value), "a number")
