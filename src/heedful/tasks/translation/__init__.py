"""Translation: from raw files of sentence pairs to a translator one can rely on."""

from ..run import Files
from .predictor import Translator
from .task import Evaluation, TranslationConfig, TranslationTask, evaluate, train

__all__ = ["Evaluation", "Files", "TranslationConfig", "TranslationTask", "Translator", "evaluate", "train"]
