"""Series from tables, their dates checked; and as one mapped array."""

from .dates import Spacing
from .store import Scale, SeriesStore
from .tables import Series, read_series

__all__ = ["Scale", "Series", "SeriesStore", "Spacing", "read_series"]
