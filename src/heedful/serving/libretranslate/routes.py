"""LibreTranslate's routes, with the schemas of their requests and responses."""

from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from ...demo import unknown_words
from ..bodies import FORMS
from ..errors import PLAIN_ERRORS, APIError
from ..state import cancel_on_disconnect, note_model, server_state
from ..threads import run_in_thread
from .languages import DetectedLanguage, Translators, detect, name_of
from .parameters import FORMATS, JSON, TranslateRequest, request_parameters, requested_texts, translate_request
from .translating import AUTO, TextTranslation, group_texts, translate_group


class _CamelCase(BaseModel):
    """A model whose JSON names are in camel case, such as translatedText."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class Translation(_CamelCase):
    """The translation of one text, or of several in the same order: then each field is an array."""

    translated_text: str | list[str]
    detected_language: DetectedLanguage | list[DetectedLanguage] = Field(
        default_factory=list, description="Only if the source is auto."
    )
    alternatives: list[str] | list[list[str]] = Field(default_factory=list, description="Only if requested.")
    errors: list[str | None] = Field(
        default_factory=list,
        description="Only if some of several texts were refused, whose translation is empty: each reason, or null.",
    )
    unknown_words: list[str] | list[list[str]] = Field(
        default_factory=list, description="Only if the model knows its vocabulary: words outside it, which it guessed."
    )


class NamedLanguage(BaseModel):
    """A language's code and its English name."""

    code: str
    name: str


class Language(NamedLanguage):
    """A language and the codes of those it is translated into."""

    targets: list[str]


class FrontendLanguages(BaseModel):
    """The languages that a page preselects."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(_CamelCase):
    """The server's settings that a translation page uses."""

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
    """Describe a form or JSON body. (The query is read too; describing it would make every field optional.)"""
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


FRONTEND_TIMEOUT = 500  # milliseconds between the last keystroke and the translation

router = APIRouter(tags=["LibreTranslate"], responses=PLAIN_ERRORS)


@router.post(
    "/translate", openapi_extra=_in_body(_TRANSLATE, "q", "source", "target"), response_model_exclude_unset=True
)
async def translate(request: Request) -> Translation:
    """Translate one or several texts, plain or HTML with its tags."""
    body = translate_request(await request_parameters(request), server_state(request).settings)
    return await cancel_on_disconnect(request, _translation(request, body))


@router.get("/detect", openapi_extra=_in_query({"q": _TEXT} | _KEY, "q"), operation_id="detect_get")
@router.post("/detect", openapi_extra=_in_body(_Q | _KEY, "q"), operation_id="detect_post")
async def detected(request: Request) -> list[DetectedLanguage]:
    """Detect which of the served languages a text is in, likeliest first."""
    state = server_state(request)
    texts = requested_texts(await request_parameters(request), state.settings)
    text = "\n".join(texts)
    return await run_in_thread(len(text), detect, text, Translators.of(state.models).languages)


@router.get("/languages", openapi_extra=_in_query(_KEY), operation_id="languages_get")
@router.post("/languages", openapi_extra=_in_body(_KEY), operation_id="languages_post")
async def languages(request: Request) -> list[Language]:
    """List the languages of the translators, and what each is translated into."""
    translators = Translators.of(server_state(request).models)
    return [
        Language(code=code, name=name_of(code), targets=translators.targets(code)) for code in translators.languages
    ]


@router.get("/frontend/settings")
async def frontend_settings(request: Request) -> FrontendSettings:
    """Return the settings that a translation page uses."""
    state = server_state(request)
    targets = [target for _, target in Translators.of(state.models).pairs]
    first = targets[0] if targets else ""
    return FrontendSettings(
        char_limit=state.settings.max_characters,
        frontend_timeout=FRONTEND_TIMEOUT,
        api_keys=bool(state.settings.api_keys),
        key_required=bool(state.settings.api_keys),
        suggestions=False,
        files_translation=False,
        supported_files_format=[],
        language=FrontendLanguages(
            source=NamedLanguage(code=AUTO, name="Auto Detect"), target=NamedLanguage(code=first, name=name_of(first))
        ),
    )


async def _translation(request: Request, body: TranslateRequest) -> Translation:
    state = server_state(request)
    size = sum(map(len, body.texts))
    groups, detected = await run_in_thread(size, group_texts, body, Translators.of(state.models))
    translations, unknown = [TextTranslation(text, []) for text in body.texts], [list[str]() for _ in body.texts]
    for group in groups:
        note_model(request, group.model)
        translated = await translate_group(group, body.alternatives, state.metrics)
        for index, translation in zip(group.indices, translated, strict=True):
            translations[index] = translation
            unknown[index] = unknown_words(group.model.predictor, body.texts[index])
    refused = {index: error for index, each in enumerate(translations) if (error := each.error)}
    if refused and len(refused) == len(translations):
        raise APIError(400, f"text 1: {refused[0]}" if body.is_array else refused[0])
    fields: dict[str, list[Any]] = {"translated_text": [translation.text for translation in translations]}
    if detected:
        fields["detected_language"] = detected
    if refused:
        fields["errors"] = [translation.error for translation in translations]
    if any(unknown):
        fields["unknown_words"] = unknown
    if body.alternatives:
        fields["alternatives"] = [translation.alternatives for translation in translations]
    return Translation(**(fields if body.is_array else {name: values[0] for name, values in fields.items()}))
