"""Classification: which class a text belongs to."""

from .classifier import Classifier, ClassifierSettings

__all__ = ["Classifier", "ClassifierSettings"]
