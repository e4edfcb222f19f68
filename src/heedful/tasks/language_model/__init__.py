"""Language models: text that goes on."""

from .predictor import LENGTH, Continuer, ContinuerSettings
from .scoring import TextScore

__all__ = ["LENGTH", "Continuer", "ContinuerSettings", "TextScore"]
