"""Extractive question answering: the span of a passage that answers a question, or that none does."""

from .predictor import ExtractedAnswer, QuestionAnswerer, QuestionAnswererSettings

__all__ = ["ExtractedAnswer", "QuestionAnswerer", "QuestionAnswererSettings"]
