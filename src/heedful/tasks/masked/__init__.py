"""Masked words: gaps in a text, filled."""

from .predictor import MaskedLanguageModel, MaskedLanguageModelSettings

__all__ = ["MaskedLanguageModel", "MaskedLanguageModelSettings"]
