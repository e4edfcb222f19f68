"""Descriptions of the served models for the web page, with examples to try.

The examples are texts that a model can read, in a language it seems to know.
"""

import json
import unicodedata
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ...data.text_tokenizers import encode
from ...errors import DataError
from ...lens.parts import n_parameters
from ..models import Served
from ..settings import Settings

EXAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))


def examples_for(predictor: Any) -> list[list[str]]:
    """Return examples, each a list of one, two, or several texts. Empty for models that do not read text."""
    settings = predictor.settings
    sentences: dict[str, list[str]] = EXAMPLES["sentences"]
    match predictor.task:
        case "translation":
            return [[text] for text in sentences.get(settings.source.partition("-")[0], ())]
        case "text-to-text":
            examples = sentences["en"] + sentences["ko"]
        case "language_model":
            examples = EXAMPLES["beginnings"]
        case "classification":
            examples = EXAMPLES["pairs" if settings.texts == 2 else "opinions"]
        case "question-answering":
            examples = EXAMPLES["questions"]
        case "tagging":
            examples = EXAMPLES["entities"]
        case "masked":
            examples = [text.format(settings.mask) for text in EXAMPLES["gaps"]]
        case "embedding":
            examples = EXAMPLES["meanings"]
        case _:
            return []
    each = [[texts] if isinstance(texts, str) else texts for texts in examples]
    return [texts for texts in each if all(_is_covered(predictor.tokenizer, text) for text in texts)]


def _is_covered(tokenizer: Any, text: str) -> bool:
    """Return whether a tokenizer covers a text: decoding restores it, and it is not split into bytes."""
    try:
        ids = encode(tokenizer, text)
    except DataError:
        return False
    return len(ids) <= len(text) + 3 and _letters(text) <= _letters(tokenizer.decode(ids))


def _letters(text: str) -> set[str]:
    return {letter for letter in unicodedata.normalize("NFC", text).casefold() if letter.isalpha()}


DEFAULT_TEMPERATURE = 0.8  # for a model that searches unless told otherwise


class ImageInput(BaseModel):
    """The images a model reads; `bright` means that they are mostly light, like paper."""

    height: int
    width: int
    channels: int
    bright: bool


class SeriesInput(BaseModel):
    """The series a model reads, and its forecast horizon."""

    context: int
    horizon: int
    columns: list[str]


class ModelInfo(BaseModel):
    """One served model. Fields that its task does not use are null or empty."""

    name: str
    task: str
    family: str
    parameters: int
    examples: list[list[str]]
    source: str | None = None
    target: str | None = None
    labels: list[str] = []
    scores: bool = False
    texts: int | None = None
    mask: str | None = None
    temperature: float | None = None
    context: int | None = None
    image: ImageInput | None = None
    series: SeriesInput | None = None


class PageInfo(BaseModel):
    """All served models, and the server's limits."""

    models: list[ModelInfo]
    look: bool
    max_characters: int
    max_items: int
    max_alternatives: int
    max_new_tokens: int


def page_info(models: list[Served], settings: Settings) -> PageInfo:
    """Describe the served models and the server's limits."""
    limits = {name: getattr(settings, name) for name in PageInfo.model_fields if name != "models"}
    return PageInfo(models=[model_info(model) for model in models], **limits)


def model_info(served: Served) -> ModelInfo:
    """Describe one served model for the page."""
    predictor = served.predictor
    return ModelInfo(
        name=served.name,
        task=served.task,
        family=predictor.config.family,
        parameters=n_parameters(predictor.module),
        examples=examples_for(predictor),
        **_task_fields(predictor),
    )


def _task_fields(predictor: Any) -> dict[str, Any]:
    """Return the fields that only models of one task have."""
    settings = predictor.settings
    match predictor.task:
        case "translation":
            return {"source": settings.source, "target": settings.target}
        case "language_model":
            generation = predictor.generation
            temperature = generation.temperature if generation.sample else DEFAULT_TEMPERATURE
            return {"temperature": temperature, "context": predictor.limit}
        case "classification":
            return {"labels": list(settings.labels), "scores": settings.means == "score", "texts": settings.texts}
        case "masked":
            return {"mask": settings.mask}
        case "images":
            channels, height, width = predictor.shape
            bright = sum(settings.mean) / channels > 0.5
            picture = ImageInput(height=height, width=width, channels=channels, bright=bright)
            return {"labels": list(settings.labels), "image": picture}
        case "forecasting":
            context, horizon = predictor.module.context_length, predictor.module.head.horizon
            return {"series": SeriesInput(context=context, horizon=horizon, columns=list(settings.columns))}
    return {}
