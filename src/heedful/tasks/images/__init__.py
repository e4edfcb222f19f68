"""Images: which class one belongs to."""

from .classifier import ImageClassifier
from .preparing import ImageSettings

__all__ = ["ImageClassifier", "ImageSettings"]
