"""A model while it works, as plain numbers: traced from outside, and written down for a page or a script to show."""

from .arrays import Arrays, Kind
from .document import ROOM, attentions, facts, layers
from .positions import positions_of
from .tokens import END_MARK, START_MARK, TokenDict, tokens_of
from .tracing import Layer, Numbers, Part, Trace, trace

__all__ = [
    "END_MARK",
    "ROOM",
    "START_MARK",
    "Arrays",
    "Kind",
    "Layer",
    "Numbers",
    "Part",
    "TokenDict",
    "Trace",
    "attentions",
    "facts",
    "layers",
    "positions_of",
    "tokens_of",
    "trace",
]
