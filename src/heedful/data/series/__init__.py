"""Series from tables, their dates checked; and as one mapped array."""

from .store import ColumnScale, SeriesStore
from .tables import Series, Spacing, format_time, read_series

__all__ = ["ColumnScale", "Series", "SeriesStore", "Spacing", "format_time", "read_series"]
