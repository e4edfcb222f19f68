"""Masked words: which token stands in a gap."""

from .filler import Filler, FillerSettings, Guess

__all__ = ["Filler", "FillerSettings", "Guess"]
