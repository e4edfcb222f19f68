"""Every way to run a part faster than the core: in C, by Triton's kernels, in 8 bits, a decoding step at a time.

`supports` says why a model cannot use one of them, `use_backend` puts replacements into a copy of it, and `prepare`
makes it ready for generation. Whatever a backend does not know is left to the core.
"""

from . import cpu, cuda_graph, int8, single_step  # noqa: F401  # each registers what it implements
from .description import Reason
from .native import model  # noqa: F401
from .registry import IMPLEMENTATIONS, refusals, supports, use_backend
from .runtime import RuntimeModel, prepare
from .triton import modules  # noqa: F401

BACKENDS = tuple(sorted({backend for _, backend in IMPLEMENTATIONS}))

__all__ = ["BACKENDS", "IMPLEMENTATIONS", "Reason", "RuntimeModel", "prepare", "refusals", "supports", "use_backend"]
