"""Translation: from raw files of sentence pairs to a translator one can rely on."""

from .config import TranslationConfig
from .evaluation import Evaluation, evaluate
from .prepare import Files
from .train import train
from .translator import Translator

__all__ = ["Evaluation", "Files", "TranslationConfig", "Translator", "evaluate", "train"]
