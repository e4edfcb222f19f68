"""LibreTranslate's routes."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request

from ...tasks.predictor import ItemError
from ..house import asks, house_of
from ..leaving import while_here
from ..refusals import PLAIN_REFUSALS, Refusal
from ..worker import run_in_thread
from .detecting import Detected, detect
from .names import name_of
from .parameters import Wish, given, texts_of, wish_of
from .schemas import (
    DETECT,
    DETECT_GET,
    LANGUAGES,
    LANGUAGES_GET,
    TRANSLATE,
    DetectedLanguage,
    FrontendLanguages,
    FrontendSettings,
    Language,
    NamedLanguage,
    Translation,
)
from .translating import AUTO, Translated, parts, translated
from .translators import Translators

PAUSE = 500  # milliseconds that a page waits after the last key before it translates

router = APIRouter(tags=["LibreTranslate"], responses=PLAIN_REFUSALS)


@router.post("/translate", openapi_extra=TRANSLATE, response_model_exclude_unset=True)
async def translate(request: Request) -> Translation:
    """Translate a text, or several; plain, or HTML whose tags are kept."""
    house = house_of(request)
    wish = wish_of(await given(request), house.settings)
    return await while_here(request, _translation(request, wish))


@router.get("/detect", openapi_extra=DETECT_GET, operation_id="detect_get")
@router.post("/detect", openapi_extra=DETECT, operation_id="detect_post")
async def detected(request: Request) -> list[DetectedLanguage]:
    """Which of the served languages a text is in, the likeliest first."""
    house = house_of(request)
    q = texts_of(await given(request), house.settings)
    found = detect("\n".join(q.texts), Translators.of(house.models).languages)
    return [_shown(one) for one in found]


@router.get("/languages", openapi_extra=LANGUAGES_GET, operation_id="languages_get")
@router.post("/languages", openapi_extra=LANGUAGES, operation_id="languages_post")
async def languages(request: Request) -> list[Language]:
    """The languages of the translators, and what each is translated into."""
    translators = Translators.of(house_of(request).models)
    return [
        Language(code=code, name=name_of(code), targets=translators.targets(code)) for code in translators.languages
    ]


@router.get("/frontend/settings")
async def frontend_settings(request: Request) -> FrontendSettings:
    """What a page for translating should know."""
    house = house_of(request)
    targets = [target for _, target in Translators.of(house.models).pairs]
    first = targets[0] if targets else ""
    return FrontendSettings(
        char_limit=house.settings.max_characters,
        frontend_timeout=PAUSE,
        api_keys=bool(house.settings.api_keys),
        key_required=bool(house.settings.api_keys),
        suggestions=False,
        files_translation=False,
        supported_files_format=[],
        language=FrontendLanguages(
            source=NamedLanguage(code=AUTO, name="Auto Detect"), target=NamedLanguage(code=first, name=name_of(first))
        ),
    )


async def _translation(request: Request, wish: Wish) -> Translation:
    house = house_of(request)
    size = sum(map(len, wish.q.texts))
    apart, detected = await run_in_thread(size, parts, wish, Translators.of(house.models))
    found: dict[int, Translated] = {}
    for part in apart:
        if part.model is not None:
            asks(request, part.model)
        try:
            found |= zip(part.places, await translated(part, wish.alternatives, house.metrics), strict=True)
        except ItemError as error:
            raise Refusal(400, str(error) if wish.q.several else error.reason) from None
    answers = [found[place] for place in range(len(found))]
    fields: dict[str, list[Any]] = {"translated_text": [answer.text for answer in answers]}
    if detected:
        fields["detected_language"] = [_shown(one) for one in detected]
    if wish.alternatives:
        fields["alternatives"] = [answer.alternatives for answer in answers]
    return Translation(**(fields if wish.q.several else {name: values[0] for name, values in fields.items()}))


def _shown(found: Detected) -> DetectedLanguage:
    return DetectedLanguage(confidence=found.confidence, language=found.language)
