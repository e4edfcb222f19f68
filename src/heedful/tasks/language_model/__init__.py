"""Language models: text that goes on."""

from .predictor import LENGTH, CausalLanguageModel, LanguageModelSettings
from .scoring import TextScore

__all__ = ["LENGTH", "CausalLanguageModel", "LanguageModelSettings", "TextScore"]
