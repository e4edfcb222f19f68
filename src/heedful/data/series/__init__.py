"""Series from tables, their dates checked; and as one mapped array."""

from .dates import Spacing
from .series import Series
from .store import Scale, SeriesStore
from .tables import read_series

__all__ = ["Scale", "Series", "SeriesStore", "Spacing", "read_series"]
