"""Named architectures: each one file of a config, a builder and presets over the same core."""

from .original import OriginalConfig
from .recurrent import RecurrentConfig
from .registry import FAMILIES, Family, build, config_of, presets, register

__all__ = ["FAMILIES", "Family", "OriginalConfig", "RecurrentConfig", "build", "config_of", "presets", "register"]
