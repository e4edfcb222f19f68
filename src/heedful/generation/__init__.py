"""Generation: from a model with a decoder and its inputs to the best answers."""

from ..errors import GenerationError
from .config import GenerationConfig
from .engine import generate, stream
from .hypothesis import Hypothesis
from .streams import Stream

__all__ = ["GenerationConfig", "GenerationError", "Hypothesis", "Stream", "generate", "stream"]
