"""Series from tables, their dates checked; and as one mapped array."""

from .dates import Spacing
from .store import ColumnScale, SeriesStore
from .tables import Series, read_series

__all__ = ["ColumnScale", "Series", "SeriesStore", "Spacing", "read_series"]
