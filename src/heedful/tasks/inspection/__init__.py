"""Inspects a model while it answers an input: a document for the look page, or for a script.

`inspect` calls `Predictor.inspect`; this package holds what several tasks share.
"""

from .ablation import inspect_ablated
from .document import Inspection, draw, inspect
from .patching import inspect_patched

__all__ = ["Inspection", "draw", "inspect", "inspect_ablated", "inspect_patched"]
