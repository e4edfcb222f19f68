"""LibreTranslate's routes, and what goes in and out of them."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ...tasks.predictor import ItemError
from ..errors import PLAIN_ERRORS, APIError
from ..inputs import FORMS
from ..state import cancel_on_disconnect, note_model, server_state
from ..worker import run_in_thread
from .languages import Detected, Translators, detect, name_of
from .parameters import FORMATS, JSON, TranslateRequest, request_parameters, texts_of, translate_request
from .translating import AUTO, Translated, parts, translated


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


class NamedLanguage(BaseModel):
    """A language to begin with."""

    code: str
    name: str


class Language(NamedLanguage):
    """A language, and those it is translated into."""

    targets: list[str]


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


PAUSE = 500  # milliseconds that a page waits after the last key before it translates

router = APIRouter(tags=["LibreTranslate"], responses=PLAIN_ERRORS)


@router.post("/translate", openapi_extra=TRANSLATE, response_model_exclude_unset=True)
async def translate(request: Request) -> Translation:
    """Translate a text, or several; plain, or HTML whose tags are kept."""
    state = server_state(request)
    translate = translate_request(await request_parameters(request), state.settings)
    return await cancel_on_disconnect(request, _translation(request, translate))


@router.get("/detect", openapi_extra=DETECT_GET, operation_id="detect_get")
@router.post("/detect", openapi_extra=DETECT, operation_id="detect_post")
async def detected(request: Request) -> list[DetectedLanguage]:
    """Which of the served languages a text is in, the likeliest first."""
    state = server_state(request)
    q = texts_of(await request_parameters(request), state.settings)
    result = detect("\n".join(q.texts), Translators.of(state.models).languages)
    return [_detected_language(item) for item in result]


@router.get("/languages", openapi_extra=LANGUAGES_GET, operation_id="languages_get")
@router.post("/languages", openapi_extra=LANGUAGES, operation_id="languages_post")
async def languages(request: Request) -> list[Language]:
    """The languages of the translators, and what each is translated into."""
    translators = Translators.of(server_state(request).models)
    return [
        Language(code=code, name=name_of(code), targets=translators.targets(code)) for code in translators.languages
    ]


@router.get("/frontend/settings")
async def frontend_settings(request: Request) -> FrontendSettings:
    """What a page for translating should know."""
    state = server_state(request)
    targets = [target for _, target in Translators.of(state.models).pairs]
    first = targets[0] if targets else ""
    return FrontendSettings(
        char_limit=state.settings.max_characters,
        frontend_timeout=PAUSE,
        api_keys=bool(state.settings.api_keys),
        key_required=bool(state.settings.api_keys),
        suggestions=False,
        files_translation=False,
        supported_files_format=[],
        language=FrontendLanguages(
            source=NamedLanguage(code=AUTO, name="Auto Detect"), target=NamedLanguage(code=first, name=name_of(first))
        ),
    )


async def _translation(request: Request, translate: TranslateRequest) -> Translation:
    state = server_state(request)
    size = sum(map(len, translate.q.texts))
    apart, detected = await run_in_thread(size, parts, translate, Translators.of(state.models))
    result: dict[int, Translated] = {}
    for part in apart:
        if part.model is not None:
            note_model(request, part.model)
        try:
            result |= zip(part.places, await translated(part, translate.alternatives, state.metrics), strict=True)
        except ItemError as error:
            raise APIError(400, str(error) if translate.q.several else error.reason) from None
    answers = [result[place] for place in range(len(result))]
    fields: dict[str, list[Any]] = {"translated_text": [answer.text for answer in answers]}
    if detected:
        fields["detected_language"] = [_detected_language(item) for item in detected]
    if translate.alternatives:
        fields["alternatives"] = [answer.alternatives for answer in answers]
    return Translation(**(fields if translate.q.several else {name: values[0] for name, values in fields.items()}))


def _detected_language(result: Detected) -> DetectedLanguage:
    return DetectedLanguage(**vars(result))
