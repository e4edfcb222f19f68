"""Image classification: which class an image belongs to."""

from .predictor import ImageClassifier, ImageSettings

__all__ = ["ImageClassifier", "ImageSettings"]
