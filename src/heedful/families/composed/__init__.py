"""Models that have no name: a config that says every part, and how it is read off a model."""

from .describing import DescriptionError, describe
from .family import ComposedConfig
from .parts import AttentionPart, FeedForwardPart, NormPart, PositionsPart, StackPart

__all__ = [
    "AttentionPart",
    "ComposedConfig",
    "DescriptionError",
    "FeedForwardPart",
    "NormPart",
    "PositionsPart",
    "StackPart",
    "describe",
]
