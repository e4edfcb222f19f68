"""Language models: text that goes on."""

from .continuer import LENGTH, Continuer, ContinuerSettings

__all__ = ["LENGTH", "Continuer", "ContinuerSettings"]
