"""Language models: text that goes on."""

from .continuer import LENGTH, Continuer, ContinuerSettings
from .scoring import TextScore

__all__ = ["LENGTH", "Continuer", "ContinuerSettings", "TextScore"]
