"""What the page must know of a model to offer it: its task, what it takes, and something to try."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ...lens.parts import n_parameters
from ..models import Served
from ..settings import Settings
from .examples import examples_for

USUAL_WARMTH = 0.8  # for a model that searches unless told otherwise


class Picture(BaseModel):
    """The images a model reads; `bright` where most of theirs is light, as paper is."""

    height: int
    width: int
    channels: int
    bright: bool


class Steps(BaseModel):
    """The series a model reads, and how far it sees."""

    context: int
    horizon: int
    columns: list[str]


class Shown(BaseModel):
    """One model. Fields that its task has no use for are null or empty; an example is one text, or those it takes."""

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
    image: Picture | None = None
    series: Steps | None = None


class Offer(BaseModel):
    """All of them, and the limits a person may run into."""

    models: list[Shown]
    look: bool
    max_characters: int
    max_items: int
    max_alternatives: int
    max_new_tokens: int


def offer(models: list[Served], settings: Settings) -> Offer:
    """What the server has."""
    return Offer(
        models=[describe(one) for one in models],
        look=settings.look,
        max_characters=settings.max_characters,
        max_items=settings.max_items,
        max_alternatives=settings.max_alternatives,
        max_new_tokens=settings.max_new_tokens,
    )


def describe(served: Served) -> Shown:
    """One model."""
    predictor = served.predictor
    return Shown(
        name=served.name,
        task=served.task,
        family=predictor.config.family,
        parameters=n_parameters(predictor.module),
        examples=examples_for(predictor),
        **TASKS[served.task](predictor) if served.task in TASKS else {},
    )


def _translation(predictor: Any) -> dict[str, Any]:
    return {"source": predictor.settings.source, "target": predictor.settings.target}


def _language_model(predictor: Any) -> dict[str, Any]:
    own = predictor.generation
    return {"temperature": own.temperature if own.sample else USUAL_WARMTH, "context": predictor.limit}


def _classification(predictor: Any) -> dict[str, Any]:
    own = predictor.settings
    return {"labels": list(own.labels), "scores": own.means == "score", "texts": own.texts}


def _masked(predictor: Any) -> dict[str, Any]:
    return {"mask": predictor.settings.mask}


def _images(predictor: Any) -> dict[str, Any]:
    channels, height, width = predictor.shape
    mean = sum(predictor.settings.mean) / channels
    picture = Picture(height=height, width=width, channels=channels, bright=mean > 0.5)
    return {"labels": list(predictor.settings.labels), "image": picture}


def _forecasting(predictor: Any) -> dict[str, Any]:
    module = predictor.module
    columns = list(predictor.settings.columns)
    return {"series": Steps(context=module.context_length, horizon=module.head.horizon, columns=columns)}


TASKS = {
    "translation": _translation,
    "language_model": _language_model,
    "classification": _classification,
    "masked": _masked,
    "images": _images,
    "forecasting": _forecasting,
}
