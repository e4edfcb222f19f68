"""Generation: from a model with a decoder and its inputs to the best answers."""

from ..errors import GenerationError
from .config import GenerationConfig, GenerationOptions
from .engine import GenerationEngine, Stream, generate, stream
from .request import GenerationRequest, RequestState, create_requests
from .runners import EncoderMemory
from .sequence import CandidateOutcome, Hypothesis, SearchStep

__all__ = [
    "CandidateOutcome",
    "EncoderMemory",
    "GenerationConfig",
    "GenerationEngine",
    "GenerationError",
    "GenerationOptions",
    "GenerationRequest",
    "Hypothesis",
    "RequestState",
    "SearchStep",
    "Stream",
    "create_requests",
    "generate",
    "stream",
]
