"""Inspection of a model from outside: recording attention, ablation, patching, drawing pictures and pages."""

from .ablation import ablate
from .logit_lens import LayerLogits, logit_lens
from .patching import PatchEffects, patch
from .recorder import Look, Recording, record

__all__ = ["LayerLogits", "Look", "PatchEffects", "Recording", "ablate", "logit_lens", "patch", "record"]
