"""Looking at any model while it works: a document for a page, or for a script.

`inspect` asks the predictor (`Predictor.inspect`); what those of several tasks share is here.
"""

from .document import Inspection, inspect
from .picture import draw

__all__ = ["Inspection", "draw", "inspect"]
