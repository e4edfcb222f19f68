"""Faster implementations of parts of the core: in C, by Triton kernels, in 8 bits, and for single decoding steps.

`supports` returns why a model cannot use a backend, `use_backend` replaces parts in a copy of a model, and `prepare`
prepares it for generation. Parts that a backend does not support run in the core.
"""

from . import cpu, int8, single_step  # noqa: F401  # each registers what it implements
from .description import Reason
from .native import model  # noqa: F401
from .registry import IMPLEMENTATIONS, refusals, supports, use_backend
from .runtime import RuntimeModel, prepare
from .triton import modules  # noqa: F401

BACKENDS = tuple(sorted({backend for _, backend in IMPLEMENTATIONS}))

__all__ = ["BACKENDS", "IMPLEMENTATIONS", "Reason", "RuntimeModel", "prepare", "refusals", "supports", "use_backend"]
