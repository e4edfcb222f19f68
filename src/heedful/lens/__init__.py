"""Inspection of a model from outside: recording attention, drawing pictures and pages."""

from .recorder import Look, Recording, record

__all__ = ["Look", "Recording", "record"]
