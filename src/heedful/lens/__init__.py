"""Looking inside: the recorder, and pictures."""

from .recorder import Look, Recording, record

__all__ = ["Look", "Recording", "record"]
