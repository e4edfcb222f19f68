"""Describes the served models for the page, with example inputs.

The examples are texts that a model's tokenizer can encode, so that they are in a language it knows.
"""

import json
import unicodedata
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from ...data.text_tokenizers import encode
from ...errors import DataError
from ...lens.document import n_parameters
from ..models import Served
from ..settings import Settings

EXAMPLES: dict[str, Any] = json.loads(Path(__file__).with_name("examples.json").read_text(encoding="utf-8"))


def _is_in_vocabulary(tokenizer: Any, text: str) -> bool:
    """Return whether a tokenizer keeps all letters of a text and does not split it into bytes."""
    try:
        ids = encode(tokenizer, text)
    except DataError:
        return False
    return len(ids) <= len(text) + 3 and _letters(text) <= _letters(tokenizer.decode(ids))


def _letters(text: str) -> set[str]:
    return {letter for letter in unicodedata.normalize("NFC", text).casefold() if letter.isalpha()}


DEFAULT_TEMPERATURE = 0.8  # for a model that does not sample by default


class ImageFormat(BaseModel):
    """The images that a model takes; `bright` if they are mostly light, such as scanned paper."""

    height: int
    width: int
    channels: int
    bright: bool


class SeriesFormat(BaseModel):
    """The series that a model takes, and how many steps it reads and forecasts."""

    context: int
    horizon: int
    columns: list[str]


class ModelDescription(BaseModel):
    """A served model. Fields that its task does not use are null or empty; an example is a list of its input texts."""

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
    image: ImageFormat | None = None
    series: SeriesFormat | None = None


class ServerDescription(BaseModel):
    """All served models, and the limits of requests."""

    models: list[ModelDescription]
    look: bool
    max_characters: int
    max_items: int
    max_alternatives: int
    max_new_tokens: int


def describe_server(models: list[Served], settings: Settings) -> ServerDescription:
    """Describe all models and limits of a server."""
    limits = {name: getattr(settings, name) for name in ServerDescription.model_fields if name != "models"}
    return ServerDescription(models=[describe_model(model) for model in models], **limits)


def describe_model(served: Served) -> ModelDescription:
    """Describe a model, with the fields of its task."""
    predictor = served.predictor
    inputs, fields = _examples_and_fields(predictor)
    examples = [[texts] if isinstance(texts, str) else texts for texts in inputs]
    if predictor.task != "translation":  # whose examples are in the source language
        tokenizer = getattr(predictor, "tokenizer", None)
        examples = [texts for texts in examples if all(_is_in_vocabulary(tokenizer, text) for text in texts)]
    return ModelDescription(
        name=served.name,
        task=served.task,
        family=predictor.config.family,
        parameters=n_parameters(predictor.module),
        examples=examples,
        **fields,
    )


def _examples_and_fields(predictor: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return example inputs (texts, pairs, or several texts to compare), and the fields that only this task has."""
    settings, sentences = predictor.settings, EXAMPLES["sentences"]
    match predictor.task:
        case "translation":
            language = settings.source.partition("-")[0]
            return sentences.get(language, []), {"source": settings.source, "target": settings.target}
        case "text-to-text":
            return sentences["en"] + sentences["ko"], {}
        case "language-model":
            generation = predictor.generation
            temperature = generation.temperature if generation.sample else DEFAULT_TEMPERATURE
            return EXAMPLES["beginnings"], {"temperature": temperature, "context": predictor.limit}
        case "classification":
            fields = {"labels": list(settings.labels), "scores": settings.means == "score", "texts": settings.texts}
            return EXAMPLES["pairs" if settings.texts == 2 else "opinions"], fields
        case "question-answering":
            return EXAMPLES["questions"], {}
        case "tagging":
            return EXAMPLES["entities"], {}
        case "masked-lm":
            return [text.format(settings.mask) for text in EXAMPLES["gaps"]], {"mask": settings.mask}
        case "embedding":
            return EXAMPLES["meanings"], {}
        case "images":
            channels, height, width = predictor.shape
            bright = sum(settings.mean) / channels > 0.5
            image = ImageFormat(height=height, width=width, channels=channels, bright=bright)
            return [], {"labels": list(settings.labels), "image": image}
        case "forecasting":
            context, horizon = predictor.module.context_length, predictor.module.head.horizon
            return [], {"series": SeriesFormat(context=context, horizon=horizon, columns=list(settings.columns))}
    return [], {}
