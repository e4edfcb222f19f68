"""Images: which class one belongs to."""

from .predictor import ImageClassifier, ImageSettings

__all__ = ["ImageClassifier", "ImageSettings"]
