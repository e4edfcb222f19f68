"""What is served, as the page needs to know it, with something to try for whoever opens it.

The examples are texts that a model can read, in a language it seems to know.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from ...data.text_tokenizers import encode
from ...errors import DataError
from ...lens.parts import n_parameters
from ..models import Served
from ..settings import Settings

SENTENCES = {
    "en": (
        "I am a student.",
        "The cat is sleeping in the garden.",
        "My friend bought a book yesterday.",
        "Where did you learn to cook so well?",
    ),
    "ko": (
        "나는 학생이다.",
        "고양이가 정원에서 자고 있다.",
        "친구가 어제 책을 샀다.",
        "오늘은 날씨가 참 좋네요.",
    ),
    "de": ("Ich lese gern am Abend.", "Wo ist der Bahnhof?"),
    "fr": ("J'aime lire le soir.", "Où est la gare ?"),
    "es": ("Me gusta leer por la tarde.", "¿Dónde está la estación?"),
    "ja": ("私は学生です。", "駅はどこですか。"),
    "zh": ("我是学生。", "车站在哪里?"),
}
BEGINNINGS = ("Once upon a time", "The little door at the end of the garden", "옛날 옛적에", "오늘 아침")
OPINIONS = (
    "I enjoyed every minute of it.",
    "It broke after two days, and nobody answered my letters.",
    "기대했던 것보다 훨씬 좋았어요.",
    "너무 실망스러워서 다시는 사지 않겠어요.",
)
PAIRS = (
    ("A man is playing the guitar.", "Someone makes music."),
    ("한 남자가 기타를 친다.", "누군가 음악을 연주한다."),
)
QUESTIONS = (
    ("When did they leave?", "The family packed on Sunday. They left on Monday morning and came back a week later."),
    ("훈민정음은 언제 반포되었나?", "세종대왕은 1443년에 훈민정음을 만들었고, 1446년에 반포했다."),
)
ENTITIES = ("Marie Curie was born in Warsaw and worked in Paris.", "세종대왕은 서울에서 태어났다.")
GAPS = ("The cat sleeps on the {}.", "She drinks a cup of {} every morning.", "나는 {}에 간다.")
MEANINGS = (
    ("A cat is sleeping on the sofa.", "The kitten takes a nap.", "The train leaves at nine.", "When do we depart?"),
    ("고양이가 소파에서 자고 있다.", "새끼 고양이가 낮잠을 잔다.", "기차는 아홉 시에 떠난다.", "언제 출발하나요?"),
)


def examples_for(predictor: Any) -> list[list[str]]:
    """Each a list of the texts it takes: one, two, or several to compare. None for what is not text."""
    settings = predictor.settings
    match predictor.task:
        case "translation":
            return _each(SENTENCES.get(settings.source.partition("-")[0], ()))
        case "text-to-text":
            return _read(predictor, _each(SENTENCES["en"] + SENTENCES["ko"]))
        case "language_model":
            return _read(predictor, _each(BEGINNINGS))
        case "classification":
            return _read(predictor, [list(pair) for pair in PAIRS] if settings.texts == 2 else _each(OPINIONS))
        case "question-answering":
            return _read(predictor, [list(pair) for pair in QUESTIONS])
        case "tagging":
            return _read(predictor, _each(ENTITIES))
        case "masked":
            return _read(predictor, _each(tuple(text.format(settings.mask) for text in GAPS)))
        case "embedding":
            return _read(predictor, [list(texts) for texts in MEANINGS])
    return []


def _each(texts: tuple[str, ...]) -> list[list[str]]:
    return [[text] for text in texts]


def _read(predictor: Any, offered: list[list[str]]) -> list[list[str]]:
    return [texts for texts in offered if all(_knows(predictor.tokenizer, text) for text in texts)]


def _knows(tokenizer: Any, text: str) -> bool:
    """Whether a tokeniser has pieces for a text: it comes back, and does not fall apart into bytes."""
    try:
        ids = encode(tokenizer, text)
    except DataError:
        return False
    return len(ids) <= len(text) + 3 and _letters(text) <= _letters(tokenizer.decode(ids))


def _letters(text: str) -> set[str]:
    return {letter for letter in unicodedata.normalize("NFC", text).casefold() if letter.isalpha()}


DEFAULT_TEMPERATURE = 0.8  # for a model that searches unless told otherwise


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
        models=[describe(model) for model in models],
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


def _image_fields(predictor: Any) -> dict[str, Any]:
    channels, height, width = predictor.shape
    bright = sum(predictor.settings.mean) / channels > 0.5
    picture = Picture(height=height, width=width, channels=channels, bright=bright)
    return {"labels": list(predictor.settings.labels), "image": picture}


def _series_fields(predictor: Any) -> dict[str, Any]:
    module, columns = predictor.module, list(predictor.settings.columns)
    return {"series": Steps(context=module.context_length, horizon=module.head.horizon, columns=columns)}


def _sampling_fields(predictor: Any) -> dict[str, Any]:
    generation = predictor.generation
    return {
        "temperature": generation.temperature if generation.sample else DEFAULT_TEMPERATURE,
        "context": predictor.limit,
    }


def _label_fields(predictor: Any) -> dict[str, Any]:
    settings = predictor.settings
    return {"labels": list(settings.labels), "scores": settings.means == "score", "texts": settings.texts}


TASKS: dict[str, Callable[[Any], dict[str, Any]]] = {  # what only models of a task have
    "translation": lambda predictor: {"source": predictor.settings.source, "target": predictor.settings.target},
    "language_model": _sampling_fields,
    "classification": _label_fields,
    "masked": lambda predictor: {"mask": predictor.settings.mask},
    "images": _image_fields,
    "forecasting": _series_fields,
}
