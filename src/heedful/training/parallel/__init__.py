"""Several processes that train one module together, or one that does it alone."""

from .held import Replica, Rounded
from .holding import hold
from .start import start
from .world import Alone, Together, world

__all__ = ["Alone", "Replica", "Rounded", "Together", "hold", "start", "world"]
