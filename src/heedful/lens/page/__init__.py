"""The look page: one HTML file that works offline, rendered from a document."""

from .bundle import bundle
from .rendering import render, write_page

__all__ = ["bundle", "render", "write_page"]
