"""Translation: from files of sentence pairs to a trained translator."""

from ..run import Files
from .predictor import Translator
from .task import Evaluation, TranslationConfig, TranslationTask, evaluate, train

__all__ = ["Evaluation", "Files", "TranslationConfig", "TranslationTask", "Translator", "evaluate", "train"]
