"""The tasks that can be trained, by name."""

from pathlib import Path
from typing import Any

from .bundle import Bundle, BundleError
from .classification.task import ClassificationTask
from .forecasting.task import ForecastingTask
from .images.task import ImagesTask
from .language_model.task import LanguageModelTask
from .masked.task import MaskedTask
from .question_answering.task import QuestionAnsweringTask
from .run import AnyTask
from .tagging.task import TaggingTask
from .text_to_text.task import TextToTextTask
from .translation.task import TranslationTask

GENERATORS = (TranslationTask, TextToTextTask, LanguageModelTask)
ENCODERS = (ClassificationTask, QuestionAnsweringTask, TaggingTask, MaskedTask)
TRAINED: dict[str, Any] = {task.name: task for task in (*GENERATORS, *ENCODERS, ImagesTask, ForecastingTask)}


def task_of(folder: str | Path) -> AnyTask:
    """Return the task of the bundle in a folder."""
    name = Bundle.read(folder).task
    if name not in TRAINED:
        raise BundleError(f"{folder}: models for {name} are only imported, so there is no run and no score of one")
    return TRAINED[name]()
