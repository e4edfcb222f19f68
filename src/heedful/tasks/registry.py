"""Every task that can be trained, by its name."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .bundle import Bundle, BundleError
from .classification.task import ClassificationTask
from .forecasting.task import ForecastingTask
from .images.task import ImagesTask
from .language_model.task import LanguageModelTask
from .masked.task import MaskedTask
from .question_answering.task import QuestionAnsweringTask
from .run import AnyTask, write_report
from .tagging.task import TaggingTask
from .text_to_text.task import TextToTextTask
from .translation.task import TranslationTask

GENERATORS = (TranslationTask, TextToTextTask, LanguageModelTask)
ENCODERS = (ClassificationTask, QuestionAnsweringTask, TaggingTask, MaskedTask)
TRAINED: dict[str, Any] = {task.name: task for task in (*GENERATORS, *ENCODERS, ImagesTask, ForecastingTask)}


def task_of(folder: str | Path) -> AnyTask:
    """The task of the bundle in a folder."""
    name = Bundle.read(folder).task
    if name not in TRAINED:
        raise BundleError(f"{folder}: a model for {name} is not trained here, so it has no run and no score of its own")
    return TRAINED[name]()


def report_of(folders: Sequence[str | Path], out: str | Path | None = None, *, language: str = "en") -> Path:
    """The page of runs of one task."""
    return write_report(task_of(folders[0]), folders, out, language=language)
