"""Translation: from raw files of sentence pairs to a translator one can rely on."""

from ..run import Files
from .config import TranslationConfig
from .evaluation import Evaluation, evaluate
from .train import train
from .translator import Translator

__all__ = ["Evaluation", "Files", "TranslationConfig", "Translator", "evaluate", "train"]
