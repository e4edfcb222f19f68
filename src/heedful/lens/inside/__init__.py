"""A model while it works, as plain numbers: traced from outside, and written down for a page or a script to show."""

from .arrays import DIGITS, Arrays, Kind, unpacked
from .document import ROOM, ROOM_ASKED, attentions, facts, kind_of_weights, layers
from .positions import positions_of
from .tokens import END_MARK, PART, START_MARK, TokenDict, spelt, tokens_of
from .tracing import Layer, Numbers, Part, Trace, trace, twin

__all__ = [
    "DIGITS",
    "END_MARK",
    "PART",
    "ROOM",
    "ROOM_ASKED",
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
    "kind_of_weights",
    "layers",
    "positions_of",
    "spelt",
    "tokens_of",
    "trace",
    "twin",
    "unpacked",
]
