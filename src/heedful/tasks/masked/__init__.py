"""Masked language modeling: filling the gaps in a text."""

from .predictor import MaskedLanguageModel, MaskedLanguageModelSettings

__all__ = ["MaskedLanguageModel", "MaskedLanguageModelSettings"]
