"""Causal language models: they continue a text."""

from .predictor import DEFAULT_MAX_NEW_TOKENS, CausalLanguageModel, LanguageModelSettings, TextScore

__all__ = ["DEFAULT_MAX_NEW_TOKENS", "CausalLanguageModel", "LanguageModelSettings", "TextScore"]
