"""What goes in and out, for the schema and for those who read it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ..forms import FORMS
from .parameters import FORMATS, JSON


class _Shown(BaseModel):
    """Its fields are named as LibreTranslate's are: translatedText."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class DetectedLanguage(BaseModel):
    """A language that a text may be in."""

    confidence: float = Field(ge=0, le=100, description="Among the languages that are served; 0: nothing is known.")
    language: str


class Translation(_Shown):
    """Of one text, or of several in the same order: then each field is an array."""

    translated_text: str | list[str]
    detected_language: DetectedLanguage | list[DetectedLanguage] = Field(
        default_factory=list, description="Only where the source was auto."
    )
    alternatives: list[str] | list[list[str]] = Field(default_factory=list, description="Only where asked for.")


class Language(BaseModel):
    """A language, and those it is translated into."""

    code: str
    name: str
    targets: list[str]


class NamedLanguage(BaseModel):
    """A language to begin with."""

    code: str
    name: str


class FrontendLanguages(BaseModel):
    """What a page shows first."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(_Shown):
    """What a page should know."""

    char_limit: int
    frontend_timeout: int
    api_keys: bool
    key_required: bool
    suggestions: bool
    files_translation: bool
    supported_files_format: list[str]
    language: FrontendLanguages


_TEXT = {"type": "string", "minLength": 1}
_Q = {"q": {"oneOf": [_TEXT, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}}
_KEY = {"api_key": {"type": "string"}}
_TRANSLATE: dict[str, Any] = {
    **_Q,
    "source": {**_TEXT, "description": "The code of a language, or auto.", "example": "en"},
    "target": {**_TEXT, "description": "The code of a language.", "example": "ko"},
    "format": {"type": "string", "enum": list(FORMATS), "default": FORMATS[0]},
    "alternatives": {"type": "integer", "minimum": 0, "default": 0},
    **_KEY,
}


def _in_body(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """A form or JSON, for the schema. (The query is read too; to say so would be to say that nothing is required.)"""
    schema = {"type": "object", "properties": properties, "required": list(required)}
    kinds = {kind: {"schema": schema} for kind in (JSON, *FORMS)}
    return {"requestBody": {"content": kinds, "required": bool(required)}}


def _in_query(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "parameters": [
            {"name": name, "in": "query", "schema": schema, "required": name in required}
            for name, schema in properties.items()
        ]
    }


TRANSLATE = _in_body(_TRANSLATE, "q", "source", "target")
DETECT = _in_body(_Q | _KEY, "q")
DETECT_GET = _in_query({"q": _TEXT} | _KEY, "q")
LANGUAGES = _in_body(_KEY)
LANGUAGES_GET = _in_query(_KEY)
