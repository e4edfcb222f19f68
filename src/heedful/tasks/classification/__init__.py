"""Classification: which class a text belongs to."""

from .predictor import Classifier, ClassifierSettings

__all__ = ["Classifier", "ClassifierSettings"]
